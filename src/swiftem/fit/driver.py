"""The driver of all fits: a sequence of phases, with Ctrl-C, history, callbacks and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Any, Protocol

from swiftem.core.checkpoint import RunCheckpoint
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.process import clock
from swiftem.core.types import Tree
from swiftem.fit.history import FitState, Moment
from swiftem.fit.watch import NoStart, StartWatch
from swiftem.methods import Method

__all__ = ["Drive", "FitState", "Outcome", "Phase", "Step", "drive"]


class Outcome(Enum):
    """How a phase ended."""

    CONVERGED = "converged"
    OUT_OF_PASSES = "the passes of the phase are used up"
    TOO_FEW_PASSES = "too few passes were left to begin"
    DEAD_COMPONENT = "a component lost its rows"
    ALL_REJECTED = "no step stays within the model's domain"


class Step(Protocol):
    """What a phase repeats: a pass of em, or a whole run of a stochastic method."""

    def begin(self, drive: Drive) -> None:
        """Begin a phase; not called if it resumes from a checkpoint."""
        ...

    def advance(self, drive: Drive) -> Outcome | None:
        """Advance the fit and call ``drive.note``; return how the phase ended, or None if it goes on."""
        ...

    def kept(self) -> Tree:
        """Return what the next step depends on beside the fit."""
        ...

    def restore(self, kept: Any) -> None:
        """Restore what :meth:`kept` returned; raise an error if it has another form."""
        ...


@dataclass(frozen=True)
class Phase:
    """A part of a fit.

    Attributes
    ----------
    step : Step
        What it repeats.
    after : mapping
        Index of the next phase by outcome; after others the fit ends.
    most_passes : float
        Maximum number of passes.
    """

    step: Step
    after: Mapping[Outcome, int] = field(default_factory=dict)
    most_passes: float = inf


class Drive:
    """A fit under way, as steps see it.

    Parameters
    ----------
    fit : FitState
        The fit.
    phases : sequence of Phase
        The first one begins.
    max_passes : float
        Maximum number of passes of all phases.
    watch : StartWatch
        The observer.
    keeper : NoStart
        The checkpoints.
    interrupt : DeferredInterrupt
        Ctrl-C.

    Attributes
    ----------
    is_stopped : bool
        Whether the observer ended the fit.
    """

    def __init__(
        self,
        fit: FitState,
        phases: Sequence[Phase],
        max_passes: float,
        watch: StartWatch,
        keeper: NoStart,
        interrupt: DeferredInterrupt,
    ) -> None:
        self._fit, self._phases, self._max_passes = fit, phases, max_passes
        self._watch, self._keeper, self._interrupt = watch, keeper, interrupt
        self._number, self._limit, self._began = 0, 0.0, clock()
        self._is_over = self.is_stopped = False

    @property
    def left(self) -> float:
        """Passes left of the phase."""
        return self._limit - self._fit.passes

    def check(self) -> None:
        """Raise KeyboardInterrupt after Ctrl-C."""
        self._interrupt.check()
        self._watch.check()

    def note(self, objective: float, step: float, method: str, theta: Any) -> bool:
        """Record an evaluation of the objective; return whether the observer ends the fit.

        Parameters
        ----------
        objective, step, method
            As in :class:`swiftem.fit.history.Moment`.
        theta : NamedTuple
            The parameters.
        """
        fit = self._fit
        moment = Moment(fit.passes, clock() - self._began, objective, step, fit.rejected, method)
        fit.moments.append(moment)
        self.is_stopped = self._watch(moment, theta)
        return self.is_stopped

    def of_run(self, method: Method, n: int, **instead: Tree) -> RunCheckpoint | None:
        """Return the checkpoints of a run of n samples, which store the fit, too.

        ``instead`` has other values for parts of the fit, None if the run itself stores them.
        """
        return self._keeper.of_run(method, n, lambda: self._kept(**instead))

    def go(self) -> None:
        """Go through the phases, from the saved one if there is a checkpoint."""
        is_resumed = self._resume()
        if self._is_over:
            return
        try:
            if not is_resumed:
                self._begin(0)
            while not self._is_over:
                self._advance()
            self.check()
        except KeyboardInterrupt:
            self._fit.interrupted = True
        else:
            self._keeper.save(self._kept, is_end=True)

    def _advance(self) -> None:
        phase = self._phases[self._number]
        outcome = phase.step.advance(self)
        following = None if outcome is None else phase.after.get(outcome)
        self._fit.converged = outcome is Outcome.CONVERGED and (self.is_stopped or following is None)
        if self.is_stopped or (outcome is not None and following is None):
            self._is_over = True
        elif following is not None:
            self._begin(following)
        else:
            self._keeper.save(self._kept)

    def _begin(self, number: int) -> None:
        """Begin a phase."""
        self._number, phase = number, self._phases[number]
        self._limit = min(self._fit.passes + phase.most_passes, self._max_passes)
        phase.step.begin(self)

    def _kept(self, **instead: Tree) -> dict[str, Tree]:
        """Return the state of the fit, its phase and its step."""
        return {
            "fit": self._fit.kept() | instead,
            "phase": (self._number, self._limit, self._is_over, self.is_stopped),
            "step": self._phases[self._number].step.kept(),
            "seconds": clock() - self._began,
        }

    def _resume(self) -> bool:
        """Restore the saved state; return whether there is one."""
        kept = self._keeper.load()
        if kept is None:
            return False
        with self._keeper.reading():
            self._fit.restore(kept["fit"])
            self._number, self._limit, self._is_over, self.is_stopped = kept["phase"]
            self._phases[self._number].step.restore(kept["step"])
            self._began -= kept["seconds"]
        return True


def drive(
    fit: FitState,
    phases: Sequence[Phase],
    *,
    max_passes: float,
    watch: StartWatch | None = None,
    keeper: NoStart | None = None,
) -> None:
    """Fit: go through phases until one has no successor, the observer ends the fit, or Ctrl-C is pressed.

    Parameters
    ----------
    fit : FitState
        The start, which becomes the result.
    phases : sequence of Phase
        The phases; the first one begins.
    max_passes : float
        Maximum number of passes.
    watch : StartWatch, optional
        The observer.
    keeper : NoStart, optional
        The checkpoints.
    """
    with keeper or NoStart() as kept, DeferredInterrupt() as interrupt:
        Drive(fit, phases, max_passes, watch or StartWatch(), kept, interrupt).go()
