"""Checkpoints of a fit: a folder for the call of ``fit``, with one subfolder per start."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from swiftem.core.checkpoint import Allocate, Resume, RunCheckpoint, Saved, Store
from swiftem.core.describe import describe, digest
from swiftem.fit.watch import NoStart
from swiftem.methods import Method

__all__ = ["KEEPING", "CheckpointedClones", "FitCheckpoint", "StartCheckpoint", "kept_apart"]

E = TypeVar("E")

KEEPING = ("checkpoint", "checkpoint_every", "resume")
"""Parameters of an estimator that control checkpoints, not the fit."""
ASIDE = ("verbose", "verbose_interval", "random_state", "memory_limit", "scratch", "device_memory_limit")
"""Parameters that do not change the result, and one that is compared separately."""


class StartCheckpoint(NoStart):
    """Checkpoints of the fit from one start.

    Parameters
    ----------
    store : Store
        The start's folder.
    every : int or None
        Evaluations of the objective between checkpoints; None: each one, unless that takes too much time.
    """

    def __init__(self, store: Store, every: int | None) -> None:
        self._store, self._every, self._passes = store, every, 0
        self._saved: Saved | None = None

    def load(self) -> Any:
        """Return the last saved state, or None."""
        self._saved = self._store.load()
        if self._saved is None:
            return None
        with self.reading():
            tree = self._saved.tree
            extra, is_between = tree["extra"], tree["state"] is None
        if is_between:
            self._saved = None
        return extra

    def reading(self) -> AbstractContextManager[None]:
        """Return a context for the use of a saved state; errors raised in it name the folder."""
        return self._store.reading()

    def save(self, place: Callable[[], Any], *, is_end: bool = False) -> None:
        """Save the state of a fit between two passes, if a checkpoint is due or the fit has ended."""
        self._passes += 1
        is_due = self._store.may_save if self._every is None else self._passes % self._every == 0
        if is_due or is_end:
            self._store.save({"state": None, "extra": place()})

    def of_run(self, method: Method, n: int, place: Callable[[], Any]) -> RunCheckpoint | None:
        """Return the checkpoints of a run; the first run after a restart resumes from them."""
        return RunCheckpoint(
            self._store,
            (self._every or 1) * method.epoch(n),
            is_exact=self._every is not None,
            read=self._take_saved,
            extra=place,
            closes=False,
        )

    def _take_saved(self) -> Saved | None:
        saved, self._saved = self._saved, None  # a memory is large: from now on only the run holds it
        return saved

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        self._store.close()


class CheckpointedClones:
    """Lets clones of an estimator keep their checkpoints apart, each fit in its own folder.

    ``GridSearchCV``, ``cross_val_score`` and others fit clones, with other parameters and to other rows,
    several at a time: in one folder each would find the fit of another.
    """

    checkpoint: str | os.PathLike[str] | None

    def __sklearn_clone__(self) -> Any:
        return kept_apart(super().__sklearn_clone__())  # type: ignore[misc]


def kept_apart(estimator: E) -> E:
    """Have the estimator's fits use a folder of their own in that of ``checkpoint``; return the estimator."""
    if getattr(estimator, "checkpoint", None) is not None:
        vars(estimator)["_is_clone"] = True
    return estimator


class Data(Protocol):
    """What checkpoints need from the data."""

    def fingerprint(self) -> str:
        """Return a text that changes if the data change."""
        ...


class FitCheckpoint:
    """The folder of one call of ``fit``: data shared by all fits, and one subfolder per fit.

    Parameters
    ----------
    estimator : estimator
        The estimator; ``checkpoint`` is the folder; for a clone, a subfolder named by parameters and data.
    data : Source, Documents or StreamedDocuments
        The training data.
    started_from : nested tuple or None
        Parameters of a warm start.

    Attributes
    ----------
    allocate : callable
        Allocates the array that a memory is read into: ``allocate(shape, dtype)``.
    """

    def __init__(self, estimator: Any, data: Data, started_from: Any = None) -> None:
        self._every: int | None = estimator.checkpoint_every
        parameters = estimator.get_params(deep=False)
        identity = {
            "kind": f"fit of {type(estimator).__name__}",
            "data": data.fingerprint(),
            **{name: describe(value) for name, value in parameters.items() if name not in KEEPING + ASIDE},
            "start": digest(started_from),
        }
        if isinstance(parameters["random_state"], Integral):
            # A generator has advanced since then: the folder has the draws from it.
            identity["random_state"] = describe(parameters["random_state"])
        self.folder = Path(os.fspath(estimator.checkpoint))
        if getattr(estimator, "_is_clone", False):
            self.folder /= f"clone-{digest(json.dumps(identity, sort_keys=True))}"
        resume: Resume = estimator.resume
        self._store = Store(self.folder, identity, resume)
        self._whose = ""
        self.allocate: Allocate = np.empty

    def starts(self, make: Callable[[], Any], check: Callable[[Any], None]) -> Any:
        """Return the starts of the fits and their seeds: as saved, or from ``make()``.

        ``check`` raises an error if the saved values cannot come from ``make()``.
        """
        saved = self._store.load()
        if saved is None:
            made = make()
            self._store.save(made)
        else:
            made = saved.tree
            with self._store.reading():
                check(made)
        self._whose = digest(made)
        return made

    def of_start(self, number: int) -> StartCheckpoint:
        """Return the checkpoints of one start."""
        identity = {"kind": "start", "number": number, "fit": self._whose}
        store = Store(self.folder / f"start-{number}", identity, "auto")
        store.allocate = self.allocate
        return StartCheckpoint(store, self._every)

    def __enter__(self) -> FitCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        self._store.close()
