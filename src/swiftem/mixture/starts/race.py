r"""Races between starts: several cheap candidates, halved in rounds, of which the best one is fitted.

Candidates of several kinds (:mod:`swiftem.mixture.starts.kinds`) are improved by em on a few rows
of a sample. After each round they are compared by

.. math:: -\mathrm{Pen}(\theta) + \frac{1}{W} \sum_{i \in H} w_i \log g(y_i; \theta),

where H are rows of the sample that none of them was fitted to. The better half continues with twice as many
rows. The last one is fitted to the sample, improved by :mod:`swiftem.mixture.starts.moves`, and
starts the fit. All E-steps are those of the fit, on a bounded number of rows: :data:`MOST_WORK` evaluations,
as many as a fit of 50,000 rows has in its 100 passes, or fewer if there are fewer rows
(:class:`swiftem.mixture.starts.sample.Plan`).

With fewer components than the data have, candidates end in many places, and moves find nothing. If that is
so, with full covariances, where a pass of the fit takes long, a second heat follows, and the best one that
differs is moved, too, if it is not much worse.

On few rows the passes of all candidates are computed at once
(:mod:`swiftem.mixture.starts.together`), in slices that do not depend on the number of threads.
Candidates are independent of each other and their sums keep their order, so that the same seed gives the same
start at any number of threads.

The constants were chosen on magic, satellite, digits and three generated mixtures (``CHOOSING`` in
``benchmarks/optima_data.py``); those of moves also on ``generated`` there with
seeds 101 to 104, and on ``overlapping`` of ``benchmarks/mixture_fit.py`` with seeds 501 and 511 to 514 in 6
to 16 dimensions. Eight candidates were kept instead of four after a look at magic, and at shuttle, which also
reports. ``MOVE_MOST`` was chosen on ``generated`` with seeds 141 and 142; the last round and the second heat
on ``generated`` with seeds 131 to 138 (12 to 20 components, fitted with 5 or 6, in 3 to 10 dimensions), on
magic, satellite and the generated mixtures of ``CHOOSING``; that it moves another one even if both heats end
in the same place, on seeds 139 to 146; ``NEAR`` on seeds 151 to 153 and 161 to 166, magic and the generated
mixtures of ``CHOOSING``. ``END`` was lowered from 0.01 because a fit of flower had stopped on a plateau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.loop import DeferredInterrupt
from swiftem.core.problem import Problem
from swiftem.core.types import Theta
from swiftem.kernels.threads import get_threads, one_thread_blas
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.accelerated import accelerated
from swiftem.mixture.starts.initial import make_start
from swiftem.mixture.starts.kinds import kinds_for, start
from swiftem.mixture.starts.moves import Proposal, moved, proposals
from swiftem.mixture.starts.sample import MOST_WORK, MOVE_ROWS, draw_sample, on_rows, plan_race
from swiftem.mixture.starts.spurious import on_few_values
from swiftem.mixture.starts.start import Start, StartInterrupted, StartSettings
from swiftem.mixture.starts.together import Together

__all__ = ["Raced", "race", "raced_start"]

CANDIDATES = 8
MORE = 1
"""Number of candidates, and how many each further ``n_init`` adds."""
PASSES, WIDER, WHOLE = 12, 15, 40
"""Passes of em per round, on the rows of moves, and on the whole sample; fewer if em has converged.
After 6 passes the order of candidates says little about that after 100."""
TOL = 1e-4
"""Gain per pass below which em has converged."""
END = 0.003
"""Gain per pass at which the last round ends, in units of ``tol`` of the fit; at most a tenth of ``TOL``."""
MOVES = 20
"""Default for the maximum number of accepted moves; the budget of evaluations usually ends them earlier."""
TRIES, MOST_TRIED = 4, 8
"""Number of moves that promise no gain tried at a time, whatever the number of threads, and in all from the
same parameters."""
LITTLE = 2e-3
"""After a move that gains less per row, only those are tried that promise a gain."""
AGREE = 1e-3
"""If the values of two candidates differ by less, they have most likely found the same optimum. Then only the
first moves are tried."""
NEAR = 0.05
"""The best candidate elsewhere is moved, too, if it is at most so much worse: moves seldom gain more."""
MOVE, MOVE_ON = 4, 8
"""Passes of em after a move, and of the better half of the moves after them."""
LOOK = 4
"""What finding moves counts for, in passes."""
MANY = 50_000
"""Rows times components from which on starts are made by several threads."""
SPURIOUS = 1.0
"""What a component that collapsed onto a few rows costs in the comparison."""
GAIN = 1e-4
"""Minimum gain of a move on the held-out rows."""


class Raced(NamedTuple):
    """The winning start.

    Attributes
    ----------
    theta : NamedTuple
        Its parameters.
    kind : str
        Its kind.
    candidates, moves : int
        Number of candidates, and of accepted moves.
    """

    theta: Theta
    kind: str
    candidates: int
    moves: int


class _Candidate(NamedTuple):
    theta: Theta
    kind: str
    value: float
    moves: int = 0
    work: int = 0


def _agree(one: _Candidate, other: _Candidate) -> bool:
    return abs(one.value - other.value) < AGREE


def raced_start(
    problem: Problem,
    settings: StartSettings,
    random_state: np.random.RandomState,
    given: Start | None = None,
) -> Start:
    """Return the winner of the race; if no candidate has an M-step on the sample, a start by k-means.

    A ``given`` start has no rivals: it is the only candidate, and is improved by moves.
    """
    try:
        won = race(
            problem,
            int(random_state.randint(2**31 - 1)),
            n_init=settings.n_init,
            moves=MOVES if settings.moves == "auto" else settings.moves,
            tol=settings.tol,
            theta=None if given is None else given.theta,
        )
    except ValueError:
        return given or make_start(problem, settings, random_state)
    return Start(won.theta, None, 0, True, won.moves)


def race(
    problem: Problem,
    seed: int,
    *,
    n_init: int = 1,
    moves: int = 0,
    tol: float = 1e-3,
    theta: Theta | None = None,
) -> Raced:
    """Return the best of several starts.

    Parameters
    ----------
    problem : Problem
        Model and data.
    seed : int
        For the sample and the candidates.
    n_init : int
        Each one beyond the first adds candidates.
    moves : int
        Maximum number of accepted split-and-merge moves at the end; only for Gaussians.
    tol : float
        ``tol`` of the fit: the last round ends when a pass gains less than three thousandths of it.
    theta : NamedTuple, optional
        The only candidate.

    Raises
    ------
    StartInterrupted
        After Ctrl-C, with the best candidate so far.
    """
    with one_thread_blas(), DeferredInterrupt() as interrupt, ThreadPoolExecutor(get_threads()) as pool:
        tol = min(0.1 * TOL, END * tol)
        run = _Race(problem, seed, pool, interrupt.check)
        try:
            try:
                return run.run(n_init, moves, tol, theta)
            finally:  # whatever came of it, Ctrl-C is not lost
                interrupt.check()
        except KeyboardInterrupt:
            if run.best is None:
                raise
            raise StartInterrupted(Start(run.best.theta, None, 0, True, run.best.moves)) from None


class _Race:
    """A race: the sample, the held-out rows, and the threads."""

    def __init__(
        self, problem: Problem, seed: int, pool: ThreadPoolExecutor, check: Callable[[], None]
    ) -> None:
        self._problem, self._pool, self._check = problem, pool, check
        self._seeds = np.random.SeedSequence(seed)
        self._is_gaussian = isinstance(problem.bound, BoundGaussians)
        rng = np.random.default_rng(self._seeds.spawn(1)[0])
        self._sample = draw_sample(problem.source, rng, dither=self._is_gaussian)
        self._held = on_rows(problem, self._sample.held)
        self._problems: dict[int, Problem] = {}
        self._held_together = Together(self._held, check) if Together.serves_problem(self._held) else None
        self._last: tuple[Problem, Together | None] = self._held, self._held_together
        self._spread = np.nanvar(self._sample.seen.y, axis=0, dtype=np.float64)
        self._plan = plan_race(problem, self._sample.seen.n)
        self._left, self._rows = 0, self._plan.many
        self.best: _Candidate | None = None

    def run(self, n_init: int, moves: int, tol: float, theta: Theta | None) -> Raced:
        """Run it: one or two heats, another one for more ``n_init``, and the best on the whole sample."""
        if theta is not None:
            self._left = MOST_WORK
            self.best = _Candidate(theta, "given", -inf)
            alone = self._improved([self.best], self._on(self._plan.many), WHOLE)
            best = self._whole(self._moved(alone, moves), tol)
            return Raced(best.theta, best.kind, 1, best.moves)
        self._left, count, more = self._plan.work, CANDIDATES, MORE * (n_init - 1)
        first = self._heat(CANDIDATES)
        ends = [self._moved(first, moves)]
        if self._plan.again and not ends[0].moves and not _agree(first[0], first[-1]):
            count += self._plan.again
            others = [one for one in first + self._heat(self._plan.again) if not _agree(one, first[0])]
            runner_up = max(others, key=lambda one: one.value)
            if runner_up.value > ends[0].value - NEAR:
                ends.append(self._moved([runner_up], moves))
        won = [self._whole(max(ends, key=lambda one: one.value), tol)]
        if more:
            self._left = self._plan.work
            second = self._heat(more)
            asked = moves if second[0].value > first[0].value else 0
            won.append(self._whole(self._moved(second, asked), tol))
        # What n_init = 1 ends with is among them: more is no worse.
        best = max(won, key=lambda one: one.value)
        return Raced(best.theta, best.kind, count + more, best.moves)

    def _heat(self, count: int) -> list[_Candidate]:
        """Return the last few of ``count`` candidates, best first."""
        rows, last = self._plan.rows, self._plan.finalists
        left = self._begin(count, rows, PASSES)
        while len(left) > last:
            left = sorted(left, key=lambda one: -one.value)[: max(last, -(-len(left) // 2))]
            rows = min(2 * rows, self._sample.seen.n)
            if len(left) > last:
                left = self._improved(left, self._on(rows), PASSES)
        self._rows = min(max(rows, MOVE_ROWS), self._plan.many)
        left = self._improved(left, self._on(self._rows), self._plan.passes)
        return sorted(left, key=lambda one: -one.value)

    def _on(self, rows: int) -> Problem:
        """Return the problem on the first rows, or on the whole sample."""
        seen = self._sample.seen.n
        rows = min(rows, seen + self._sample.held.n) if rows > seen else rows
        found = self._problems.get(rows)
        if found is None:
            taken = self._sample.first(rows) if rows <= seen else self._sample.whole()
            found = self._problems[rows] = on_rows(self._problem, taken)
        return found

    def _moved(self, left: list[_Candidate], moves: int) -> _Candidate:
        """Return the first candidate after the moves that raise the likelihood of the held-out rows."""
        on, best = self._on(self._plan.many), left[0]
        if on.source.n > self._rows:
            best = self._improved([best], on, WIDER)[0]
        if not (moves and self._is_gaussian):
            return best
        tried = TRIES if len(left) > 1 and _agree(*left[:2]) else MOST_TRIED
        cost = on.source.n * (TRIES * MOVE + TRIES // 2 * MOVE_ON)
        while best.moves < moves and self._left >= cost:
            found = proposals(on, self._held, best.theta, tried)
            self._left -= LOOK * on.source.n
            waiting = [[tries[: moves - best.moves] for tries in found.sure]] if found.sure else []
            waiting += [found.others[k : k + TRIES] for k in range(0, len(found.others), TRIES)]
            before = best
            while best is before and waiting and self._left >= cost:
                best = self._move(best, on, waiting.pop(0)) or best
            if best is before:
                break
            if best.value - before.value < LITTLE:
                tried = 0
        return best

    def _whole(self, best: _Candidate, tol: float) -> _Candidate:
        """Return a candidate fitted to the whole sample, and its value there."""
        on = self._on(self._sample.seen.n + self._sample.held.n)
        best = (self._em_of_all([best], on, WHOLE, tol)[0] or [best])[0]
        return best._replace(value=-on.compute.objective(best.theta))

    def _begin(self, count: int, rows: int, passes: int) -> list[_Candidate]:
        """Return candidates after the first round."""
        on, kinds = self._on(rows), kinds_for(self._problem.bound)
        seeds = self._seeds.spawn(count)

        def one(number: int) -> _Candidate:
            if self.best is not None:
                self._check()
            kind = kinds[number % len(kinds)]
            return _Candidate(start(kind, on, np.random.default_rng(seeds[number])), " ".join(kind), -inf)

        found, failures = self._map(one, range(count), at_once=rows * self._problem.bound.n_components > MANY)
        if not found:
            raise failures[0]
        found, failures = self._em_of_all(found, on, passes)
        if not found:
            raise failures[0]
        return found

    def _improved(self, candidates: list[_Candidate], on: Problem, passes: int) -> list[_Candidate]:
        """Return candidates after some passes; without an M-step for all, they are returned unchanged."""
        return self._em_of_all(candidates, on, passes)[0] or candidates

    def _move(self, best: _Candidate, on: Problem, tries: list[list[Proposal]]) -> _Candidate | None:
        """Return the best of a few sets of moves, or None if none gains on rows held out and on others."""

        def one(moves: list[Proposal]) -> _Candidate:
            return best._replace(theta=moved(on, best.theta, moves), work=0, moves=best.moves + len(moves))

        tried, _ = self._em_of_all(self._map(one, tries, at_once=False)[0], on, MOVE)
        tried = sorted(tried, key=lambda one: -one.value)[: -(-len(tried) // 2)]
        tried, _ = self._em_of_all(tried, on, MOVE_ON)
        better = [one for one in tried if one.value > best.value + GAIN]
        if better:  # on rows held out alone, a few far rows may decide
            most = on.compute.objective(best.theta)
            better = [one for one in better if on.compute.objective(one.theta) < most]
        return max(better, key=lambda one: one.value) if better else None

    def _em_of_all(
        self, candidates: list[_Candidate], on: Problem, passes: int, tol: float = TOL
    ) -> tuple[list[_Candidate], list[ValueError]]:
        """Return candidates after some passes of em, and errors: all of them at once, on few rows."""
        rows, held = self._together(on), self._together(self._held)
        if not candidates or rows is None or held is None:
            return self._map(lambda one: self._em(one, on, passes, tol), candidates)
        try:
            ends = rows.improve([one.theta for one in candidates], passes, tol)
            values = -held.objectives([theta for theta, _ in ends])
        except ValueError:  # for one of them: the others are improved without it
            return self._map(lambda one: self._em(one, on, passes, tol), candidates)
        found = [
            self._valued(one, theta, float(value), done, on.source.n)
            for one, (theta, done), value in zip(candidates, ends, values, strict=True)
        ]
        self._left -= sum(one.work for one in found)
        self._compare(found)
        return found, []

    def _compare(self, candidates: Iterable[_Candidate]) -> None:
        """Keep the best candidate so far, which remains after Ctrl-C; before the first round, the first."""
        for one in candidates:
            if self.best is None or one.value > self.best.value:
                self.best = one

    def _together(self, on: Problem) -> Together | None:
        """Return the rows of a problem for several candidates at once, if there are few."""
        if on is self._held:
            return self._held_together
        if on is not self._last[0]:
            self._last = on, None  # the memory is free before the next one is made
            self._last = on, Together(on, self._check) if Together.serves_problem(on) else None
        return self._last[1]

    def _em(self, candidate: _Candidate, on: Problem, passes: int, tol: float = TOL) -> _Candidate:
        """Return a candidate after some passes of em, and its value on the rows held out."""
        theta, done = accelerated(on, candidate.theta, passes, tol, self._check)
        return self._valued(candidate, theta, -self._held.compute.objective(theta), done, on.source.n)

    def _valued(self, candidate: _Candidate, theta: Theta, value: float, passes: int, n: int) -> _Candidate:
        """Return a candidate with other parameters, and its value without what collapsed components gain."""
        value -= SPURIOUS * self._collapsed(theta, n)
        return candidate._replace(theta=theta, value=value if isfinite(value) else -inf, work=passes * n)

    def _collapsed(self, theta: Theta, n: int) -> int:
        """Return how many components sit on a few of n rows, or on repeated values."""
        if not self._is_gaussian:
            return 0
        return len(on_few_values(self._problem.bound, theta, self._spread, self._sample.seen, n))

    def _map(
        self, function: Callable[[Any], _Candidate], given: Iterable[Any], *, at_once: bool = True
    ) -> tuple[list[_Candidate], list[ValueError]]:
        """Return the results of a function, in order, and its errors: there may be no M-step on few rows.

        Threads compute them, unless they take less time than the threads' changes.
        """

        def attempt(item: Any) -> _Candidate | ValueError:
            try:
                return function(item)
            except ValueError as error:
                return error

        found = []
        for result in (self._pool.map if at_once else map)(attempt, given):
            found.append(result)
            if isinstance(result, _Candidate):
                self._compare([result])
        self._left -= sum(one.work for one in found if isinstance(one, _Candidate))
        return (
            [one for one in found if isinstance(one, _Candidate)],
            [one for one in found if isinstance(one, ValueError)],
        )
