"""Checkpoints of a fit: a folder for the call of ``fit``, with one subfolder per start."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

import numpy as np

from swiftem.core.checkpoint import Allocate, Resume, Store
from swiftem.core.checks import check_int, shown
from swiftem.core.describe import describe, digest
from swiftem.fit.driver import StartCheckpoint

__all__ = ["FitCheckpoint", "Place", "checkpoint", "identity_of", "kept_apart", "place_of"]

E = TypeVar("E")

ASIDE = ("verbose", "verbose_interval", "random_state")
"""Parameters that do not change the result, and one that is compared separately."""


@dataclass
class Place:
    """Where one fit keeps its checkpoints, with its clones and candidates.

    Attributes
    ----------
    folder : Path
        The folder.
    every : int or None
        Evaluations of the objective between checkpoints.
    resume : bool or "auto"
        Whether to resume.
    is_open : bool
        Whether the block of :func:`checkpoint` has not ended.
    is_used : bool
        Whether a fit has begun in the block, or a clone was made.
    """

    folder: Path
    every: int | None
    resume: Resume
    is_open: bool = True
    is_used: bool = False


_place: ContextVar[Place | None] = ContextVar("swiftem_checkpoint", default=None)


@contextmanager
def checkpoint(
    folder: str | os.PathLike[str], *, every: int | None = None, resume: bool | Literal["auto"] = False
) -> Iterator[None]:
    """Keep checkpoints of the one fit in a block: a killed fit resumes, with the same result to the bit.

    Parameters
    ----------
    folder : path
        Folder for the checkpoints. Clones of an estimator, which ``GridSearchCV`` makes, and the candidates
        of :func:`swiftem.select` each have a subfolder.
    every : int, optional
        Evaluations of the objective (passes of em, epochs of other methods) between checkpoints. By default
        every one, unless that takes too much time.
    resume : bool or "auto"
        Whether the fit resumes from the folder. True: the folder must have a fit; False: it must have none;
        "auto": resume if there is one, else start.

    Examples
    --------
    >>> import numpy as np, pathlib, swiftem, tempfile
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> with tempfile.TemporaryDirectory() as temporary:
    ...     with swiftem.checkpoint(pathlib.Path(temporary, "fit"), resume="auto"):
    ...         mixture = swiftem.GaussianMixture(2, random_state=0).fit(X)
    """
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder must be a path, got {shown(folder)}.")
    if every is not None:
        check_int("every", every, minimum=1)
    if not (isinstance(resume, bool | np.bool_) or resume == "auto"):
        raise ValueError(f"resume must be True, False or 'auto', got {shown(resume)}.")
    if _place.get() is not None:
        raise ValueError("checkpoint must not be used within another one: each is for one fit.")
    place = Place(Path(os.fspath(folder)), every, resume if resume == "auto" else bool(resume))
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)
        place.is_open = False
    if not place.is_used:
        raise ValueError(f"checkpoint must have one fit in its block, got none: {place.folder} has nothing.")


def place_of(own: Place | None) -> tuple[Place, bool] | None:
    """Return where a fit that begins now keeps its checkpoints, and whether it needs a subfolder.

    ``own`` is the place of an estimator that was cloned in a block of :func:`checkpoint`: it keeps its fits
    apart in the block's folder.
    """
    if own is not None and own.is_open:
        return own, True
    place = _place.get()
    if place is None:
        return None
    if place.is_used:
        raise ValueError("checkpoint must have one fit in its block, got another: use a block for each fit.")
    place.is_used = True
    return place, False


def kept_apart(estimator: E, place: Place | None = None) -> E:
    """Give the estimator's fits folders of their own in the current block's; return the estimator.

    ``place`` is the block's folder if the call is in another thread or process.
    """
    place = _place.get() or place
    if place is not None and place.is_open:
        place.is_used = True
        vars(estimator)["_checkpoint"] = place
    return estimator


class FitCheckpoint:
    """The folder of one call of ``fit``: data shared by all fits, and one subfolder per fit.

    Parameters
    ----------
    place : tuple of Place and bool, or None
        The folder, and whether the fit has a subfolder named by its identity; None: there are no checkpoints.
    identity : dict
        Description of the fit, as for :class:`swiftem.core.checkpoint.Store`.

    Attributes
    ----------
    allocate : callable
        Allocates the array that a memory is read into: ``allocate(shape, dtype)``.
    """

    def __init__(
        self, place: tuple[Place, bool] | None = None, identity: dict[str, object] | None = None
    ) -> None:
        self.allocate: Allocate = np.empty
        self._store: Store | None = None
        self._every, self._whose = None, ""
        if place is not None and identity is not None:
            to, is_apart = place
            folder = to.folder
            if is_apart:
                folder /= f"clone-{digest(json.dumps(identity, sort_keys=True))}"
            self._store, self._every = Store(folder, identity, to.resume), to.every

    def starts(self, make: Callable[[], E], check: Callable[[Any], None]) -> E:
        """Return the starts of the fits and their seeds: as saved, or from ``make()``.

        ``check`` raises an error if the saved values cannot come from ``make()``.
        """
        if self._store is None:
            return make()
        saved = self._store.load()
        if saved is None:
            made = make()
            self._store.save(made)
        else:
            made = cast(E, saved.tree)
            with self._store.reading():
                check(made)
        self._whose = digest(made)
        return made

    def of_start(self, number: int) -> StartCheckpoint:
        """Return the checkpoints of one start."""
        if self._store is None:
            return StartCheckpoint()
        identity = {"kind": "start", "number": number, "fit": self._whose}
        store = Store(self._store.folder / f"start-{number}", identity, "auto")
        store.allocate = self.allocate
        return StartCheckpoint(store, self._every)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        if self._store is not None:
            self._store.close()


def identity_of(
    name: str, parameters: Mapping[str, Any], fingerprint: str, started_from: Any
) -> dict[str, object]:
    """Return what a fit must have in common with the one that it resumes.

    Parameters
    ----------
    name : str
        Name of the estimator's class.
    parameters : mapping
        The estimator's parameters.
    fingerprint : str
        A text that changes if the training data change.
    started_from : nested tuple or None
        Parameters of a warm start.
    """
    identity = {
        "kind": f"fit of {name}",
        "data": fingerprint,
        **{name: describe(value) for name, value in parameters.items() if name not in ASIDE},
        "start": digest(started_from),
    }
    if isinstance(parameters["random_state"], Integral):
        # A generator has advanced since then: the folder has the draws from it.
        identity["random_state"] = describe(parameters["random_state"])
    return identity
