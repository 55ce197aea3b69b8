"""The folder of a run's checkpoints: opened by one process, written in the background."""

from __future__ import annotations

import logging
import os
import secrets
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.checkpoints.folder import (
    Allocate,
    Lock,
    MemoryFile,
    MemoryPlace,
    Records,
    StateHead,
    read_state,
    write_state,
)
from swiftem.checkpoints.tree import VERSIONS, UnknownTypeError, decode, encode, without_code
from swiftem.engine.threads import environment
from swiftem.files.durable import (
    OtherFormatError,
    check_plain,
    read_sealed,
    telling_where,
    write_sealed,
)

__all__ = ["Kept", "Resume", "Store", "read_identity"]

log = logging.getLogger("swiftem")

Resume = bool | Literal["auto"]
BEGUN = "begun"
"""File that describes the run. It is written before anything is computed: a run that is killed in its
first pass has its seed, and two runs cannot begin in one folder."""
STATES = ("state-0", "state-1")
"""The last two checkpoints, written in turns: an atomic rename alone is safe against kills, the second file
also against a disk that does not flush. Falling back loses work, never a bit."""
PATH = "path"
"""The records."""


class Kept(NamedTuple):
    """Content of a checkpoint: a nested structure, the memory if there is one, and the path so far."""

    tree: Any
    memory: NDArray[Any] | None
    path: list[Any]


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
    kept : tuple of str
        Names in ``identity`` whose values are taken from the folder.

    Attributes
    ----------
    identity : dict
        As given, or from the folder.
    is_new : bool
        Whether there was no run in the folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     with Store(folder, {"model": "a"}, resume=False) as store:
    ...         store.save({"k": 1}, path=["first"])
    ...     with Store(folder, {"model": "a"}, resume=True) as store:
    ...         store.load()
    Kept(tree={'k': 1}, memory=None, path=['first'])
    """

    def __init__(
        self, folder: Path, identity: dict[str, Any], resume: Resume, kept: tuple[str, ...] = ()
    ) -> None:
        if resume not in (True, False, "auto"):
            raise ValueError(f"resume must be True, False or 'auto', got {resume!r}.")
        if not hasattr(os, "pwrite"):  # pragma: no cover
            raise NotImplementedError("checkpoint needs Linux, macOS or another system of that family.")
        self.folder = folder
        self.allocate: Allocate = np.empty
        self._pool: ThreadPoolExecutor | None = None
        self._job: Future[None] | None = None
        self._room: Future[None] | None = None
        self._number, self.seconds = 0, 0.0
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"checkpoint={str(folder)!r} must be a folder, got a file.")
        if resume is True and not (folder / BEGUN).exists():
            raise FileNotFoundError(
                f"resume=True needs a checkpoint in {str(folder)!r}, but there is none: "
                "use resume='auto' to begin one."
            )
        with telling_where(folder, "cannot be written to"):
            folder.mkdir(parents=True, exist_ok=True)
            check_plain(folder)
            self._lock = Lock(folder)
        try:
            has_state = any((folder / name).exists() for name in STATES)
            # A run that was killed before its first checkpoint has lost nothing.
            self.is_new = not (folder / BEGUN).exists() or (resume is False and not has_state)
            if self.is_new:
                self._begin(identity | environment() | {"run": secrets.token_hex(8)}, has_state)
            else:
                self._go_on(identity, resume, kept)
            self._memory = MemoryFile(folder)
            self._path_begins = zlib.crc32(str(self.identity["run"]).encode())
            self._path_end = 0, self._path_begins
        except BaseException:
            self._lock.release()
            raise

    def _begin(self, identity: dict[str, Any], has_state: bool) -> None:
        if has_state:
            raise ValueError(
                f"checkpoint={str(self.folder)!r} is damaged: it has states, but no file {BEGUN!r} that "
                "describes the run. Use another folder."
            )
        self.identity = identity
        with telling_where(self.folder, "cannot be written to"):
            write_sealed(self.folder / BEGUN, encode(identity))

    def _go_on(self, identity: dict[str, Any], resume: Resume, kept: tuple[str, ...]) -> None:
        where = f"checkpoint={str(self.folder)!r}"
        if resume is False:
            raise ValueError(f"{where} already has a run: use resume=True to resume it, or another folder.")
        try:
            with telling_where(self.folder, "cannot be read"):
                found = decode(read_sealed(self.folder / BEGUN))
            if not isinstance(found, dict) or "run" not in found:
                raise ValueError("it is another file")
        except OtherFormatError as error:
            raise ValueError(
                f"{where} was written by another version of swiftem: {error}. Use another folder."
            ) from None
        except ValueError as error:
            raise ValueError(
                f"{where} is damaged: {BEGUN!r} cannot be used, {error}. Use another folder."
            ) from None
        here = environment()
        others = [name for name in VERSIONS if found.get(name) != here[name]]
        # Other minor versions of Python compile the same function to different code.
        is_other_python = _minor(found.get("python")) != _minor(here["python"])
        comparable: Callable[[Any], Any] = without_code if is_other_python else lambda value: value
        for name, value in identity.items():
            theirs, ours = comparable(found.get(name)), comparable(value)
            if name not in kept and theirs != ours:
                which, theirs, ours = _differing(name, theirs, ours)
                raise ValueError(
                    f"{where} belongs to another run: its {which} is {_short(theirs)}, "
                    f"that of this run is {_short(ours)}."
                )
        if others:
            log.warning(
                "%s was written by %s, and this is %s: results may differ in the last bit.%s", where,
                _versions(found, others), _versions(here, others),
                " The code of functions cannot be compared." if is_other_python else "",
            )  # fmt: skip
        if found.get("machine") != here["machine"]:
            log.warning("%s is from another machine: results are equal up to rounding only.", where)
        self.identity = found

    def load(self) -> Kept | None:
        """Return the last intact checkpoint, or None if there is none yet.

        Raises
        ------
        ValueError
            If there are checkpoints, but none of them can be read.
        """
        try:
            return self._load()
        except UnknownTypeError as error:
            raise ValueError(
                f"checkpoint={str(self.folder)!r} cannot be resumed here: {error}. Import that module first."
            ) from None

    def _load(self) -> Kept | None:
        found: list[tuple[str, StateHead, Any]] = []
        reasons = []
        for name in STATES:
            if not (self.folder / name).exists():
                continue
            try:
                head, tree = read_state(self.folder / name)
                if head.run != self.identity["run"]:
                    raise ValueError("it belongs to another run")
                found.append((name, head, tree))
            except UnknownTypeError:
                raise
            except (ValueError, OSError) as error:
                reasons.append(f"{name}: {_reason(error)}")
        for name, head, tree in sorted(found, key=lambda one: one[1].number, reverse=True):
            memory = MemoryFile(self.folder, head.memory)
            try:
                of_memory = None if head.memory is None else memory.read(self.allocate)
                kept = Kept(tree, of_memory, self._path(*head.path))
            except UnknownTypeError:
                raise
            except (ValueError, OSError) as error:
                if isinstance(error, OSError) and error.errno is None:
                    raise  # not enough memory
                reasons.append(f"{name}: {_reason(error)}")
                continue
            if reasons:
                log.warning(
                    "checkpoint=%r is damaged (%s): resuming from the previous one, which is intact.",
                    str(self.folder), "; ".join(reasons),
                )  # fmt: skip
            # The next one replaces the other file, which is older or damaged.
            self._number, self._memory, self._path_end = head.number, memory, head.path
            return kept
        if reasons:
            raise ValueError(
                f"checkpoint={str(self.folder)!r} is damaged ({'; '.join(reasons)}): there is nothing to "
                "resume from. Use another folder to start again."
            )
        return None

    def _path(self, length: int, checksum: int) -> list[Any]:
        if not length:
            return []
        if not (self.folder / PATH).exists():
            raise ValueError(f"the file {PATH!r} is missing")
        records = Records(self.folder / PATH, length, checksum)
        try:
            return [decode(record) for record in records.read(self._path_begins)]
        except UnknownTypeError:
            raise
        except ValueError as error:
            raise ValueError(f"{PATH} cannot be read: {error}") from None
        finally:
            records.close()

    def reserve(self, size: int) -> None:
        """Reserve space for the next memory, of this many bytes, in the background."""
        self._room = self._submit(lambda: self._memory.reserve(size))

    def _submit(self, function: Callable[..., None], *arguments: Any) -> Future[None]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="swiftem-checkpoint")
        return self._pool.submit(function, *arguments)

    @property
    def is_busy(self) -> bool:
        """Whether the last checkpoint is still being written."""
        return self._job is not None and not self._job.done()

    def save(self, tree: Any, *, memory: NDArray[Any] | None = None, path: list[Any] | None = None) -> None:
        """Write a checkpoint: copied now, flushed to disk in the background.

        A memory of 256 MB is copied to the system's page cache, in 30 ms; its checksum and ``fsync`` take 130
        ms on another core. A buffer in between would take as long, and double the memory.

        Parameters
        ----------
        tree : nested structure
            A structure for :func:`swiftem.checkpoints.tree.encode`.
        memory : ndarray, shape (n, R), optional
            The memory; it may be written to again after the call.
        path : list, optional
            The records since the last checkpoint.

        Raises
        ------
        OSError
            If this checkpoint or the previous one cannot be written; the last good one is intact.
        """
        self.wait()
        began = perf_counter()
        records = [encode(entry, "what record returns") for entry in path or ()]
        if memory is not None:
            with self._whole():
                if self._room is not None:
                    self._room.result()
                self._memory.write(memory)
        content = encode(tree, "the state of the run")
        self._job = self._submit(self._write, content, records, memory is not None)
        self.seconds = perf_counter() - began

    def _write(self, content: bytes, records: list[bytes], with_memory: bool) -> None:
        """Flush everything to disk, the file with the locations last."""
        place: MemoryPlace | None = self._memory.sync() if with_memory else None
        end = self._path_end
        if records:
            path = Records(self.folder / PATH, *end)
            try:
                for record in records:
                    path.append(record)
                path.sync()
            finally:
                path.close()
            end = path.length, path.checksum
        head = StateHead(str(self.identity["run"]), self._number + 1, place, end)
        write_state(self.folder / STATES[head.number % 2], head, content)
        self._number, self._path_end = head.number, end

    def wait(self) -> None:
        """Wait until the last checkpoint is on disk."""
        job, self._job = self._job, None
        if job is not None:
            with self._whole():
                job.result()

    def _whole(self) -> Any:
        last = "the last good one is intact" if self._number else "there is none yet"
        return telling_where(self.folder, f"cannot be written to; {last}")

    def close(self) -> None:
        """Wait, and release the folder."""
        try:
            self.wait()
        finally:
            if self._pool is not None:
                self._pool.shutdown()
            self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:  # the first error matters more than a checkpoint that could not be written
            try:
                self.close()
            except OSError as error:
                log.warning("%s", error)


def read_identity(folder: Path) -> dict[str, Any]:
    """Return the description of the run in a folder, if it can be read."""
    try:
        found = decode(read_sealed(folder / BEGUN))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _reason(error: Exception) -> str:
    """Return an error of a file as part of a sentence."""
    text = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return text[:1].lower() + text[1:]


def _minor(version: Any) -> list[str]:
    """Return the major and minor version of a version text."""
    return str(version).split(".")[:2]


def _versions(of: dict[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {of.get(name)}" for name in names)


def _differing(name: str, theirs: Any, ours: Any) -> tuple[str, Any, Any]:
    """Return the difference of two runs: for an estimator's parameters the first one, by its name.

    >>> _differing("parameters", {"tol": 0.1, "n_init": 1}, {"tol": 0.1, "n_init": 2})
    ('n_init', 1, 2)
    """
    if name == "parameters" and isinstance(theirs, dict) and isinstance(ours, dict):
        names = [*ours, *(other for other in theirs if other not in ours)]
        name = next(one for one in names if theirs.get(one) != ours.get(one))
        return name, theirs.get(name), ours.get(name)
    return name, theirs, ours


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:300]}..."
