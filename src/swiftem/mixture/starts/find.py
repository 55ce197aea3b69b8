"""The starts of a fit, as a function of the problem, the settings and random numbers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

import numpy as np

from swiftem.core.problem import Problem
from swiftem.kernels.threads import one_thread
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.few import best_of_few, compares_few
from swiftem.mixture.starts.initial import make_start
from swiftem.mixture.starts.race import raced_start
from swiftem.mixture.starts.sample import has_rows_to_race, is_scarce
from swiftem.mixture.starts.start import Start, StartSettings, until_interrupted

__all__ = ["KindOfStart", "find_starts", "kind_of_start"]

KindOfStart = Literal["given", "own", "race", "few", "named"]


def kind_of_start(problem: Problem, settings: StartSettings) -> KindOfStart:
    """Return how a fit starts.

    "given": all parameters are given. "own": by the callable. "race": the best of several candidates,
    compared on rows held out. "few": the best of several, compared on all rows, as there are few. "named": by
    ``init_params``, which is k-means where there can be no race.
    """
    if len(settings.given) == len(problem.bound.like()):
        return "given"
    if settings.own is not None:
        return "own"
    if settings.is_default and has_rows_to_race(problem) and not is_scarce(problem):
        return "race"
    if settings.is_default and compares_few(problem):
        return "few"
    return "named"


def find_starts(
    problem: Problem, settings: StartSettings, random_state: np.random.RandomState
) -> list[Start]:
    """Return the starts of a fit: one after a race, else ``n_init``.

    Parameters
    ----------
    problem : Problem
        Model and data.
    settings : StartSettings
        What else they depend on.
    random_state : RandomState
        Source of randomness.

    Raises
    ------
    StartInterrupted
        After Ctrl-C, with the best start so far.
    """
    kind = kind_of_start(problem, settings)
    with one_thread() if problem.placement.form == "numpy" else nullcontext():  # as in passes
        if kind == "race":
            return [raced_start(problem, settings, random_state)]
        if kind == "few":
            return [best_of_few(problem, settings, random_state)]
        starts = until_interrupted(
            make_start(problem, settings, random_state) for _ in range(settings.n_init)
        )
        asked = settings.moves != "auto" and settings.moves > 0 and not settings.is_default
        if asked and isinstance(problem.bound, BoundGaussians) and has_rows_to_race(problem):
            starts = until_interrupted(raced_start(problem, settings, random_state, one) for one in starts)
        return starts
