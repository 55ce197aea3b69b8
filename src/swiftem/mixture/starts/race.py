r"""Starts of a fit, and races between them: several cheap candidates, halved in rounds; the best is fitted.

Candidates of several kinds (:mod:`swiftem.mixture.starts.candidate_starts`) are improved by em on a few rows
of a sample. After each round they are compared by

.. math:: -\mathrm{Pen}(\theta) + \frac{1}{W} \sum_{i \in H} w_i \log g(y_i; \theta),

where H are rows of the sample that none of them was fitted to. The better ones continue with twice as many
rows, unless em has converged for them in a place that is worse. The last one is improved by
:mod:`swiftem.mixture.starts.split_and_merge`, fitted to the sample, and starts the fit. All E-steps are the
ones of the fit, on a bounded number of rows.

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
from contextlib import nullcontext
from dataclasses import replace
from math import inf
from typing import NamedTuple, cast

import numpy as np

from swiftem.core.draws import spread_rows
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.problem import Problem
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.data.stored import StoredSource
from swiftem.data.units.source import UnitSource
from swiftem.fit.validated import SAMPLE_BYTES, in_memory, rows_of
from swiftem.kernels.threads import get_threads, one_thread, one_thread_blas
from swiftem.mixture.compute.batched import BatchedCompute, is_batchable
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.candidate_starts import (
    FEW_KINDS,
    KINDS,
    Improved,
    candidate_starts,
    em_of_candidates,
)
from swiftem.mixture.starts.collapsed_components import at_floor, count_on_few_values, units, with_noise
from swiftem.mixture.starts.named_starts import make_start
from swiftem.mixture.starts.settings import (
    NUMBERS,
    KindOfStart,
    Start,
    StartInterrupted,
    StartSettings,
)
from swiftem.mixture.starts.split_and_merge import Move, proposed_moves


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


def has_few_rows(problem: Problem) -> bool:
    """Return whether there are too few rows to hold some out."""
    n = rows_of(problem.source)
    if n < NUMBERS.least_rows:
        return True
    is_scarce = n < min(NUMBERS.scarce_rows, NUMBERS.per_number * problem.bound.size)
    return is_scarce and is_batchable(problem) and _few_candidates(problem) > NUMBERS.finalists


def pass_time(problem: Problem) -> float:
    """Return the time of a pass: logits, and products with features, 50 of which are one."""
    return float(problem.source.n * (problem.bound.n_components + problem.bound.size / 50))


def _few_candidates(problem: Problem) -> int:
    """Return how many candidates the work of a race allows on few rows."""
    return int(NUMBERS.work / NUMBERS.passes / pass_time(problem))


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
    kind = kind_of_start(problem, settings)
    with one_thread() if problem.placement.form == "numpy" else nullcontext():  # as in passes
        if kind in ("race", "few"):
            return [race(problem, settings, random_state)]
        starts = list[Start]()
        try:
            for _ in range(settings.n_init):
                start = make_start(problem, settings, random_state)
                is_narrow = kind == "named" and settings.is_of_single_rows
                starts.append(_widened(problem, start) if is_narrow and not is_for_em else start)
        except KeyboardInterrupt:
            if not starts:
                raise
            raise StartInterrupted(starts[0]) from None
        return starts


def _widened(problem: Problem, start: Start) -> Start:
    """Return a start after passes of em on a sample, or the same one if there is no M-step."""
    sample = draw_sample(problem, np.random.default_rng(0))
    try:
        some = on_rows(problem, sample.first(NUMBERS.sample))
        theta = em_of_candidates(some, [start.theta], NUMBERS.passes, 0.0)[0].theta
    except ValueError:  # no coefficients
        theta = None
    return start if theta is None else Start(theta, None, start.empty, raced=True)


class Sample(NamedTuple):
    """Rows in random order: candidates are fitted to the first rows of ``seen``, and compared on ``held``."""

    seen: ArraySource
    held: ArraySource

    def first(self, rows: int) -> ArraySource:
        """Return the first rows of ``seen``, or all rows if it has fewer."""
        (y, weight), (more, other) = ((part.y, part.weight) for part in self)
        if rows <= len(y):
            return self.seen.like(y[:rows], None if weight is None else weight[:rows])
        return self.seen.like(
            np.concatenate([y, more]), None if weight is None or other is None else np.append(weight, other)
        )


def draw_sample(problem: Problem, rng: np.random.Generator) -> Sample:
    """Return a sample of the rows, in random order.

    For Gaussians, columns that are multiples of a unit get uniform noise of that unit: a component could
    otherwise gain an unbounded likelihood on a single value of such a column.
    """
    source, most = problem.source, NUMBERS.sample
    seed = rng.integers(2**63)  # also if it is not used: few rows give the same start, stored or not
    if isinstance(source, StoredSource):
        fits = max(NUMBERS.least_rows, min(most, SAMPLE_BYTES // source.row_bytes))
        taken = in_memory(source, spread_rows(source.n, fits, np.random.default_rng(seed)))
    else:
        taken = source.some if isinstance(source, UnitSource) else cast(ArraySource, source)
    order = rng.choice(taken.n, min(taken.n, most), replace=False, shuffle=True)
    y, weight = taken.take(order).y, taken.weight
    y = y.reshape(len(y), -1)
    if isinstance(problem.bound, BoundGaussians):
        y = with_noise(y, units(y, shuffled=True), order)
    seen = len(y) - min(NUMBERS.held_rows, round(NUMBERS.held_share * len(y)))
    parts = slice(0, seen), slice(seen, None)
    given = None if weight is None or (weight == weight[0]).all() else weight[order]
    return Sample(*(taken.like(y[part], None if given is None else given[part]) for part in parts))


def on_rows(problem: Problem, rows: Source) -> Problem:
    """Return the problem on some of its rows; the others are not read."""
    found = problem.on(rows)
    if found is not problem:
        found.bound = replace(found.bound, source=rows)
    return found


class Candidate(NamedTuple):
    """Parameters and their value in comparisons.

    Attributes
    ----------
    theta : NamedTuple
        The parameters.
    value : float
        Minus the objective, without what collapsed components gain.
    moves : int
        Number of moves.
    is_named, has_converged : bool
        Whether it is the start by name, and whether em has converged.
    """

    theta: Theta
    value: float = -inf
    moves: int = 0
    is_named: bool = False
    has_converged: bool = False


class Round(NamedTuple):
    """Number of rows, passes of em on them, and maximum number of candidates."""

    rows: int
    passes: int
    most: int


class Trials:
    """Fits of candidates to rows of a sample, and their comparison.

    Parameters
    ----------
    problem : Problem
        Model and data.
    sample : Sample or None
        Rows that candidates are fitted to, and others; None for all rows, on which they are compared, too.
    pool : ThreadPoolExecutor
        Threads.
    check : callable
        Called between passes; it may raise.

    Attributes
    ----------
    best : Candidate or None
        The best one so far.
    evaluations : int
        Number of E-step evaluations.
    """

    def __init__(
        self, problem: Problem, sample: Sample | None, pool: ThreadPoolExecutor, check: Callable[[], None]
    ) -> None:
        self.problem, self.sample, self.pool, self.check = problem, sample, pool, check
        self.held = problem if sample is None else on_rows(problem, sample.held)
        self._held_batched = self._batched(self.held)
        self._last = self.held, self._held_batched
        self._problems: dict[int, Problem] = {}
        y = cast(ArraySource, problem.source).y if sample is None else sample.seen.y
        self._spread = np.nanvar(y.reshape(len(y), -1), axis=0, dtype=np.float64)
        self._tolerated: float | None = None  # collapsed components on few rows, after the first passes
        self.best: Candidate | None = None
        self.evaluations = 0

    def on(self, rows: int) -> Problem:
        """Return the problem on the first rows, or on the whole sample."""
        if self.sample is None:
            return self.problem
        rows = min(rows, self.sample.seen.n + self.sample.held.n)
        if rows not in self._problems:
            self._problems[rows] = on_rows(self.problem, self.sample.first(rows))
        return self._problems[rows]

    def improved(
        self, candidates: Sequence[Candidate], on: Problem, passes: int, tol: float = NUMBERS.tol
    ) -> list[Candidate]:
        """Return candidates after some passes of em, best first, without those that have no M-step."""
        ends = self._em([one.theta for one in candidates], on, passes, tol)
        self.evaluations += on.source.n * sum(end.passes for end in ends)
        found = [
            one._replace(theta=end.theta, has_converged=end.passes < passes)
            for one, end in zip(candidates, ends, strict=True)
            if end.theta is not None
        ]
        if not found:
            return []
        values = -np.array(list(self._objectives([one.theta for one in found])))
        values -= self._collapse(found, on.source.n)
        values[~np.isfinite(values)] = -inf
        found = [one._replace(value=float(value)) for one, value in zip(found, values, strict=True)]
        found = sorted(found, key=lambda one: -one.value)
        if self.best is None or found[0].value > self.best.value:
            self.best = found[0]
        return found

    def _em(self, thetas: list[Theta], on: Problem, passes: int, tol: float) -> list[Improved]:
        """Return candidates after em: all of them at once, if that is possible."""
        if on is not self._last[0]:
            self._last = on, None  # the memory is free before the next one is made
            self._last = on, self._batched(on)
        if self._last[1] is not None:
            try:
                return em_of_candidates(on, thetas, passes, tol, self.check, self._last[1])
            except ValueError:  # rows are too far away from one of them
                pass

        def alone(theta: Theta) -> Improved:
            try:
                return em_of_candidates(on, [theta], passes, tol, self.check)[0]
            except ValueError:  # no coefficients
                return Improved(None, 0)

        return list(self.pool.map(alone, thetas))

    def _batched(self, on: Problem) -> BatchedCompute | None:
        return BatchedCompute(on, self.check) if is_batchable(on) else None

    def _objectives(self, thetas: list[Theta]) -> Iterable[float]:
        if self._held_batched is not None:
            try:
                return self._held_batched.passes(thetas, statistics=False)[1]
            except ValueError:
                pass
        return self.pool.map(self.held.compute.objective, thetas)

    def _collapse(self, found: Sequence[Candidate], n: int) -> Array:
        """Return what candidates fitted to n rows lose for components that collapsed onto few values, (K,).

        It is 1 for each. On few rows as many as usual, or as in the named start, cost nothing, and with more
        a candidate is out.
        """
        bound = self.problem.bound
        if not isinstance(bound, BoundGaussians) or bound.kind.is_shared or bound.model.prior is not None:
            return np.zeros(len(found))
        if self.sample is not None:
            seen = self.sample.seen
            return np.array(
                [float(count_on_few_values(bound, one.theta, self._spread, seen, n)) for one in found]
            )
        each = np.array([at_floor(bound, one.theta, self._spread).any(axis=1).sum() for one in found])
        if self._tolerated is None:
            named = [count for one, count in zip(found, each, strict=True) if one.is_named]
            self._tolerated = max([np.median(each), *named])
        return np.where(each > self._tolerated, inf, 0.0)

    def heat(self, candidates: Sequence[Candidate], rounds: Sequence[Round]) -> list[Candidate]:
        """Return the candidates of the last round, best first.

        Candidates do not continue if em has converged for them and another one is better; the named one does.
        """
        if self.best is None and candidates:  # it is there after Ctrl-C in the first round
            self.best = candidates[0]
        for rows, passes, most in rounds:
            left = [
                one
                for place, one in enumerate(candidates)
                if place == 0 or one.is_named or (place < most and not one.has_converged)
            ]
            candidates = self.improved(left, self.on(rows), passes)
        return list(candidates)


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
    first = make_start(problem, settings, random_state) if has_few_rows(problem) else None
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    with one_thread_blas(), DeferredInterrupt() as interrupt, ThreadPoolExecutor(get_threads()) as pool:
        sample = draw_sample(problem, rng) if first is None else None
        trials = Trials(problem, sample, pool, interrupt.check)
        try:
            try:
                if first is None:
                    won = _among_many(trials, settings, rng)
                else:
                    won = _among_few(trials, first, settings.n_init, rng)
            finally:  # whatever came of it, Ctrl-C is not lost
                interrupt.check()
        except KeyboardInterrupt:
            if first is None and trials.best is None:
                raise
            raise StartInterrupted(_start(trials.best) or first) from None
    return _start(won) or first or make_start(problem, settings, random_state)


def _start(best: Candidate | None) -> Start | None:
    return None if best is None else Start(best.theta, None, 0, True, best.moves)


def _among_few(trials: Trials, first: Start, n_init: int, rng: np.random.Generator) -> Candidate | None:
    """Return the best of several candidates on all rows, or None if the first start is as good."""
    on, contenders = trials.problem, list[Candidate]()
    count = int(np.clip(_few_candidates(on), 2 * NUMBERS.candidates, NUMBERS.few_candidates)) - 1
    for more in (count, n_init - 1)[: min(n_init, 2)]:  # more is no worse: n_init = 1 is among them
        starts = candidate_starts(on, FEW_KINDS, more, rng, trials.pool.map)
        candidates = [Candidate(first.theta, is_named=True), *map(Candidate, starts)]
        last = Round(on.source.n, 2 * NUMBERS.passes, max(NUMBERS.finalists, more // NUMBERS.passes))
        contenders += trials.heat(candidates, [Round(on.source.n, NUMBERS.passes // 2, more + 1), last])
    enough = max((one.value for one in contenders if one.is_named), default=-inf) + NUMBERS.margin
    return max((one for one in contenders if one.value > enough), key=lambda one: one.value, default=None)


def _among_many(trials: Trials, settings: StartSettings, rng: np.random.Generator) -> Candidate | None:
    """Return the best candidate on a sample, after moves; each further ``n_init`` adds a candidate."""
    contenders, whole = list[Candidate](), trials.on(NUMBERS.sample)
    tol = min(0.1 * NUMBERS.tol, NUMBERS.end * settings.tol)
    for count in (NUMBERS.candidates, settings.n_init - 1):
        best = _best_of_heat(trials, count, rng) if count else None
        if best is not None:
            contenders += trials.improved([best], whole, NUMBERS.last_passes, tol) or [best]
    # What n_init = 1 ends with is among them: more is no worse.
    return min(contenders, key=lambda one: whole.compute.objective(one.theta), default=None)


def _best_of_heat(trials: Trials, count: int, rng: np.random.Generator) -> Candidate | None:
    """Return the best of ``count`` candidates after successive halving and moves."""
    size, n = int(trials.problem.bound.size), rows_of(trials.problem.source)
    assert trials.sample is not None
    seen, work = trials.sample.seen.n, min(NUMBERS.work, n * NUMBERS.work_per_row)
    rows = min(seen, max(NUMBERS.least_rows, NUMBERS.per_number * size))
    wide = max(NUMBERS.move_rows, 2 * NUMBERS.per_number * size)
    wide = min(seen, max(wide, min(n // NUMBERS.move_share, NUMBERS.most_per_number * size)))
    starts = candidate_starts(trials.on(rows), KINDS, count, rng, trials.pool.map)
    rounds, left = list[Round](), len(starts)
    while left > NUMBERS.finalists:
        rounds.append(Round(rows, NUMBERS.passes, left))
        rows, left = min(2 * rows, seen), max(NUMBERS.finalists, -(-left // 2))
    rows = min(max(rows, NUMBERS.move_rows), wide)
    passes = int(
        np.clip(work // (NUMBERS.candidates * NUMBERS.finalists * rows), NUMBERS.passes, NUMBERS.last_passes)
    )
    finalists = trials.heat([Candidate(theta) for theta in starts], [*rounds, Round(rows, passes, left)])
    if not finalists:
        return None
    best, on = finalists[0], trials.on(wide)
    agree = len(finalists) == 1 or best.value - finalists[1].value < NUMBERS.margin
    if wide > rows:
        best = (trials.improved([best], on, NUMBERS.passes) or [best])[0]
    return _after_moves(trials, best, on, work, NUMBERS.tries if agree else 2 * NUMBERS.tries)


def _after_moves(trials: Trials, best: Candidate, on: Problem, work: int, tried: int) -> Candidate:
    """Return a candidate after the moves that raise the likelihood of the held-out rows."""
    n = on.source.n
    cost = n * NUMBERS.after_move * (1 + 2 * NUMBERS.tries)
    while trials.evaluations + cost < work:
        sure, others = proposed_moves(on, trials.held, best.theta, tried)
        trials.evaluations += NUMBERS.after_move * n  # finding them takes as long
        waiting = [sure] if sure else []
        waiting += [others[k : k + NUMBERS.tries] for k in range(0, len(others), NUMBERS.tries)]
        before = best
        while best is before and waiting and trials.evaluations + cost < work:
            best = _best_move(trials, best, on, waiting.pop(0)) or best
        if best is before:
            break
        if best.value - before.value < 2.0 * NUMBERS.margin:
            tried = 0  # only those that promise a gain
    return best


def _best_move(trials: Trials, best: Candidate, on: Problem, moves: Sequence[Move]) -> Candidate | None:
    """Return the best of a few moves, or None if none gains on rows held out and on others."""
    tried = [Candidate(move.theta, moves=best.moves + move.number) for move in moves]
    tried = trials.improved(tried, on, NUMBERS.after_move)
    tried = trials.improved(tried[: -(-len(tried) // 2)], on, 2 * NUMBERS.after_move)
    better = [one for one in tried if one.value > best.value + NUMBERS.tol]
    if better:  # on rows held out alone, a few far rows may decide
        most = on.compute.objective(best.theta)
        better = [one for one in better if on.compute.objective(one.theta) < most]
    return better[0] if better else None
