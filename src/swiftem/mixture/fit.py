"""Fits of a mixture, from one start each: em in its own loop, other methods by :func:`swiftem.run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from math import inf, nan
from typing import Any, cast

import numpy as np

from swiftem._run import run_problem
from swiftem.core.algorithm import Iterate
from swiftem.core.draws import Seed
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.problem import Problem, certify
from swiftem.core.process import clock
from swiftem.core.schedules import resolve
from swiftem.core.types import Array, Theta
from swiftem.fit.history import Moment
from swiftem.fit.stopping import MULTIPLE, Leaps, Remaining
from swiftem.fit.watch import NoStart, StartWatch
from swiftem.methods import Method, Squarem
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.device import em_on_device
from swiftem.mixture.look import Look, Run
from swiftem.mixture.plan import Plan, iterations_in
from swiftem.mixture.rows import rows_of
from swiftem.mixture.starts.em_of_candidates import beyond_plateau, em_of_candidates
from swiftem.mixture.starts.family_starts import starts_of
from swiftem.mixture.starts.named_starts import DegenerateComponentWarning, reseed
from swiftem.mixture.starts.settings import Start, check_start

__all__ = ["DegenerateComponentWarning", "Fit", "Fitting"]

MOST_RESEEDS = 3
"""Maximum number of re-initialisations per component in a fit; then the data do not allow for them."""
EM_PASSES = 20
"""Passes of em, with larger steps, after a stochastic method has converged. If they do not converge, the
method continues; after sem, whose noise does not vanish, em does."""


@dataclass
class Fit:
    """State of a fit.

    Attributes
    ----------
    theta, s
        The parameters and their statistics, as of :class:`swiftem.mixture.starts.settings.Start`.
    moments : list of Moment
        History of the fit.
    bounds : list of float
        Minus the objective after each pass of em, or each evaluation of another method.
    passes : float
        E-step evaluations divided by n.
    rejected : int
        Number of steps that would have left the model's domain.
    reseeded : int
        Number of re-initialisations of components.
    moves : int
        Number of split-and-merge moves accepted before it.
    last : tuple of float
        Bound, gain and rate of the last pass of em.
    converged, interrupted : bool
        How it ended.
    objective, stationarity : float
        Of all rows at θ, after :meth:`Fitting.certify`.
    """

    theta: Theta
    s: Array | None
    moments: list[Moment] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    passes: float = 0.0
    rejected: int = 0
    reseeded: int = 0
    moves: int = 0
    last: tuple[float, float, float] = (-inf, inf, inf)
    converged: bool = False
    interrupted: bool = False
    objective: float = nan
    stationarity: float = nan

    @property
    def bound(self) -> float:
        """Criterion for the best fit: minus the objective of all rows, for em that before its last M-step."""
        if np.isfinite(self.objective):
            return -self.objective
        return self.bounds[-1] if self.bounds else -inf


@dataclass
class Fitting:
    """Shared inputs of all fits to the same data.

    Attributes
    ----------
    problem : Problem
        Model and data, and the memory budget.
    plan : Plan
        The method.
    max_passes, tol : int and float
        When to stop: the passes, and the gain of em per pass
        (see :class:`swiftem.fit.stopping.Remaining`).
    looks_ahead : bool
        Whether em makes further passes to find out if it has converged: not from a given or named start,
        whose trajectory is scikit-learn's.
    multiple : float
        Maximum remaining gain of a converged fit, in units of ``tol``.
    interrupted : bool
        Whether Ctrl-C ended it before the first pass.
    """

    problem: Problem
    plan: Plan
    max_passes: int
    tol: float
    looks_ahead: bool
    multiple: float = MULTIPLE
    interrupted: bool = False

    def fit(
        self,
        start: Start,
        seed: int,
        watch: StartWatch,
        *,
        last: tuple[float, float, float] | None = None,
        keeper: NoStart | None = None,
    ) -> Fit:
        """Return the fit from a start.

        ``last`` is the end of an earlier fit by em that it continues: bound, gain and rate. ``keeper`` has
        its checkpoints.
        """
        with keeper or NoStart() as kept:
            fit = Fit(start.theta, start.s, reseeded=start.empty, moves=start.moves)
            one = _OneFit(self, fit, seed, watch, kept)
            if one.resume():
                return one.fit
            try:
                if self.plan.method is None:
                    one.batch_em(last or (-inf, inf, inf))
                else:
                    is_poor = last is None and not start.raced
                    one.stochastic(self.plan.method, self.plan.start if is_poor else None)
                    self.certify(one.fit)
            except KeyboardInterrupt:
                one.fit.interrupted = True
            else:
                one.keep_end()
        return one.fit

    def certify(self, fit: Fit) -> None:
        """Compute the objective of all rows and the stationarity, by one more pass."""
        if self.max_passes > 0 and fit.s is not None and not fit.interrupted:
            fit.objective, fit.stationarity = certify(self.problem, fit.s, fit.theta)


class _OneFit:
    """A fit from one start, in one thread."""

    def __init__(self, shared: Fitting, fit: Fit, seed: int, watch: StartWatch, keeper: NoStart) -> None:
        self.problem, self._bound = shared.problem, cast(BoundComponents, shared.problem.bound)
        self._shared, self._source, self.watch, self._keeper = shared, shared.problem.source, watch, keeper
        self._rng, self._seed = np.random.default_rng(seed), seed
        self._began = clock()
        self._runs = 0
        self._run_now: Run | None = None
        self._kept_run: Run | None = None
        self._kept_look: tuple[Any, ...] | None = None
        self._remaining: Remaining | None = None
        scheme = shared.plan.acceleration
        self._steps = None if scheme is None else Leaps(scheme)
        self.fit = fit

    def resume(self) -> bool:
        """Restore the saved state of the fit, if there is one; return whether it had ended."""
        kept = self._keeper.load()
        if kept is None:
            return False
        with self._keeper.reading():
            self.fit = Fit(**kept["fit"])
            check_start(self._bound, self.fit.theta, self.fit.s)
            self._began = clock() - kept["seconds"]
            self._runs = kept["runs"]
            if kept["remaining"] is not None:
                self._remaining = self._new_remaining(*kept["remaining"])
            if self._steps is not None:
                self._steps.restore(kept["steps"], self._bound.size)
            self._kept_run, self._kept_look = kept["run"], kept["look"]
            self._rng.bit_generator.state = kept["rng"]
            return bool(kept["is_over"])

    def _place(self, look: Look | None = None, *, is_over: bool = False) -> dict[str, Any]:
        """Return the state of the fit."""
        remaining = self._remaining
        return {
            "fit": {part.name: getattr(self.fit, part.name) for part in fields(Fit)},
            "is_over": is_over,
            "seconds": clock() - self._began,
            "runs": self._runs,
            "remaining": None if remaining is None else remaining.state,
            "steps": None if self._steps is None else self._steps.state,
            "run": self._run_now,
            "look": None if look is None else look.state(),
            "rng": self._rng.bit_generator.state,
        }

    def _new_remaining(self, *last: float) -> Remaining:
        return Remaining(self._shared.tol, rows_of(self._source), *last, multiple=self._shared.multiple)

    def keep_end(self) -> None:
        """Save the end of the fit."""
        if not self.fit.interrupted:
            self._keeper.save(lambda: self._place(is_over=True), is_end=True)

    def batch_em(self, last: tuple[float, float, float]) -> None:
        """Batch EM, from the saved state, or from the end of an earlier fit."""
        if self._remaining is None:
            self._remaining = self._new_remaining(*last)
        passes = self._shared.max_passes - round(self.fit.passes)
        # An acceleration, a callback or a checkpoint uses each θ: M-steps are then the CPU's.
        is_plain = self._steps is None and not self.watch.wants_theta and type(self._keeper) is NoStart
        there = self.problem.compute.em() if is_plain and passes > 0 else None
        if there is None:
            self.em(passes, self._remaining, keeps=True, steps=self._steps)
        else:
            em_on_device(self, there, passes, self._remaining)

    def em(
        self,
        passes: int,
        remaining: Remaining | None = None,
        *,
        is_last: bool = True,
        keeps: bool = False,
        steps: Leaps | None = None,
    ) -> bool:
        """Batch EM: E-step, M-step, and the bound of the θ before it, as scikit-learn counts.

        With ``steps`` there are leaps: the bound is then that of the last accepted point. Returns whether a
        callback stopped it.
        """
        fit, stop, bound = self.fit, False, self._bound
        remaining = remaining or self._new_remaining()
        with DeferredInterrupt() as interrupt:

            def check() -> None:
                interrupt.check()
                self.watch.check()

            while passes > 0:
                passes -= 1
                check()
                before = fit.theta
                at = before if steps is None or steps.point is None else bound.m_step(steps.point)
                with self.problem.compute.checked_by(check) as e_step:
                    s = taken = e_step.full(at)
                    objective = e_step.objective(at)
                fit.passes += 1.0
                if steps is not None:
                    is_calm = abs(objective + remaining.last_bound) < self._shared.tol
                    taken, objective = steps.take(s, objective, e_step, is_calm), steps.objective
                if taken is s and self._mend(s, is_last=is_last and not passes):
                    value = -inf
                    if steps is not None:
                        steps.restart()
                else:
                    fit.s, fit.theta, value = taken, bound.m_step(taken), -objective
                stop = self._note(fit.passes, objective, 1.0, "em", before if fit.s is None else fit.theta)
                fit.converged = remaining.is_small(value, None if steps is None else steps.rate)
                fit.last = remaining.state if steps is None else (remaining.last_bound, inf, inf)
                if fit.converged and not stop and self._is_plateau(remaining, check):
                    fit.converged = False
                    passes = min(passes, int(self._shared.max_passes - fit.passes))
                    if steps is not None:
                        steps.restart()
                elif fit.converged or stop:
                    break
                if keeps:
                    self._keeper.save(self._place)
            interrupt.check()
        return stop

    def _is_plateau(self, remaining: Remaining, check: Callable[[], None]) -> bool:
        """Go beyond the plateau on which em seems to have converged; return whether it is one."""
        fit, shared, beyond = self.fit, self._shared, None
        if shared.looks_ahead:
            beyond = beyond_plateau(self.problem, fit.theta, shared.tol, remaining.small, check)
        if beyond is None:
            return False
        left = int(shared.max_passes - fit.passes) - 1
        if left > 0:
            theta, done = (
                beyond
                if beyond[1] <= left
                else em_of_candidates(self.problem, [fit.theta], left, 0.0, check)[0]
            )
            fit.theta, fit.s, fit.passes = theta, None, fit.passes + done
            remaining.restart()
        return True

    def _mend(self, s: Array, *, is_last: bool) -> bool:
        """Re-initialise components without rows, or collapsed ones without an M-step; return whether any."""
        gone = starts_of(self._bound).dead(s, rows_of(self._source))
        exists = self._bound.in_domain(s)
        if exists and (not len(gone) or is_last):
            return False
        fit = self.fit
        gone = gone if exists else np.union1d(gone, starts_of(self._bound).collapsed(s))
        if fit.reseeded + len(gone) > MOST_RESEEDS * self._bound.n_components:
            if not exists:
                raise ValueError(starts_of(self._bound).ILL_DEFINED)
            return False
        fit.reseeded += len(gone)
        if not is_last:  # after the last pass a re-initialised component would not be fitted
            fit.theta, fit.s = reseed(self._bound, self._source, fit.theta, s, gone, self._rng), None
        return True

    def stochastic(self, method: Method, start: Method | None) -> None:
        """Another method, evaluated once per epoch; before it ``start`` for a pass, if it is given."""
        fit, shared = self.fit, self._shared
        look = Look(self.problem, shared.tol, 2 if shared.plan.name == "sem" else 1)
        if self._kept_look is None:
            look.at(fit.theta, 0.0)
        else:
            with self._keeper.reading():
                look.restore(self._kept_look)
        status = "at the end"
        if start is not None and (self._kept_run is None or self._kept_run.is_start):
            status = self._run(start, look, most=start.epoch(self._source.n))
        # A resumed run must end properly, even if it had converged.
        while self._kept_run or not (fit.interrupted or fit.converged or status == "stopped"):
            if status == "at the end":
                status = self._run(method, look)
            left = int(shared.max_passes - fit.passes)
            if status == "all rejected" or (status == "no pass left" and not fit.moments):
                self.em(left)  # too few passes for one iteration of the method, or no step is accepted
                break
            at_rest, fit.converged = fit.converged and status == "at the end", False
            if not (at_rest or status == "in trouble") or left < 1:
                break
            passes, steps = 1, None
            if at_rest:
                is_noisy = shared.plan.name == "sem"
                passes, steps = left if is_noisy else min(left, EM_PASSES), Leaps(Squarem())
            status = "stopped" if self.em(passes, is_last=left <= passes, steps=steps) else "at the end"
            fit.converged &= at_rest
            if at_rest and is_noisy:
                break

    def _run(self, method: Method, look: Look, most: int | None = None) -> str:
        """Run a method for the remaining passes, or ``most`` iterations; return how it ended.

        "in trouble": a component lost its rows, which em must repair before the method continues. "all
        rejected": every step of an epoch left the domain, so that further steps would, too. An interrupted
        run is resumed.
        """
        fit, n = self.fit, self._source.n
        now, self._kept_run = self._kept_run, None
        if now is None:
            count = iterations_in(method, n, self._shared.max_passes - fit.passes, fit.s is not None)
            count = count if most is None else min(count, most)
            if count < 1:
                return "no pass left"
            now = Run(most is not None, count, fit.passes, fit.rejected)
            self._runs += 1
        self._run_now, spent, rejected = now, now.spent, now.rejected
        epoch, gamma = method.epoch(n), resolve(method.step_size, n, method.batch_size)

        def look_at(iterate: Iterate) -> bool:
            assert self._run_now is not None
            ended, last = self._run_now.ended, self._run_now.last
            if iterate.k == last[0]:
                return False
            self.watch.check()
            at_rest = look.at(iterate.theta, spent + iterate.passes)
            fit.rejected = rejected + iterate.rejected
            step = float(gamma(iterate.k))
            stop = self._note(spent + iterate.passes, look.objective, step, method.name, iterate.theta)
            if len(starts_of(self._bound).dead(iterate.s, rows_of(self._source))):
                ended = "in trouble"
            elif iterate.rejected - last[1] == iterate.k - last[0]:
                ended = "all rejected"
            fit.converged = at_rest and most is None and ended == "at the end"
            if stop:
                ended = "stopped"
            self._run_now = self._run_now._replace(last=(iterate.k, iterate.rejected), ended=ended)
            return ended != "at the end" or fit.converged

        seed: Seed = np.random.SeedSequence(self._seed, spawn_key=(self._runs,))
        result = run_problem(
            self.problem,
            method,
            theta0=fit.theta,
            s0=fit.s,
            seed=seed,
            n_iter=now.n_iter,
            record_every=epoch,
            record=lambda iterate: None,
            callback=look_at,
            checkpoint=self._keeper.of_run(method, n, lambda: self._place(look)),
        )
        fit.theta, fit.passes = result.theta, spent + result.passes
        fit.interrupted = result.status == "interrupted"
        if result.s is not None:
            fit.s = result.s
        if not fit.interrupted:
            look_at(Iterate(result.n_iter, result.passes, result.theta, result.s, result.rejected))
        return self._run_now.ended

    def _note(self, passes: float, objective: float, step: float, method: str, theta: Theta) -> bool:
        fit = self.fit
        moment = Moment(passes, clock() - self._began, objective, step, fit.rejected, method)
        fit.moments.append(moment)
        fit.bounds.append(-objective)
        return self.watch(moment, theta)
