"""The checkpoints of one run of Algorithm 1.

A checkpoint is a position, not a history: θ, s and :class:`swiftem.core.result.State` determine everything
else, because draws are a function of k. Only the records grow; they are appended, never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from swiftem.core.checkpoint_folder import Allocate, Resume, Saved, Store, read_identity
from swiftem.core.checks import check_int
from swiftem.core.draws import Entropy
from swiftem.core.result import State
from swiftem.core.types import Array, Theta, Tree


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
    saved : Saved, optional
        The last checkpoint of the run.
    extra : callable, optional
        Returns further content for each checkpoint, a nested structure.
    closes : bool
        Whether the store is closed at the end of the run.
    """

    def __init__(
        self,
        store: Store,
        every: int,
        *,
        is_exact: bool = True,
        saved: Saved | None = None,
        extra: Callable[[], Tree] = lambda: None,
        closes: bool = True,
    ) -> None:
        self._store, self.every, self._is_exact = store, every, is_exact
        self._saved, self._extra, self._closes = saved, extra, closes
        self._last = -1, 0, False

    def load(self, check: Callable[[Position], None]) -> Position | None:
        """Return the saved state of the run, or None if it starts from the beginning.

        ``check`` raises an error if the run cannot resume from there; the message names the folder.
        """
        saved, self._saved = self._saved, None  # a memory is large: from now on only the run holds it
        if saved is None:
            return None
        with self._store.reading():
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
        return is_next and (self._is_exact or self._store.may_save)

    def save(self, position: Position) -> None:
        """Write a checkpoint."""
        state, memory = position.state, _memory_of(position.state.method)
        if memory is not None:
            state = state._replace(method=state.method._replace(memory=None))
        tree = position._replace(state=state, path=[])._asdict() | {"extra": self._extra()}
        self._store.save(tree, memory=memory, path=position.path[self._last[1] :])
        self._last = _progress(position)

    def end(self, position: Position) -> None:
        """Write the final state of the run, unless it was written last."""
        if _progress(position) != self._last:
            self.save(position)

    def __enter__(self) -> RunCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        if self._closes:
            self._store.close()


def _progress(position: Position) -> tuple[int, int, bool]:
    """Return what changes from one checkpoint to the next: k, the number of records, and whether it ended."""
    return position.state.k, len(position.path), position.stopped


def _memory_of(state: tuple[object, ...]) -> np.ndarray | None:
    """Return the memory in a method's state, which has its own files."""
    memory = getattr(state, "memory", None)
    return memory if isinstance(memory, np.ndarray) and memory.ndim == 2 else None


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
    allocate: Allocate = np.empty,
) -> RunCheckpoint | None:
    """Return the checkpoints of a run, None if there are none; raise an error if the folder cannot be used.

    Parameters
    ----------
    checkpoint : str, Path, RunCheckpoint or None
        The folder, or checkpoints opened by the caller.
    every, resume
        As in :func:`swiftem.run`.
    identity : callable
        Returns a description of the run, as for :class:`swiftem.core.checkpoint_folder.Store`.
    epoch : int
        Iterations between checkpoints if ``every`` is None.
    allocate : callable
        Allocates the array that a memory is read into: ``allocate(shape, dtype)``.
    """
    if isinstance(checkpoint, RunCheckpoint):
        return checkpoint
    if every is not None:
        every = check_int("checkpoint_every", every, minimum=1)
    if checkpoint is None:
        if every is not None or resume is not False:
            name = "resume" if every is None else "checkpoint_every"
            raise ValueError(f"{name} needs checkpoint, the folder for the checkpoints.")
        return None
    if not isinstance(checkpoint, str | Path):
        raise TypeError(f"checkpoint must be a folder, got {checkpoint!r}.")
    store = Store(Path(checkpoint), identity(), resume)
    store.allocate = allocate
    try:
        saved = store.load()
    except BaseException:
        store.close()
        raise
    return RunCheckpoint(store, every or epoch, is_exact=every is not None, saved=saved)


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
