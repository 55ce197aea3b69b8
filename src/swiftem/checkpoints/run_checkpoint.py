"""The checkpoints of one run of Algorithm 1.

A checkpoint is a position, not a history: θ, s and :class:`swiftem.result.State` determine everything else,
as draws are a function of k. Only the records grow; they are appended, never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import check_int
from swiftem._typing import Array, Theta
from swiftem.checkpoints.folder import Allocate
from swiftem.checkpoints.store import Kept, Resume, Store, read_identity
from swiftem.checkpoints.tree import describe, digest
from swiftem.data.draws import Entropy
from swiftem.data.source import Source
from swiftem.data.units.unit_source import UnitSource
from swiftem.files.durable import telling_damage
from swiftem.methods.method import Method
from swiftem.models.components import BoundComponents
from swiftem.models.gaussian_mixture import BoundGaussianMixture
from swiftem.models.model import BoundModel, Model
from swiftem.models.plsa import BoundPLSA
from swiftem.result import State

__all__ = [
    "NoCheckpoint",
    "Position",
    "RunCheckpoint",
    "check_form",
    "check_position",
    "kept_seed",
    "open_checkpoint",
]

SELDOM = 20.0
"""By default, checkpoints are at least this multiple of their own duration apart, and at least a second."""


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
    path: list[Any]


Check = Callable[[Position], None]


class NoCheckpoint:
    """Stands in for :class:`RunCheckpoint`, with the same interface, if there are no checkpoints."""

    def load(self, check: Check = lambda position: None) -> Position | None:
        """Return the saved state of the run, or None if it starts from the beginning.

        ``check`` raises an error if the run cannot resume from there.
        """
        return None

    def begin(self, state: Any) -> None:
        """Prepare for the method's state before the first iteration."""

    def next(self, k: int, stop: int) -> int:
        """Return the k at which a run at ``k`` must pause for a checkpoint, at most ``stop``."""
        return stop

    def is_due(self, k: int) -> bool:
        """Tell whether a checkpoint is due."""
        return False

    def save(self, position: Position) -> None:
        """Write a checkpoint."""

    def end(self, position: Callable[[], Position]) -> None:
        """Write the final state of the run."""

    def __enter__(self) -> NoCheckpoint:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release the folder."""


class RunCheckpoint(NoCheckpoint):
    """Checkpoints of a run in its own store.

    Parameters
    ----------
    store : Store
        The open folder.
    every : int
        Iterations between checkpoints.
    is_exact : bool
        Whether every checkpoint is written; otherwise only if it takes a small share of the run's time.
    kept : Kept, optional
        The last saved state of the run.
    extra : callable, optional
        Returns further content for each checkpoint, a nested structure.
    closes : bool
        Whether the store is closed at the end of the run.
    """

    def __init__(
        self, store: Store, every: int, *, is_exact: bool = True, kept: Kept | None = None,
        extra: Callable[[], Any] = lambda: None, closes: bool = True,
    ) -> None:  # fmt: skip
        self._store, self._every, self._is_exact = store, every, is_exact
        self._kept, self._extra, self._closes = kept, extra, closes
        self._saved, self._in_file, self._when = -1, 0, perf_counter()
        self._written = -1, 0, False

    def load(self, check: Check = lambda position: None) -> Position | None:
        """Return the saved state of the run, or None if it starts from the beginning.

        ``check`` raises an error if the run cannot resume from there; the message names the folder.
        """
        kept, self._kept = self._kept, None  # a memory is large: from now on only the run holds it
        if kept is None:
            return None
        with telling_damage(self._store.folder):
            state: State = kept.tree["state"]
            if kept.memory is not None:
                state = state._replace(method=state.method._replace(memory=kept.memory))
            theta, s, recorded, stopped = (kept.tree[name] for name in ("theta", "s", "recorded", "stopped"))
            position = Position(theta, s, state, recorded, bool(stopped), kept.path)
            check(position)
        self._note(position)
        return position

    def begin(self, state: Any) -> None:
        """Reserve space for the memory."""
        memory = _memory_of(state)
        if memory is not None and self._saved < 0:
            self._store.reserve(memory.nbytes)

    def next(self, k: int, stop: int) -> int:
        """Return the k at which a run at ``k`` must pause for a checkpoint, at most ``stop``."""
        return min(stop, (k // self._every + 1) * self._every)

    def is_due(self, k: int) -> bool:
        """Tell whether a checkpoint is due."""
        if k % self._every or k == self._saved:
            return False
        since = perf_counter() - self._when
        return self._is_exact or not (self._store.is_busy or since < max(1.0, SELDOM * self._store.seconds))

    def end(self, position: Callable[[], Position]) -> None:
        """Write the final state of the run, unless it was written last."""
        ended = position()
        if (ended.state.k, len(ended.path), ended.stopped) != self._written:
            self._save(ended)
        self._store.wait()

    def save(self, position: Position) -> None:
        """Write a checkpoint, and reserve space for the next."""
        self._save(position)
        memory = _memory_of(position.state.method)
        if memory is not None:
            self._store.reserve(memory.nbytes)

    def _save(self, position: Position) -> None:
        state, memory = position.state, _memory_of(position.state.method)
        if memory is not None:
            state = state._replace(method=state.method._replace(memory=None))
        tree = {
            "theta": position.theta, "s": position.s, "state": state, "recorded": position.recorded,
            "stopped": position.stopped, "extra": self._extra(),
        }  # fmt: skip
        self._store.save(tree, memory=memory, path=position.path[self._in_file :])
        self._note(position)

    def _note(self, position: Position) -> None:
        self._saved, self._in_file, self._when = position.state.k, len(position.path), perf_counter()
        self._written = self._saved, self._in_file, position.stopped

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release the folder."""
        if self._closes:
            self._store.__exit__(kind)


def _memory_of(state: Any) -> NDArray[Any] | None:
    """Return the memory in a method's state, which has its own files."""
    memory = getattr(state, "memory", None)
    return memory if isinstance(memory, np.ndarray) and memory.ndim == 2 else None


def kept_seed(checkpoint: Any, resume: Resume, drawn: Entropy) -> Entropy:
    """Return the seed's words from the folder, if a run without a seed resumes there; else ``drawn``.

    A folder that cannot be read is ignored here: :func:`open_checkpoint` reports the error.
    """
    if not isinstance(checkpoint, str | Path) or resume is False:
        return drawn
    kept = read_identity(Path(checkpoint)).get("seed")
    try:
        found = np.array(kept, dtype=np.uint32)
    except (TypeError, ValueError, OverflowError):
        return drawn
    return found if found.shape == drawn.shape else drawn


def open_checkpoint(
    checkpoint: Any, every: int | None, resume: Resume, *, model: Model, method: Method, source: Source,
    entropy: Entropy, start: Any, draws: Any, first: int, n_iter: Any, record_every: int, kernels: str,
    allocate: Allocate = np.empty,
) -> NoCheckpoint:  # fmt: skip
    """Return the checkpoints of a run, or raise an error if the folder cannot be used.

    Parameters
    ----------
    checkpoint : str, Path, NoCheckpoint or None
        The folder, or checkpoints opened by the caller.
    every, resume
        As in :func:`swiftem.run`.
    model, method, source, entropy, draws, n_iter, record_every, kernels
        Description of the run.
    start : tuple
        The given start of the run.
    first : int
        Its first iteration.
    allocate : callable
        Allocates the array that a memory is read into: ``allocate(shape, dtype)``.
    """
    if isinstance(checkpoint, NoCheckpoint):
        return checkpoint
    if every is not None:
        every = check_int("checkpoint_every", every, minimum=1)
    if checkpoint is None:
        if every is not None or resume is not False:
            name = "resume" if every is None else "checkpoint_every"
            raise ValueError(f"{name} needs checkpoint, the folder for the checkpoints.")
        return NoCheckpoint()
    if not isinstance(checkpoint, str | Path):
        raise TypeError(f"checkpoint must be a folder, got {checkpoint!r}.")
    # Draws from a seed do not depend on the length of a run: it may be extended.
    is_fixed = draws is not None or not isinstance(n_iter, Integral)
    identity = {
        "kind": "run", "model": describe(model), "method": describe(method), "data": source.fingerprint(),
        "seed": entropy.tolist(), "start": digest(*start), "draws": _of_draws(draws),
        "first iteration": first, "n_iter": describe(n_iter) if is_fixed else "any",
        "record_every": record_every, "kernels": kernels,
    }  # fmt: skip
    store = Store(Path(checkpoint), identity, resume)
    store.allocate = allocate
    try:
        kept = None if store.is_new else store.load()
    except BaseException:
        store.close()
        raise
    return RunCheckpoint(store, every or method.epoch(source.n), is_exact=every is not None, kept=kept)


def _of_draws(draws: Any) -> str | None:
    if draws is None:
        return None
    return digest(*map(np.asarray, draws)) if isinstance(draws, tuple) else digest(np.asarray(draws))


OURS = ("swiftem.models.", "swiftem.methods.")
"""Modules whose types have fixed shapes; values of other types may vary."""


def check_position(
    at: Position, model: BoundModel, method: Method, source: Source, theta: Theta, entropy: Entropy
) -> None:
    """Raise ValueError or TypeError unless the run can resume from ``at``.

    Parameters
    ----------
    at : Position
        As read from the checkpoint.
    model, method, source, entropy
        Those of the run.
    theta : NamedTuple
        Parameters of the right form: given or drawn as the start of the run.
    """
    state = at.state
    if not isinstance(state, State) or (state.name, state.n) != (method.name, source.n):
        raise ValueError(f"it is not of {method.name} on {source.n} samples")
    if not np.array_equal(state.entropy, entropy):
        raise ValueError("its seed differs")
    numbers = (state.k, state.evaluations, state.rejected)
    if not all(type(number) is int and number >= 0 for number in numbers) or type(at.recorded) is not int:
        raise ValueError("its counts are invalid")
    check_form("theta", at.theta, theta)
    model.unpack(at.s)
    if at.s.dtype != np.float64 or at.s.ndim != 1:
        raise ValueError("s has a different form")
    memory: Any = getattr(state.method, "memory", None)
    if method.remembers:
        rows = None if isinstance(source, UnitSource) else _row_length(model)
        if np.shape(memory)[:1] != (source.n,) or rows not in (None, np.shape(memory)[-1]):
            raise ValueError("the memory has a different size")
    check_form("the method's state", state.method, method.init(theta, at.s, memory))


def _row_length(model: BoundModel) -> int | None:
    """Return how many numbers per sample a memory has, None if only an E-step can tell."""
    if isinstance(model, BoundComponents):
        return model.row_length
    if isinstance(model, BoundGaussianMixture):
        return model.model.n_components
    return model.model.n_topics if isinstance(model, BoundPLSA) else None


def check_form(name: str, value: Any, like: Any) -> None:
    """Raise TypeError unless two values have the same type, and their arrays the same shapes.

    >>> check_form("s", np.zeros(3), np.ones(2))
    Traceback (most recent call last):
    TypeError: s has a different form
    """
    same = type(value) is type(like)
    if isinstance(like, tuple) and type(like).__module__.startswith(OURS):
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
