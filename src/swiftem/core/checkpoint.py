"""Checkpoints: the folder of a run, locked for one process, and what a run of Algorithm 1 keeps in it.

A checkpoint is a position, not a history: θ, s and :class:`swiftem.core.algorithm.State` determine everything
else, because draws are a function of k. Only the records grow; they are appended, never rewritten.

The file ``state`` is replaced as a whole: the identity of the run, its position, and which other files belong
to it. ``memory-<block>-<number>`` have the rows of the memory of iem and fiem as they were at a checkpoint of
that number, and ``records`` what was recorded. They are on disk before the state that names them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from math import prod
from pathlib import Path
from time import perf_counter
from typing import BinaryIO, Literal, NamedTuple

import numpy as np

from swiftem.core.algorithm import State
from swiftem.core.checks import MemoryLimitError, check_int
from swiftem.core.describe import environment, without_code
from swiftem.core.draws import Entropy
from swiftem.core.files import open_regular, release, replacing, write_atomically
from swiftem.core.state_file import read_tree, write_tree
from swiftem.core.types import Array, Theta, Tree

log = logging.getLogger("swiftem")

Resume = bool | Literal["auto"]
Allocate = Callable[..., np.ndarray]
Memory = tuple[tuple[int, ...], str, tuple[tuple[int, str], ...]]

FORMAT = "swiftem checkpoint, format 6"
STATE, RECORDS = "state", "records"
LEFT_OVER = "memory-[0-9]*-[0-9]*", f".{STATE}.*", ".memory-*"
"""Older rows of the memory, and temporary files of a process that was killed."""
BLOCK_BYTES = 1 << 24
"""Bytes of the memory in one file."""
SELDOM = 20.0
"""By default, checkpoints are at least this multiple of their own duration apart, and at least a second."""
VERSIONS = ("swiftem", "numpy", "numba", "python")
"""Packages whose versions must agree for a run to resume with the same bits."""
DAMAGE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
"""Errors that the content of a damaged file may lead to."""


class Saved(NamedTuple):
    """Content of a checkpoint: a nested structure, the memory if there is one, and the records so far."""

    tree: Tree
    memory: np.ndarray | None
    path: list[Tree]


class StateFile(NamedTuple):
    """Content of the file ``state``.

    Attributes
    ----------
    identity : dict
        Description of the run.
    number : int
        Number of checkpoints so far. The file with number 0 is written before anything is computed: a run
        that is killed in its first pass has its seed.
    tree : nested structure
        The position of the run.
    memory : tuple, optional
        Shape and dtype of the memory, and for each of its files the number in the name and a hash.
    records : tuple of int and str
        Number of valid bytes in the file of records, and hash of the last record.
    """

    identity: dict[str, object]
    number: int = 0
    tree: Tree = None
    memory: Memory | None = None
    records: tuple[int, str] = (0, "")


class Store:
    """The folder of one run, locked for this process.

    Parameters
    ----------
    folder : Path
        The folder; it is created if it is missing.
    identity : dict
        Description of the run as JSON values, by names for messages ("model", "method", "data"). If the
        folder has a run, its identity must be the same.
    resume : bool or "auto"
        Whether to resume. True: there must be a run in the folder; False: there must be none (a repeated
        command must not overwrite a day of work); "auto", for scripts: both are allowed.

    Attributes
    ----------
    allocate : callable
        Allocates the array that a memory is read into: ``allocate(shape, dtype)``.

    Examples
    --------
    >>> import contextlib, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     with contextlib.closing(Store(folder, {"model": "a"}, resume=False)) as store:
    ...         store.save({"k": 1}, path=["first"])
    ...     with contextlib.closing(Store(folder, {"model": "a"}, resume=True)) as store:
    ...         store.load()
    Saved(tree={'k': 1}, memory=None, path=['first'])
    """

    def __init__(self, folder: Path, identity: dict[str, object], resume: Resume) -> None:
        self.folder, self.name = folder, f"checkpoint={str(folder)!r}"
        self.allocate: Allocate = np.empty
        self._seconds, self._saved_at = 0.0, perf_counter()
        if resume not in (True, False, "auto"):
            raise ValueError(f"resume must be True, False or 'auto', got {resume!r}.")
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{self.name} must be a folder, got a file.")
        if resume is True and not (folder / STATE).exists():
            raise FileNotFoundError(
                f"resume=True needs a checkpoint in {str(folder)!r}, but there is none: "
                "use resume='auto' to begin one."
            )
        with self._system_errors("cannot be written to"):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(folder)
        try:
            self._state = self._begin_or_resume(identity, resume)
        except BaseException:
            self.close()
            raise

    def _begin_or_resume(self, identity: dict[str, object], resume: Resume) -> StateFile:
        if (self.folder / STATE).exists():
            with self.reading(STATE):
                state = read_state(self.folder)
            if resume is not False:
                self._compare(state.identity, identity)
                return state
            if state.number:
                raise ValueError(
                    f"{self.name} already has a run: use resume=True to resume it (--resume on the command "
                    "line), or another folder."
                )
        # No run, or one that was killed before its first checkpoint and has lost nothing.
        state = StateFile(identity | environment())
        with self._system_errors("cannot be written to"):
            self._write_state(state)
        return state

    def _compare(self, saved: dict[str, object], identity: dict[str, object]) -> None:
        """Raise ValueError if the folder has another run; warn if results may differ in the last bit."""
        here = environment()
        # Other minor versions of Python compile the same function to different code.
        is_other_python = str(saved.get("python")).split(".")[:2] != here["python"].split(".")[:2]
        if is_other_python:
            saved, identity = without_code(saved), without_code(identity)
        for name, value in identity.items():
            if saved.get(name) != value:
                theirs, ours = str(saved.get(name))[:300], str(value)[:300]
                raise ValueError(
                    f"{self.name} belongs to another run: its {name} is {theirs}, here it is {ours}."
                )
        others = [name for name in VERSIONS if saved.get(name) != here[name]]
        if others:
            log.warning(
                "%s was written by %s, and this is %s: results may differ in the last bit.%s",
                self.name,
                ", ".join(f"{name} {saved.get(name)}" for name in others),
                ", ".join(f"{name} {here[name]}" for name in others),
                " The code of functions cannot be compared." if is_other_python else "",
            )
        if saved.get("machine") != here["machine"]:
            log.warning("%s is from another machine: results are equal up to rounding only.", self.name)

    def load(self) -> Saved | None:
        """Return the last checkpoint, or None if there is none yet; ValueError if it is damaged."""
        state, self._state = self._state, self._state._replace(tree=None)
        if not state.number:
            return None
        with self.reading():
            memory = None if state.memory is None else self._read_memory(*state.memory)
        with self.reading(RECORDS):
            return Saved(state.tree, memory, self._read_records(*state.records))

    def save(self, tree: Tree, *, memory: np.ndarray | None = None, path: Sequence[Tree] = ()) -> None:
        """Write a checkpoint; when the call returns, it is on disk.

        Parameters
        ----------
        tree : nested structure
            A structure for :func:`swiftem.core.state_file.write_tree`.
        memory : ndarray, shape (n, R), optional
            The memory. Files whose rows have not changed since the last checkpoint are not written again.
        path : sequence, optional
            The records since the last checkpoint.

        Raises
        ------
        OSError
            If the checkpoint cannot be written; the last good one is intact.
        """
        began, number = perf_counter(), self._state.number + 1
        last = "the last good one is intact" if self._state.number else "there is none yet"
        with self._system_errors(f"cannot be written to; {last}"):
            blocks = None if memory is None else self._write_memory(memory, number)
            records = self._append_records(path) if path else self._state.records
            state = StateFile(self._state.identity, number, tree, blocks, records)
            self._write_state(state)
        self._state = state._replace(tree=None)
        self._remove_left_over()
        self._saved_at = perf_counter()
        self._seconds = self._saved_at - began

    @property
    def may_save(self) -> bool:
        """Whether the last checkpoint is long ago, compared with the time that it took."""
        return perf_counter() - self._saved_at >= max(1.0, SELDOM * self._seconds)

    def close(self) -> None:
        """Release the folder."""
        self._lock.close()

    def _write_state(self, state: StateFile) -> None:
        with replacing(self.folder / STATE) as file:
            write_tree(file, FORMAT, tuple(state), "the state of the run")

    def _write_memory(self, memory: np.ndarray, number: int) -> Memory:
        """Write the rows that have changed; return shape, dtype and files of the memory."""
        written = () if self._state.memory is None else self._state.memory[2]
        files = []
        for block, content in enumerate(_blocks(memory)):
            file, digest = written[block] if block < len(written) else (0, ""), _hash(content)
            if file[1] != digest:
                write_atomically(self._memory_file(block, number), content)
                file = number, digest
            files.append(file)
        return memory.shape, memory.dtype.str, tuple(files)

    def _memory_file(self, block: int, number: int) -> Path:
        return self.folder / f"memory-{block}-{number}"

    def _read_memory(
        self, shape: tuple[int, ...], dtype: str, files: tuple[tuple[int, str], ...]
    ) -> np.ndarray:
        paths = [self._memory_file(block, number) for block, (number, _) in enumerate(files)]
        # Before anything is allocated: a damaged file may claim any size.
        if sum(path.stat().st_size for path in paths) != prod(shape) * np.dtype(dtype).itemsize:
            raise ValueError("the files of the memory have the wrong length")
        memory = self.allocate(shape, np.dtype(dtype))
        for path, (_, digest), content in zip(paths, files, _blocks(memory), strict=True):
            with open_regular(path) as file:
                file.readinto(content)  # type: ignore[attr-defined]
            if _hash(content) != digest:
                raise ValueError(f"the hash of {path.name} is wrong")
        return memory

    def _append_records(self, path: Sequence[Tree]) -> tuple[int, str]:
        """Write records after the valid ones; return the number of valid bytes and the last hash."""
        length, last = self._state.records
        digest = bytes.fromhex(last)
        with open_regular(self.folder / RECORDS, "r+b") as file:
            file.seek(length)
            file.truncate()
            for record in path:
                digest = write_tree(file, FORMAT, record, "what record returns", digest)
            file.flush()
            os.fsync(file.fileno())
            return file.tell(), digest.hex()

    def _read_records(self, length: int, last: str) -> list[Tree]:
        path: list[Tree] = []
        if not length:
            return path
        digest = b""
        with open_regular(self.folder / RECORDS) as file:
            while file.tell() < length:
                record, digest = read_tree(file, FORMAT, digest)
                path.append(record)
            if (file.tell(), digest.hex()) != (length, last):
                raise ValueError("they are not of this checkpoint")
        return path

    def _remove_left_over(self) -> None:
        files = () if self._state.memory is None else self._state.memory[2]
        needed = {self._memory_file(block, number) for block, (number, _) in enumerate(files)}
        for pattern in LEFT_OVER:
            for path in set(self.folder.glob(pattern)) - needed:
                with suppress(OSError):
                    path.unlink()

    @contextmanager
    def _system_errors(self, problem: str) -> Iterator[None]:
        """Add the folder to errors of the system."""
        try:
            yield
        except OSError as error:
            if error.errno is None:
                raise
            reason = (error.strerror or str(error)).lower()
            raise OSError(error.errno, f"{self.name} {problem} ({reason}).") from None

    @contextmanager
    def reading(self, file: str = "") -> Iterator[None]:
        """Add the folder to errors about its content."""
        try:
            with self._system_errors("cannot be read"):
                yield
        except MemoryLimitError:
            raise
        except ImportError as error:
            raise ValueError(
                f"{self.name} cannot be resumed here: {error}. Import that module first."
            ) from None
        except DAMAGE as error:
            reason = " ".join(f"{file and file + ': '}{error}".split()).rstrip(".")
            raise ValueError(
                f"{self.name} is damaged, or of another version or run ({reason}). Use another folder."
            ) from None


def lock_folder(folder: Path) -> BinaryIO:
    """Return an open file that is a lock on a folder until it is closed, or its process ends in any way.

    Raises
    ------
    ValueError
        If another run has the lock.
    """
    try:
        import fcntl
    except ImportError:  # pragma: no cover
        raise NotImplementedError("checkpoint needs a system with file locks, not Windows.") from None
    file = open_regular(folder / "lock", "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        with file:
            holder = file.read(20).decode(errors="replace")
        who = f", process {holder}," if holder.isdigit() else ""
        raise ValueError(
            f"checkpoint={str(folder)!r} is in use: another run{who} writes to it. "
            "Wait until it ends, or use another folder."
        ) from None
    file.truncate()
    file.write(str(os.getpid()).encode())
    file.flush()
    return file


def read_state(folder: Path) -> StateFile:
    """Return the content of the file ``state``; ValueError if it is not as it was written."""
    with open_regular(folder / STATE) as file:
        content, _ = read_tree(file, FORMAT)
        state = StateFile(*content)
        if file.read(1) or type(state.identity) is not dict or type(state.number) is not int:
            raise ValueError("is another file")
    return state


def read_identity(folder: Path) -> dict[str, object]:
    """Return the description of the run in a folder, if it can be read."""
    try:
        return read_state(folder).identity
    except (OSError, ImportError, *DAMAGE):
        return {}


def _blocks(memory: np.ndarray) -> Iterator[memoryview]:
    """Yield the bytes of each file of a memory."""
    rows = max(1, BLOCK_BYTES // max(1, prod(memory.shape[1:]) * memory.itemsize))
    for first in range(0, len(memory), rows):
        part = memory[first : first + rows]
        yield np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
        release(part)


def _hash(content: memoryview) -> str:
    return blake2b(content, digest_size=32).hexdigest()


class Position(NamedTuple):
    """The state of a run.

    Attributes
    ----------
    theta, s, state
        As in a result.
    recorded : int
        k of the last record, −1 before the first.
    stopped : bool
        Whether a callback has ended the run.
    path : list
        The records; they have their own file.
    """

    theta: Theta
    s: Array
    state: State
    recorded: int
    stopped: bool
    path: list[Tree]


@dataclass
class RunCheckpoint:
    """Checkpoints of a run in its own store.

    Parameters
    ----------
    store : Store
        The open folder.
    every : int
        Iterations between checkpoints.
    is_exact : bool
        Whether every checkpoint is written; otherwise only if it takes a small share of the run's time.
    read : callable
        Returns the last checkpoint of the run, if there is one.
    extra : callable
        Returns further content for each checkpoint, a nested structure.
    closes : bool
        Whether the store is closed at the end of the run.
    """

    store: Store
    every: int
    is_exact: bool
    read: Callable[[], Saved | None]
    extra: Callable[[], Tree] = lambda: None
    closes: bool = True
    _last: tuple[int, int, bool] = field(default=(-1, 0, False), init=False)

    def load(self, check: Callable[[Position], None]) -> Position | None:
        """Return the saved state of the run, or None if it starts from the beginning.

        ``check`` raises an error if the run cannot resume from there; the message names the folder.
        """
        saved = self.read()
        if saved is None:
            return None
        with self.store.reading():
            state: State = saved.tree["state"]
            if saved.memory is not None:
                state = state._replace(method=state.method._replace(memory=saved.memory))
            tree = saved.tree | {"state": state, "path": saved.path}
            position = Position(*(tree[name] for name in Position._fields))
            check(position)
        self._last = _progress(position)
        return position

    def is_due(self, k: int) -> bool:
        """Return whether a checkpoint is due."""
        is_next = k % self.every == 0 and k != self._last[0]
        return is_next and (self.is_exact or self.store.may_save)

    def save(self, position: Position, memory: np.ndarray | None) -> None:
        """Write a checkpoint; the method's memory has its own files."""
        state = position.state
        if memory is not None:
            state = state._replace(method=state.method._replace(memory=None))
        tree = position._replace(state=state, path=[])._asdict() | {"extra": self.extra()}
        self.store.save(tree, memory=memory, path=position.path[self._last[1] :])
        self._last = _progress(position)

    def end(self, position: Position, memory: np.ndarray | None) -> None:
        """Write the final state of the run, unless it was written last."""
        if _progress(position) != self._last:
            self.save(position, memory)

    def __enter__(self) -> RunCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        if self.closes:
            self.store.close()


def _progress(position: Position) -> tuple[int, int, bool]:
    """Return what changes from one checkpoint to the next: k, the number of records, and whether it ended."""
    return position.state.k, len(position.path), position.stopped


def kept_seed(checkpoint: object, resume: Resume, drawn: Entropy) -> Entropy:
    """Return the seed's words from the folder, if a run without a seed resumes there; else ``drawn``.

    A folder that cannot be read is ignored here: :func:`open_checkpoint` reports the error.
    """
    if not isinstance(checkpoint, str | Path) or resume is False:
        return drawn
    try:
        saved = np.array(read_identity(Path(checkpoint)).get("seed"), dtype=np.uint32)
    except (TypeError, ValueError, OverflowError):
        return drawn
    return saved if saved.shape == drawn.shape else drawn


def open_checkpoint(
    checkpoint: object,
    every: int | None,
    resume: Resume,
    *,
    identity: Callable[[], dict[str, object]],
    epoch: int,
    allocate: Allocate,
) -> RunCheckpoint:
    """Return the checkpoints of a run, or raise an error if the folder cannot be used.

    Parameters
    ----------
    checkpoint : str, Path or RunCheckpoint
        The folder, or checkpoints opened by the caller.
    every, resume
        As in :func:`swiftem.run`.
    identity : callable
        Returns a description of the run, as for :class:`swiftem.core.checkpoint.Store`.
    epoch : int
        Iterations between checkpoints if ``every`` is None.
    allocate : callable
        Allocates the array that a memory is read into: ``allocate(shape, dtype)``.
    """
    if isinstance(checkpoint, RunCheckpoint):
        return checkpoint
    if every is not None:
        every = check_int("checkpoint_every", every, minimum=1)
    if not isinstance(checkpoint, str | Path):
        raise TypeError(f"checkpoint must be a folder, got {checkpoint!r}.")
    store = Store(Path(checkpoint), identity(), resume)
    store.allocate = allocate
    return RunCheckpoint(store, every or epoch, is_exact=every is not None, read=store.load)


def check_form(name: str, value: Tree, like: Tree) -> None:
    """Raise TypeError unless two values have the same type, and their arrays the same shapes.

    Values in the named tuples of users may vary.

    >>> check_form("s", np.zeros(3), np.ones(2))
    Traceback (most recent call last):
    TypeError: s has a different form
    """
    same = type(value) is type(like)
    if isinstance(like, tuple) and type(like).__module__.startswith("swiftem."):
        same = same and len(value) == len(like)
        for part, other in zip(value if same else (), like, strict=False):
            check_form(name, part, other)
    elif isinstance(like, np.ndarray):
        same = same and value.shape == like.shape and value.dtype.kind in "biuf"
    elif isinstance(like, dict):
        same = same and value.keys() == like.keys()
        for key in like if same else ():
            check_form(name, value[key], like[key])
    elif not isinstance(like, tuple):  # a number may be Python's or NumPy's
        same = True
    if not same:
        raise TypeError(f"{name} has a different form")
