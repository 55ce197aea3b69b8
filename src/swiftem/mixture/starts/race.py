r"""Races between starts: several cheap candidates, halved in rounds, of which the best one is fitted.

Candidates of several kinds (:mod:`swiftem.mixture.starts.candidate_starts`) are improved by em on a few rows
of a sample. After each round they are compared by

.. math:: -\mathrm{Pen}(\theta) + \frac{1}{W} \sum_{i \in H} w_i \log g(y_i; \theta),

where H are rows of the sample that none of them was fitted to. The better ones continue with twice as many
rows. The last one is improved by :mod:`swiftem.mixture.starts.split_and_merge`, fitted to the sample, and
starts the fit. All E-steps are those of the fit, on a bounded number of rows.

If there are few rows, all of them are the sample, and H are all rows. One candidate is then the start by
k-means that scikit-learn has for the same seed. It is kept unless another one is clearly better: where all
starts agree, so do the fits.

Candidates are independent of each other and their sums keep their order, so that the same seed gives the same
start at any number of threads. The numbers of a race (:class:`swiftem.mixture.starts.settings.RaceSettings`)
were chosen on ``CHOOSING`` in ``benchmarks/optima_data.py``, see ``benchmarks/DECISIONS.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.loop import DeferredInterrupt
from swiftem.core.problem import Problem
from swiftem.core.types import Theta
from swiftem.fit.validated import rows_of
from swiftem.kernels.threads import get_threads, one_thread_blas
from swiftem.mixture.compute.batched import BatchedCompute, is_batchable
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.candidate_starts import candidate_starts, kinds_for
from swiftem.mixture.starts.collapsed_components import on_few_values
from swiftem.mixture.starts.em_of_candidates import Improved, em_of_candidates
from swiftem.mixture.starts.named_starts import make_start
from swiftem.mixture.starts.sample_of_rows import Sample, draw_sample, on_rows
from swiftem.mixture.starts.settings import RaceSettings, Start, StartInterrupted, StartSettings
from swiftem.mixture.starts.split_and_merge import Move, proposed_moves

NUMBERS = RaceSettings()
"""The numbers of all races."""
TRIES, MOST_TRIED = 4, 8
"""Number of single moves tried at a time, whatever the number of threads, and in all from the same
parameters."""
LITTLE = 2e-3
"""After a move that gains less per row, only those are tried that promise a gain."""
ALIKE = 1e-3
"""Candidates whose values differ by less have most likely found the same optimum."""
AFTER_MOVE, AFTER_BEST_MOVES = 4, 8
"""Passes of em after a move, and of the better half of the moves after them."""
FEW_PASSES, LAST_FEW_PASSES = 6, 25
"""Passes of em on few rows, before and after most candidates are given up."""
END = 0.003
"""Gain per pass at which the fit to the sample ends, in units of ``tol`` of the fit."""
LOOKING = 4
"""What finding moves counts for, in passes."""


class Candidate(NamedTuple):
    """Parameters, their value in comparisons, the number of moves, and whether the start was named."""

    theta: Theta
    value: float = -inf
    moves: int = 0
    is_named: bool = False


class Round(NamedTuple):
    """Number of rows, passes of em on them, and number of candidates that continue."""

    rows: int
    passes: int
    kept: int


class Trials:
    """Fits of candidates to rows of a sample, and their comparison.

    Parameters
    ----------
    problem : Problem
        Model and data.
    sample : Sample or None
        Rows that candidates are fitted to, and others; None for all rows, on which they are compared, too.
    settings : RaceSettings
        Tolerance of em, and what a collapsed component costs.
    pool : ThreadPoolExecutor
        Threads.
    check : callable
        Called between passes; it may raise.

    Attributes
    ----------
    best : Candidate or None
        The best one so far.
    tolerated : int
        Number of collapsed components that cost nothing.
    evaluations : int
        Number of E-step evaluations.
    """

    def __init__(
        self,
        problem: Problem,
        sample: Sample | None,
        settings: RaceSettings,
        pool: ThreadPoolExecutor,
        check: Callable[[], None],
    ) -> None:
        self.problem, self.sample, self.settings, self.pool, self.check = (
            problem,
            sample,
            settings,
            pool,
            check,
        )
        self.held = problem if sample is None else on_rows(problem, sample.held)
        self._batched: tuple[Problem, BatchedCompute | None] = self.held, _batched(self.held, check)
        self._held_batched = self._batched[1]
        self._problems: dict[int, Problem] = {}
        some = problem.source.take(np.arange(problem.source.n)).y if sample is None else sample.seen.y
        self._spread = np.nanvar(some.reshape(len(some), -1), axis=0, dtype=np.float64)
        self.best: Candidate | None = None
        self.tolerated = self.evaluations = 0

    def on(self, rows: int) -> Problem:
        """Return the problem on the first rows, or on the whole sample."""
        if self.sample is None:
            return self.problem
        rows = min(rows, self.sample.seen.n + self.sample.held.n)
        if rows not in self._problems:
            self._problems[rows] = on_rows(self.problem, self.sample.first(rows))
        return self._problems[rows]

    def improved(
        self, candidates: Sequence[Candidate], on: Problem, passes: int, tol: float | None = None
    ) -> list[Candidate]:
        """Return candidates after some passes of em, best first, without those that have no M-step."""
        ends = self._em(
            [one.theta for one in candidates], on, passes, self.settings.tol if tol is None else tol
        )
        self.evaluations += on.source.n * sum(end.passes for end in ends)
        pairs = [(one, end.theta) for one, end in zip(candidates, ends, strict=True) if end.theta is not None]
        objectives = self._objectives([theta for _, theta in pairs])
        found = [
            one._replace(theta=theta, value=self._value(theta, float(objective), on.source.n))
            for (one, theta), objective in zip(pairs, objectives, strict=True)
        ]
        found = sorted(found, key=lambda one: -one.value)
        if found and (self.best is None or found[0].value > self.best.value):
            self.best = found[0]
        return found

    def _em(self, thetas: list[Theta], on: Problem, passes: int, tol: float) -> list[Improved]:
        """Return candidates after em: all of them at once, if that is possible."""
        if on is not self._batched[0]:
            self._batched = on, None  # the memory is free before the next one is made
            self._batched = on, _batched(on, self.check)
        if self._batched[1] is not None:
            try:
                return em_of_candidates(on, thetas, passes, tol, self.check, self._batched[1])
            except ValueError:  # rows are too far away from one of them
                pass

        def alone(theta: Theta) -> Improved:
            try:
                return em_of_candidates(on, [theta], passes, tol, self.check)[0]
            except ValueError:  # no coefficients
                return Improved(None, 0)

        return list(self.pool.map(alone, thetas))

    def _objectives(self, thetas: list[Theta]) -> Iterable[float]:
        if self._held_batched is not None and thetas:
            try:
                return self._held_batched.passes(thetas, statistics=False)[1]
            except ValueError:
                pass
        return list(self.pool.map(lambda theta: self.held.compute.objective(theta), thetas))

    def _value(self, theta: Theta, objective: float, n: int) -> float:
        """Return minus the objective, without what collapsed components gain."""
        further = self.collapsed(theta, n) - self.tolerated
        if further > 0:
            objective += self.settings.collapse * further if self.sample is not None else inf
        return -objective if isfinite(objective) else -inf

    def collapsed(self, theta: Theta, n: int) -> int:
        """Return how many components sit on a few of n rows, or on repeated values."""
        if not isinstance(self.problem.bound, BoundGaussians):
            return 0
        rows: Any = self.problem.source if self.sample is None else self.sample.seen
        return len(on_few_values(self.problem.bound, theta, self._spread, rows, n))

    def heat(self, candidates: Sequence[Candidate], rounds: Sequence[Round]) -> list[Candidate]:
        """Successive halving: return the last candidates, best first."""
        if self.best is None and candidates:  # it is there after Ctrl-C in the first round
            self.best = candidates[0]
        for rows, passes, kept in rounds:
            candidates = self.improved(candidates, self.on(rows), passes)[:kept]
        return list(candidates)


def _batched(on: Problem, check: Callable[[], None]) -> BatchedCompute | None:
    return BatchedCompute(on, check) if is_batchable(on) else None


def race(
    problem: Problem,
    settings: StartSettings,
    random_state: np.random.RandomState,
) -> Start:
    """Return the best of several starts; one by k-means, if no candidate has an M-step on the sample.

    Raises
    ------
    StartInterrupted
        After Ctrl-C, with the best candidate so far.
    """
    few, numbers = has_few_rows(problem), NUMBERS
    first = make_start(problem, settings, random_state) if few else None
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    with one_thread_blas(), DeferredInterrupt() as interrupt, ThreadPoolExecutor(get_threads()) as pool:
        sample = None
        if first is None:
            dither = isinstance(problem.bound, BoundGaussians)
            sample = draw_sample(problem.source, numbers, rng, dither=dither)
        trials = Trials(problem, sample, numbers, pool, interrupt.check)
        try:
            try:
                if first is not None:
                    won = _among_few(trials, first, settings.n_init, rng)
                else:
                    won = _among_many(trials, settings, rng)
            finally:  # whatever came of it, Ctrl-C is not lost
                interrupt.check()
        except KeyboardInterrupt:
            if first is None and trials.best is None:
                raise
            raise StartInterrupted(_start(trials.best) or first) from None
    return _start(won) or first or make_start(problem, settings, random_state)


def _start(best: Candidate | None) -> Start | None:
    return None if best is None else Start(best.theta, None, 0, True, best.moves)


def has_few_rows(problem: Problem) -> bool:
    """Return whether there are too few rows to hold some out."""
    n, count, numbers = rows_of(problem.source), int(problem.bound.n_components), NUMBERS
    if n < max(numbers.least_per_component * count, numbers.least_rows):
        return True
    is_scarce = n < min(numbers.scarce_rows, numbers.scarce_per_number * problem.bound.size)
    return is_scarce and is_batchable(problem) and numbers.few_work // _pass_time(problem) > 3


def _pass_time(problem: Problem) -> float:
    """Return the time of a pass: logits, and products with features, 50 of which are one."""
    return float(problem.source.n * (problem.bound.n_components + problem.bound.size / 50))


def _among_few(trials: Trials, first: Start, n_init: int, rng: np.random.Generator) -> Candidate | None:
    """Return the best of several candidates on all rows, or None if the first start is as good."""
    numbers, on = trials.settings, trials.problem
    count = int(np.clip(numbers.few_work // _pass_time(on), 16, numbers.few_candidates)) - 1
    named = Candidate(first.theta, is_named=True)
    # A component on few rows has a likelihood without bound: no more of them than from the first start.
    for end in em_of_candidates(on, [first.theta], FEW_PASSES, numbers.tol, trials.check):
        trials.tolerated = 0 if end.theta is None else trials.collapsed(end.theta, on.source.n)
    contenders: list[Candidate] = []
    for more in (count, n_init - 1):  # what n_init = 1 ends with is among them: more is no worse
        starts = candidate_starts(on, kinds_for(on.bound, few=True), more, rng, trials.pool.map)
        left = trials.improved([Candidate(theta) for theta in starts], on, FEW_PASSES)
        contenders += trials.improved([named, *left[: max(3, more // 8)]], on, LAST_FEW_PASSES)
    enough = max((one.value for one in contenders if one.is_named), default=-inf) + numbers.margin
    return max((one for one in contenders if one.value > enough), key=lambda one: one.value, default=None)


def _among_many(trials: Trials, settings: StartSettings, rng: np.random.Generator) -> Candidate | None:
    """Return the best candidate on a sample, after moves; each further ``n_init`` adds a candidate."""
    numbers, contenders = trials.settings, list[Candidate]()
    tol = min(0.1 * numbers.tol, END * settings.tol)
    whole = trials.on(numbers.sample)
    for count in (numbers.candidates, settings.n_init - 1):
        best = _best_of_heat(trials, count, rng) if count else None
        if best is not None:
            contenders += trials.improved([best], whole, numbers.last_passes, tol) or [best]
    # What n_init = 1 ends with is among them: more is no worse.
    return min(contenders, key=lambda one: whole.compute.objective(one.theta), default=None)


def _best_of_heat(trials: Trials, count: int, rng: np.random.Generator) -> Candidate | None:
    """Return the best of ``count`` candidates after successive halving and moves."""
    numbers, problem = trials.settings, trials.problem
    size, n = int(problem.bound.size), rows_of(problem.source)
    assert trials.sample is not None
    seen, work = trials.sample.seen.n, min(numbers.work, n * numbers.work_per_row)
    rows = min(seen, max(numbers.least_rows, numbers.first_per_number * size))
    wide = max(numbers.move_rows, numbers.move_per_number * size)
    wide = min(seen, max(wide, min(n // numbers.move_share, numbers.most_per_number * size)))
    starts = candidate_starts(trials.on(rows), kinds_for(problem.bound), count, rng, trials.pool.map)
    rounds, kept = [], len(starts)
    while kept > numbers.finalists:
        kept = max(numbers.finalists, -(-kept // 2))
        rounds.append(Round(rows, numbers.passes, kept))
        rows = min(2 * rows, seen)
    rows = min(max(rows, numbers.move_rows), wide)
    passes = int(np.clip(work // (8 * numbers.finalists * rows), numbers.passes, numbers.last_passes))
    finalists = trials.heat([Candidate(theta) for theta in starts], [*rounds, Round(rows, passes, kept)])
    if not finalists:
        return None
    best, on = finalists[0], trials.on(wide)
    if wide > rows:
        best = (trials.improved([best], on, numbers.passes) or [best])[0]
    agree = len(finalists) > 1 and best.value - finalists[1].value < ALIKE
    return _after_moves(trials, best, on, work, TRIES if agree else MOST_TRIED)


def _after_moves(trials: Trials, best: Candidate, on: Problem, work: int, tried: int) -> Candidate:
    """Return a candidate after the moves that raise the likelihood of the held-out rows."""
    numbers, n = trials.settings, on.source.n
    cost = n * (LOOKING + TRIES * AFTER_MOVE + TRIES // 2 * AFTER_BEST_MOVES)
    while best.moves < numbers.moves and trials.evaluations + cost < work:
        sure, others = proposed_moves(on, trials.held, best.theta, tried, numbers.least_gain)
        trials.evaluations += LOOKING * n
        waiting = [sure] if sure else []
        waiting += [others[k : k + TRIES] for k in range(0, len(others), TRIES)]
        before = best
        while best is before and waiting and trials.evaluations + cost < work:
            best = _best_move(trials, best, on, waiting.pop(0)) or best
        if best is before:
            break
        if best.value - before.value < LITTLE:
            tried = 0
    return best


def _best_move(trials: Trials, best: Candidate, on: Problem, moves: Sequence[Move]) -> Candidate | None:
    """Return the best of a few moves, or None if none gains on rows held out and on others."""
    tried = [Candidate(move.theta, moves=best.moves + move.number) for move in moves]
    tried = trials.improved(tried, on, AFTER_MOVE)
    tried = trials.improved(tried[: -(-len(tried) // 2)], on, AFTER_BEST_MOVES)
    better = [one for one in tried if one.value > best.value + trials.settings.least_gain]
    if better:  # on rows held out alone, a few far rows may decide
        most = on.compute.objective(best.theta)
        better = [one for one in better if on.compute.objective(one.theta) < most]
    return better[0] if better else None
