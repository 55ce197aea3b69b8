"""The starts of a fit, as a function of the problem, the settings and random numbers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

import numpy as np

from swiftem.core.problem import Problem
from swiftem.kernels.threads import one_thread
from swiftem.mixture.compute.batched import is_batchable
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.em_of_candidates import em_of_candidates
from swiftem.mixture.starts.named_starts import make_start
from swiftem.mixture.starts.race import NUMBERS, has_few_rows, race
from swiftem.mixture.starts.sample_of_rows import draw_sample, on_rows
from swiftem.mixture.starts.settings import Start, StartSettings, until_interrupted

EM_FIRST = 8
"""Passes of em on a sample before another method, if components have one row each."""

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
    if not settings.is_default or problem.bound.n_components == 1:
        return "named"
    if not has_few_rows(problem):
        return "race"
    return "few" if is_batchable(problem) else "named"


def find_starts(
    problem: Problem,
    settings: StartSettings,
    random_state: np.random.RandomState,
    *,
    is_for_em: bool = True,
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
    is_for_em : bool
        Whether em follows. Other methods do not widen components of one row: they get a few passes of em.

    Raises
    ------
    StartInterrupted
        After Ctrl-C, with the best start so far.
    """
    with one_thread() if problem.placement.form == "numpy" else nullcontext():  # as in passes
        if kind_of_start(problem, settings) in ("race", "few"):
            return [race(problem, settings, random_state)]
        made = (make_start(problem, settings, random_state) for _ in range(settings.n_init))
        is_narrow = kind_of_start(problem, settings) == "named" and settings.is_of_single_rows
        return until_interrupted(made if is_for_em or not is_narrow else (_widened(problem, s) for s in made))


def _widened(problem: Problem, start: Start) -> Start:
    """Return a start after passes of em on a sample, or the same one if there is no M-step."""
    dither = isinstance(problem.bound, BoundGaussians)
    sample = draw_sample(problem.source, NUMBERS, np.random.default_rng(0), dither=dither)
    try:
        some = on_rows(problem, sample.first(NUMBERS.sample))
        theta = em_of_candidates(some, [start.theta], EM_FIRST, 0.0)[0].theta
    except ValueError:  # no coefficients
        theta = None
    return start if theta is None else Start(theta, None, start.empty, raced=True)
