"""Fits of a mixture: passes of em, runs of other methods by :func:`swiftem.run`, and what follows what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from swiftem._run import run_problem
from swiftem.core import schedules
from swiftem.core.algorithm import Iterate
from swiftem.core.draws import spread_rows
from swiftem.core.problem import Problem, certify
from swiftem.core.types import Array, Index, Theta, Tree
from swiftem.data.stored import StoredSource
from swiftem.data.units.source import UnitSource
from swiftem.fit.driver import Drive, FitState, Outcome, Phase, StartCheckpoint, StartWatch, drive
from swiftem.fit.stopping import UNKNOWN, Leaps, Remaining
from swiftem.fit.validated import in_memory, rows_of
from swiftem.methods import Method
from swiftem.methods.accelerated import Acceleration, Squarem
from swiftem.mixture.components import DEAD, BoundComponents
from swiftem.mixture.resolve import MixtureSpec, iterations_in
from swiftem.mixture.starts.candidate_starts import em_of_candidates
from swiftem.mixture.starts.collapsed_components import find_spurious
from swiftem.mixture.starts.named_starts import reseed
from swiftem.mixture.starts.race import pass_time
from swiftem.mixture.starts.settings import NUMBERS, Start, check_start

if TYPE_CHECKING:
    from swiftem.mixture.compute.torch_loop import DeviceEM

MOST_RESEEDS = 3
"""Maximum number of re-initialisations per component in a fit; then the data do not allow for them."""
EM_PASSES = 20
"""Passes of em, with larger steps, after a stochastic method has converged. If they do not converge, the
method continues; after sem, whose noise does not vanish, em does."""
ROUNDING = 1e-9
"""Rounding error of a number of passes."""
LOOKED_AT = 20_000
"""Rows on which the objective is evaluated: always the same, so that changes are exact for them."""
SURE = 2.0
"""Standard errors within which a gain cannot be distinguished from zero."""
ALLOWED = 2.0
"""Noise up to this multiple of ``tol`` is accepted without an evaluation on all rows."""
APART = 1.25
"""Evaluations on all rows are rarer by this factor: each costs a pass."""


class Look:
    r"""Evaluates the objective of a fit on a fixed set of rows, and decides whether the fit has converged.

    From one evaluation to the next, the mean log-likelihood of these rows gains g. Its standard error ε is
    from the rows' own changes: other rows would have gained g ± ε (ε = 0 if all rows are evaluated). A
    fit has converged if the gain per pass is below ``tol``, or is less than 2ε. If 2ε is more than twice
    what ``tol`` allows, the objective is evaluated on all rows instead, less often, and the gain per pass
    between two such evaluations decides.

    Parameters
    ----------
    problem : Problem
        The model bound to its data.
    tol : float
        Gain per pass.
    looks : int
        Consecutive evaluations that must find convergence: more than one if the noise does not vanish.
    """

    def __init__(self, problem: Problem, tol: float, looks: int = 1) -> None:
        source: Any = problem.source
        self.is_exact = rows_of(source) <= LOOKED_AT
        if isinstance(source, UnitSource):
            source = source.some
        if source.samples != "rows":
            rows = source.some(LOOKED_AT)
            self.is_exact = rows is source
        elif isinstance(source, StoredSource):
            rows = in_memory(source, spread_rows(source.n, LOOKED_AT, np.random.default_rng(0)))
        elif self.is_exact:
            rows = source
        else:
            index = np.random.default_rng(0).choice(source.n, LOOKED_AT, replace=False)
            rows = in_memory(source, np.sort(index))
        self._problem, self._tol, self._looks = problem, tol, looks
        self._looked_at = problem.on(rows)
        self._weight = np.ones(rows.n) if rows.weight is None else rows.weight
        self._total = rows.total_weight
        self._last: Array | None = None
        self._last_passes, self._calm = 0.0, 0
        self._last_of_all: tuple[float, float] | None = None
        self.objective = inf

    def state(self) -> tuple[Any, ...]:
        """Return the state that the next evaluation depends on."""
        return self._last, self._last_passes, self._calm, self._last_of_all, self.objective

    def restore(self, state: tuple[Any, ...]) -> None:
        """Restore the state returned by :meth:`state`."""
        if state[0] is not None and np.shape(state[0]) != self._weight.shape:
            raise ValueError("the objective was evaluated on other rows")
        self._last, self._last_passes, self._calm, self._last_of_all, self.objective = state

    def at(self, theta: Theta, passes: float) -> bool:
        """Evaluate the objective at ``theta``; return whether the fit has converged."""
        found = self._looked_at.compute.evaluate(theta).log_likelihood
        total = self._total
        objective = self._problem.bound.penalty(theta) - float(self._weight @ found) / total
        calm = False
        if self._last is not None and self._tol > 0.0:
            change = found - self._last
            mean = float(self._weight @ change) / total
            error = 0.0 if self.is_exact else sqrt(float(self._weight**2 @ (change - mean) ** 2)) / total
            allowed = self._tol * (passes - self._last_passes)
            calm = abs(self.objective - objective) < max(allowed, SURE * error)
            if calm and SURE * error > ALLOWED * allowed:
                calm = self._calm_on_all_rows(theta, passes)
                self._calm = self._looks  # this evaluation has no noise: one is enough
        self._calm = self._calm + 1 if calm else 0
        self._last, self._last_passes, self.objective = found, passes, objective
        return self._calm >= self._looks

    def _calm_on_all_rows(self, theta: Theta, passes: float) -> bool:
        if self._last_of_all is not None and passes < APART * self._last_of_all[0]:
            return False
        objective = self._problem.compute.objective(theta)
        before, self._last_of_all = self._last_of_all, (passes, objective)
        return before is not None and abs(before[1] - objective) < self._tol * (passes - before[0])


@dataclass(kw_only=True)
class MixtureFit(FitState):
    """State of a fit.

    Attributes
    ----------
    theta, s
        The parameters and their statistics, as of :class:`swiftem.mixture.starts.settings.Start`.
    rng : Generator
        Random numbers of re-initialisations.
    look : Look or None
        Evaluates the runs of a stochastic method.
    runs : int
        Number of these runs; each has its own draws.
    reseeded : int
        Number of re-initialisations of components.
    moves : int
        Number of split-and-merge moves accepted before it.
    last : tuple of float
        Bound, gain and rate of the last pass of em.
    objective, stationarity : float
        Of all rows at θ, after :func:`certified`.
    """

    theta: Theta
    s: Array | None
    rng: np.random.Generator
    look: Look | None = None
    runs: int = 0
    reseeded: int = 0
    moves: int = 0
    last: tuple[float, float, float] = UNKNOWN
    objective: float = nan
    stationarity: float = nan

    @property
    def bound(self) -> float:
        """Criterion for the best fit: minus the objective of all rows, for em before its last M-step."""
        return -self.objective if np.isfinite(self.objective) else super().bound

    def kept(self) -> dict[str, Tree]:
        """Return what checkpoints store."""
        look = None if self.look is None else self.look.state()
        return super().kept() | {"rng": self.rng.bit_generator.state, "look": look}

    def restore(self, kept: Mapping[str, Tree]) -> None:
        """Restore what a checkpoint stored; raise an error if it has another form."""
        rng, look = self.rng, self.look
        super().restore(kept)
        self.rng, self.look = rng, look
        rng.bit_generator.state = cast(dict[str, Any], kept["rng"])
        if look is not None:
            look.restore(cast(tuple[Any, ...], kept["look"]))


class Prepared(NamedTuple):
    """What the fits of one call share, and their starts.

    Attributes
    ----------
    problem : Problem
        Model and data, and the memory budget.
    spec : MixtureSpec
        What each fit does.
    starts, seeds : list
        The start of each fit, and the seed of its random numbers.
    is_interrupted : bool
        Whether Ctrl-C ended it before the first pass.
    """

    problem: Problem
    spec: MixtureSpec
    starts: list[Start]
    seeds: list[int]
    is_interrupted: bool = False


@dataclass
class MixtureStep:
    """What steps of a fit share.

    Attributes
    ----------
    fit : MixtureFit
        The fit.
    problem : Problem
        Model and data.
    spec : MixtureSpec
        What the fit does.
    """

    fit: MixtureFit
    problem: Problem
    spec: MixtureSpec

    def __post_init__(self) -> None:
        self._bound, self._rows = cast(BoundComponents, self.problem.bound), rows_of(self.problem.source)

    def _check(self) -> None:
        """Raise ValueError or TypeError if a checkpoint has parameters of another model."""
        check_start(self._bound, self.fit.theta, self.fit.s)


@dataclass
class Em(MixtureStep):
    """Passes of em; the objective of a moment is that before the M-step, as scikit-learn counts.

    Attributes
    ----------
    acceleration : Acceleration or None
        Makes larger steps; the objective is then of the last accepted point.
    last : tuple of float
        Bound, gain and rate of an earlier fit that it continues.
    """

    acceleration: Acceleration | None = None
    last: tuple[float, float, float] = UNKNOWN

    @property
    def _has_more(self) -> bool:
        """Whether passes are done already that are not noted yet."""
        return False

    def begin(self, drive: Drive) -> None:
        """Begin where the fit is."""
        self._begin(int(drive.left + ROUNDING), self.last)

    def _begin(self, left: int, last: tuple[float, float, float]) -> None:
        self._left, spec = left, self.spec
        self._remaining = Remaining(spec.tol, self._rows, last, spec.multiple)
        self._leaps = None if self.acceleration is None else Leaps(self.acceleration)

    def advance(self, drive: Drive) -> Outcome | None:
        """Make a pass, and find out whether em has converged."""
        if self._left < 1:
            return Outcome.OUT_OF_PASSES
        self._left -= 1
        fit, leaps, remaining = self.fit, self._leaps, self._remaining
        if not self._has_more:
            drive.check()
        objective, value, theta = self._pass(drive)
        drive.note(objective, 1.0, "em", theta)
        is_small = remaining.is_small(value, None if leaps is None else leaps.rate)
        fit.last = remaining.last if leaps is None else (remaining.last[0], inf, inf)
        if is_small and (drive.is_stopped or not self._leaves_plateau(drive)):
            return Outcome.CONVERGED
        return None if self._left else Outcome.OUT_OF_PASSES

    def _pass(self, drive: Drive) -> tuple[float, float, Theta]:
        """Make a pass and the M-step; return the objective, the bound for the stopping rule, and θ."""
        fit, bound, leaps, before = self.fit, self._bound, self._leaps, self.fit.theta
        at = before if leaps is None or leaps.point is None else bound.m_step(leaps.point)
        with self.problem.compute.checked_by(drive.check) as e_step:
            s = taken = e_step.full(at)
            objective = e_step.objective(at)
        fit.passes += 1.0
        if leaps is not None:
            is_calm = abs(objective + self._remaining.last[0]) < self.spec.tol
            taken, objective = leaps.take(s, objective, e_step, is_calm), leaps.objective
        value = -objective
        if taken is s and self._reseeds(s):
            value = -inf
            if leaps is not None:
                leaps.restart()
        else:
            fit.s, fit.theta = taken, bound.m_step(taken)
        return objective, value, before if fit.s is None else fit.theta

    def _reseeds(self, s: Array) -> bool:
        """Re-initialise components without rows, or collapsed ones without an M-step; return whether any."""
        fit, bound = self.fit, self._bound
        is_last = not self._left and self._passes_left < 1
        gone = bound.dead(s, self._rows)
        exists = bound.in_domain(s)
        if exists and (not len(gone) or is_last):
            return False
        gone = gone if exists else np.union1d(gone, bound.collapsed(s))
        if fit.reseeded + len(gone) > MOST_RESEEDS * bound.n_components:
            if not exists:
                raise ValueError(bound.ILL_DEFINED)
            return False
        fit.reseeded += len(gone)
        if not is_last:  # after the last pass a re-initialised component would not be fitted
            fit.theta, fit.s = self._reseeded(s, gone), None
        return True

    def _reseeded(self, s: Array, gone: Index) -> Theta:
        """Return θ with new components in place of those without rows."""
        fit = self.fit
        return reseed(self._bound, self.problem.source, fit.theta, s, gone, fit.rng)

    @property
    def _passes_left(self) -> int:
        """Whole passes left of the fit, not only of the phase."""
        return int(self.spec.max_passes - self.fit.passes + ROUNDING)

    def _leaves_plateau(self, drive: Drive) -> bool:
        """Go beyond the plateau on which em seems to have converged; return whether it is one."""
        fit, spec, remaining, beyond = self.fit, self.spec, self._remaining, None
        if spec.looks_ahead:
            most = 0.8 * remaining.small  # em gains more after the passes ahead
            beyond = beyond_plateau(self.problem, fit.theta, spec.tol, most, drive.check)
        if beyond is None:
            return False
        left = self._passes_left - 1
        if left > 0:
            if beyond[1] > left:
                beyond = em_of_candidates(self.problem, [fit.theta], left, 0.0, drive.check)[0]
            fit.theta, fit.s, fit.passes = beyond[0], None, fit.passes + beyond[1]
            remaining.restart()
        self._left = min(self._left, self._passes_left)
        if self._leaps is not None:
            self._leaps.restart()
        return True

    def fetch(self) -> None:
        """Copy θ and its statistics from the device, if they are there."""

    def kept(self) -> Tree:
        """Return the passes left, and the state of the stopping rule and of the larger steps."""
        return self._left, self._remaining.last, None if self._leaps is None else self._leaps.state

    def restore(self, kept: Any) -> None:
        """Restore what :meth:`kept` returned."""
        left, last, leaps = kept
        self._check()
        self._begin(left, last)
        if self._leaps is not None:
            self._leaps.restore(leaps, self._bound.size)


@dataclass
class EmOnDevice(Em):
    """Passes of em whose statistics, θ and stopping rule stay on a device; their results are noted here.

    Attributes
    ----------
    device : DeviceEM
        The passes on the device.
    """

    device: DeviceEM = field(kw_only=True)
    _is_ahead = False

    def _begin(self, left: int, last: tuple[float, float, float]) -> None:
        super()._begin(left, last)
        self.device.load(self.fit.theta, self._remaining.last)

    @property
    def _has_more(self) -> bool:
        """Whether passes are done already that are not noted yet."""
        return bool(self.device.done)

    def _pass(self, drive: Drive) -> tuple[float, float, Theta]:
        """Make a pass; M-steps are the CPU's only if the device has none."""
        fit, device = self.fit, self.device
        with self.problem.compute.checked_by(drive.check):
            objective, is_in, least = device.advance(self._left + 1)
        fit.passes += 1.0
        if is_in and least >= least_weight(self._bound, self._rows):
            self._is_ahead = True
            return objective, -objective, fit.theta
        if self._is_ahead:
            fit.theta, self._is_ahead = self._bound.m_step(device.before), False
        s = device.s
        is_new = self._reseeds(s)
        if not is_new:
            fit.s, fit.theta = s, self._bound.m_step(s)
        value = -inf if is_new else -objective
        after = Remaining(self.spec.tol, self._rows, self._remaining.last)
        after.is_small(value)
        device.load(fit.theta, after.last)
        return objective, value, fit.theta

    def _leaves_plateau(self, drive: Drive) -> bool:
        """Return False: a fit on a device does not look ahead."""
        return False

    def fetch(self) -> None:
        """Copy θ and its statistics from the device."""
        if self._is_ahead:
            self.fit.s, self._is_ahead = self.device.s, False
            self.fit.theta = self._bound.m_step(self.fit.s)


@dataclass
class Run(MixtureStep):
    """A run of a stochastic method, evaluated once per epoch.

    Attributes
    ----------
    method : Method
        The method.
    seed : int
        Seed of the draws.
    is_first : bool
        Whether it is one epoch before the method; otherwise it ends when it has converged.
    """

    method: Method
    seed: int
    is_first: bool = False

    def begin(self, drive: Drive) -> None:
        """Begin where the fit is."""
        fit, method, n = self.fit, self.method, self.problem.source.n
        assert fit.look is not None
        if fit.look.objective == inf:
            fit.look.at(fit.theta, 0.0)
        self._n_iter = iterations_in(method, n, drive.left, fit.s is not None)
        if self.is_first:
            self._n_iter = min(self._n_iter, method.epoch(n))
        fit.runs += self._n_iter >= 1
        self._before, self._last, self._ended = (fit.passes, fit.rejected), (0, 0), ""

    def advance(self, drive: Drive) -> Outcome:
        """Make the run."""
        if self._n_iter < 1:
            return Outcome.OUT_OF_PASSES if self.fit.moments else Outcome.TOO_FEW_PASSES
        fit, method, n = self.fit, self.method, self.problem.source.n
        gamma = schedules.resolve(method.step_size, n, method.batch_size)

        def at_epoch(iterate: Iterate) -> bool:
            if iterate.k == self._last[0]:
                return False
            drive.check()
            assert fit.look is not None
            fit.passes, fit.rejected = self._before[0] + iterate.passes, self._before[1] + iterate.rejected
            rests = fit.look.at(iterate.theta, fit.passes)
            drive.note(fit.look.objective, float(gamma(iterate.k)), method.name, iterate.theta)
            self._ended = self._end_at(iterate, rests)
            self._last = iterate.k, iterate.rejected
            return drive.is_stopped or bool(self._ended)

        result = run_problem(
            self.problem,
            method,
            theta0=fit.theta,
            s0=fit.s,
            seed=np.random.SeedSequence(self.seed, spawn_key=(fit.runs,)),
            n_iter=self._n_iter,
            record_every=method.epoch(n),
            record=lambda iterate: None,
            callback=at_epoch,
            checkpoint=drive.of_run(method, n),
        )
        fit.theta, fit.passes = result.theta, self._before[0] + result.passes
        fit.s = fit.s if result.s is None else result.s
        if result.status == "interrupted":
            raise KeyboardInterrupt
        at_epoch(Iterate(result.n_iter, result.passes, result.theta, result.s, result.rejected))
        return Outcome[self._ended] if self._ended and not drive.is_stopped else Outcome.OUT_OF_PASSES

    def _end_at(self, iterate: Iterate, rests: bool) -> str:
        """Return the name of the outcome if the run has ended."""
        k, rejected = self._last
        if len(self._bound.dead(iterate.s, self._rows)):
            return Outcome.DEAD_COMPONENT.name
        if iterate.rejected - rejected == iterate.k - k:  # further steps would be, too
            return Outcome.ALL_REJECTED.name
        return Outcome.CONVERGED.name if rests and not self.is_first else ""

    def kept(self) -> Tree:
        """Return the state of the run beside the method's."""
        return self._n_iter, self._before, self._last, self._ended

    def restore(self, kept: Any) -> None:
        """Restore what :meth:`kept` returned."""
        self._check()
        self._n_iter, self._before, self._last, self._ended = kept


def fit_from(
    start: Start,
    problem: Problem,
    spec: MixtureSpec,
    seed: int,
    watch: StartWatch,
    keeper: StartCheckpoint,
    last: tuple[float, float, float] | None = None,
    em_step: type[Em] = Em,
) -> MixtureFit:
    """Return the fit from a start.

    Parameters
    ----------
    start : Start
        The start.
    problem : Problem
        Model and data, and the memory budget.
    spec : MixtureSpec
        What the fit does.
    seed : int
        Seed of stochastic methods and re-initialisations.
    watch, keeper
        The observer and the checkpoints.
    last : tuple of float, optional
        The end of an earlier fit by em that it continues: bound, gain and rate.
    em_step : type
        The passes of em, if they are not of a mixture.
    """
    fit = new_fit(start, seed)
    if spec.method is not None:
        fit.look = Look(problem, spec.tol, 2 if spec.name == "sem" else 1)
        is_poor = last is None and not start.raced
        phases = stochastic_phases(fit, problem, spec, seed, spec.first if is_poor else None, em_step)
        drive(fit, phases, max_passes=spec.max_passes, watch=watch, keeper=keeper)
        return certified(fit, problem, spec)
    # An acceleration, a callback or a checkpoint uses each θ: M-steps are then the CPU's.
    is_plain = spec.acceleration is None and not (watch.wants_theta or keeper.saves)
    device: DeviceEM | None = None
    if is_plain and spec.max_passes > 0:
        rows, bound = rows_of(problem.source), cast(BoundComponents, problem.bound)
        small = Remaining(spec.tol, rows, multiple=spec.multiple).small
        device = problem.compute.em(spec.tol, small, least_weight(bound, rows))
    em = em_step(fit, problem, spec, spec.acceleration, last or UNKNOWN)
    if device is not None:
        em = EmOnDevice(fit, problem, spec, last=last or UNKNOWN, device=device)
    drive(fit, [Phase(em)], max_passes=spec.max_passes, watch=watch, keeper=keeper)
    em.fetch()
    return fit


def beyond_plateau(
    problem: Problem, theta: Theta, tol: float, most: float, check: Callable[[], None]
) -> tuple[Theta, int] | None:
    """Return where em leads and how many passes that takes, or None if it would gain at most ``most``.

    On few rows gains fall far below ``tol`` before a row changes its component, and rise again. No rate of
    the last passes foretells that, but passes are cheap. What leads to further collapsed components is no
    gain.
    """
    passes = min(NUMBERS.ahead, int(NUMBERS.work / pass_time(problem)))
    if problem.source.n > NUMBERS.scarce_rows or not tol:
        return None
    try:
        found, done = em_of_candidates(problem, [theta], passes, NUMBERS.tol * tol, check)[0]
    except ValueError:  # it leads to a component without coefficients
        return None
    if found is None or not problem.compute.objective(theta) - problem.compute.objective(found) > most:
        return None
    collapses = len(find_spurious(problem, found)) > len(find_spurious(problem, theta))
    return None if collapses else (found, done)


def least_weight(bound: BoundComponents, n: int) -> float:
    """Return the least weight in statistics of a component that is not dead, of n rows."""
    return -inf if bound.is_held else DEAD / n


def new_fit(start: Start, seed: int = 0) -> MixtureFit:
    """Return the state of a fit at its start."""
    rng = np.random.default_rng(seed)
    return MixtureFit(theta=start.theta, s=start.s, rng=rng, reseeded=start.empty, moves=start.moves)


def stochastic_phases(
    fit: MixtureFit,
    problem: Problem,
    spec: MixtureSpec,
    seed: int,
    first: Method | None,
    em_step: type[Em] = Em,
) -> list[Phase]:
    """Return the phases of a fit by a stochastic method: runs of it, and what em does between them.

    em repairs a dead component in one pass, and settles what has converged. It makes all passes that are
    left if they are too few for the method, or if the method's steps are all rejected.
    """
    assert spec.method is not None
    begin = [] if first is None else [Run(fit, problem, spec, first, seed, is_first=True)]
    run = len(begin)
    repair, settle, alone = run + 1, run + 2, run + 3
    after = {
        Outcome.DEAD_COMPONENT: repair,
        Outcome.ALL_REJECTED: alone,
        Outcome.TOO_FEW_PASSES: alone,
    }
    is_noisy = spec.name == "sem"
    return [
        *(Phase(step, {**after, Outcome.OUT_OF_PASSES: run}) for step in begin),
        Phase(Run(fit, problem, spec, spec.method, seed), {**after, Outcome.CONVERGED: settle}),
        Phase(
            em_step(fit, problem, spec), {Outcome.CONVERGED: run, Outcome.OUT_OF_PASSES: run}, most_passes=1
        ),
        Phase(
            em_step(fit, problem, spec, Squarem()),
            {} if is_noisy else {Outcome.OUT_OF_PASSES: run},
            most_passes=inf if is_noisy else EM_PASSES,
        ),
        Phase(em_step(fit, problem, spec)),
    ]


def certified(fit: MixtureFit, problem: Problem, spec: MixtureSpec) -> MixtureFit:
    """Return the fit with the objective of all rows and the stationarity, by one more pass."""
    if spec.max_passes > 0 and fit.s is not None and not fit.interrupted:
        try:
            fit.objective, fit.stationarity = certify(problem, fit.s, fit.theta)
        except KeyboardInterrupt:
            fit.interrupted = True
    return fit
