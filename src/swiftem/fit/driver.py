"""The driver of all fits: a sequence of phases, with Ctrl-C, history, callbacks, progress and checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar

from swiftem.core.checkpoint import RunCheckpoint, Saved, Store
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.process import clock
from swiftem.core.types import Theta, Tree
from swiftem.kernels.threads import get_threads, one_thread_blas
from swiftem.methods import Method

__all__ = [
    "Callbacks",
    "Drive",
    "FitState",
    "Moment",
    "Outcome",
    "Phase",
    "StartCheckpoint",
    "StartWatch",
    "Step",
    "Watcher",
    "drive",
    "progress_bar",
]


class Moment(NamedTuple):
    """State of a fit when its objective was evaluated.

    Attributes
    ----------
    passes : float
        E-step evaluations so far, divided by n.
    seconds : float
        Time since the start of the fit, without initialisation.
    objective : float
        Penalty plus mean negative log-likelihood, of all rows or of a fixed sample.
    step : float
        The step size γ last used; 1 for ``"em"`` and ``"iem"``.
    rejected : int
        Number of steps rejected so far because they left the model's domain.
    method : str
        The method in use.
    """

    passes: float
    seconds: float
    objective: float
    step: float
    rejected: int
    method: str


@dataclass(kw_only=True)
class FitState:
    """State of a fit; its parameters are fields of a subclass.

    Attributes
    ----------
    moments : list of Moment
        History of the fit.
    passes : float
        E-step evaluations divided by n.
    rejected : int
        Number of steps that would have left the model's domain.
    converged, interrupted : bool
        How it ended.
    """

    moments: list[Moment] = field(default_factory=list)
    passes: float = 0.0
    rejected: int = 0
    converged: bool = False
    interrupted: bool = False

    @property
    def bound(self) -> float:
        """Minus the last objective, by which fits are compared."""
        return -self.moments[-1].objective if self.moments else -inf

    def kept(self) -> dict[str, Tree]:
        """Return what checkpoints store."""
        return dict(vars(self))

    def restore(self, kept: Mapping[str, Tree]) -> None:
        """Restore what a checkpoint stored; raise an error if it has another form."""
        if kept.keys() != self.kept().keys():
            raise ValueError("the state has other fields")
        vars(self).update(kept)


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


@dataclass
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
    keeper : StartCheckpoint
        The checkpoints.
    interrupt : DeferredInterrupt
        Ctrl-C.
    is_stopped : bool
        Whether the observer ended the fit.
    """

    fit: FitState
    phases: Sequence[Phase]
    max_passes: float
    watch: StartWatch
    keeper: StartCheckpoint
    interrupt: DeferredInterrupt
    is_stopped: bool = False
    _is_over: bool = False
    _number: int = 0
    _limit: float = 0.0
    _began: float = field(default_factory=clock)

    @property
    def left(self) -> float:
        """Passes left of the phase."""
        return self._limit - self.fit.passes

    def check(self) -> None:
        """Raise KeyboardInterrupt after Ctrl-C."""
        self.interrupt.check()
        self.watch.check()

    def note(self, objective: float, step: float, method: str, theta: Any) -> bool:
        """Record an evaluation of the objective; return whether the observer ends the fit.

        Parameters
        ----------
        objective, step, method
            As in :class:`Moment`.
        theta : NamedTuple
            The parameters.
        """
        fit = self.fit
        moment = Moment(fit.passes, clock() - self._began, objective, step, fit.rejected, method)
        fit.moments.append(moment)
        self.is_stopped = self.watch(moment, theta)
        return self.is_stopped

    def of_run(self, method: Method, n: int, **instead: Tree) -> RunCheckpoint | None:
        """Return the checkpoints of a run of n samples, which store the fit, too.

        ``instead`` has other values for parts of the fit, None if the run itself stores them.
        """
        return self.keeper.of_run(method, n, lambda: self._kept(**instead))

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
            self.fit.interrupted = True
        else:
            self.keeper.save(self._kept, is_end=True)

    def _advance(self) -> None:
        phase = self.phases[self._number]
        outcome = phase.step.advance(self)
        following = None if outcome is None else phase.after.get(outcome)
        self.fit.converged = outcome is Outcome.CONVERGED and (self.is_stopped or following is None)
        if self.is_stopped or (outcome is not None and following is None):
            self._is_over = True
        elif following is not None:
            self._begin(following)
        else:
            self.keeper.save(self._kept)

    def _begin(self, number: int) -> None:
        """Begin a phase."""
        self._number, phase = number, self.phases[number]
        self._limit = min(self.fit.passes + phase.most_passes, self.max_passes)
        phase.step.begin(self)

    def _kept(self, **instead: Tree) -> dict[str, Tree]:
        """Return the state of the fit, its phase and its step."""
        return {
            "fit": self.fit.kept() | instead,
            "phase": (self._number, self._limit, self._is_over, self.is_stopped),
            "step": self.phases[self._number].step.kept(),
            "seconds": clock() - self._began,
        }

    def _resume(self) -> bool:
        """Restore the saved state; return whether there is one."""
        kept = self.keeper.load()
        if kept is None:
            return False
        with self.keeper.reading():
            self.fit.restore(kept["fit"])
            self._number, self._limit, self._is_over, self.is_stopped = kept["phase"]
            self.phases[self._number].step.restore(kept["step"])
            self._began -= kept["seconds"]
        return True


def drive(
    fit: FitState,
    phases: Sequence[Phase],
    *,
    max_passes: float,
    watch: StartWatch | None = None,
    keeper: StartCheckpoint | None = None,
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
    keeper : StartCheckpoint, optional
        The checkpoints.
    """
    with keeper or StartCheckpoint() as kept, DeferredInterrupt() as interrupt:
        Drive(fit, phases, max_passes, watch or StartWatch(), kept, interrupt).go()


class StartCheckpoint:
    """Checkpoints of the fit from one start; without a store there are none.

    Parameters
    ----------
    store : Store, optional
        The start's folder.
    every : int, optional
        Evaluations of the objective between checkpoints; None: each one, unless that takes too much time.
    """

    def __init__(self, store: Store | None = None, every: int | None = None) -> None:
        self._store, self._every, self._passes = store, every, 0
        self._saved: Saved | None = None

    @property
    def saves(self) -> bool:
        """Whether there are checkpoints."""
        return self._store is not None

    def load(self) -> Any:
        """Return the last saved state, or None."""
        self._saved = None if self._store is None else self._store.load()
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
        return nullcontext() if self._store is None else self._store.reading()

    def save(self, place: Callable[[], Any], *, is_end: bool = False) -> None:
        """Save the state of a fit between two passes, if a checkpoint is due or the fit has ended."""
        if self._store is None:
            return
        self._passes += 1
        is_due = self._store.may_save if self._every is None else self._passes % self._every == 0
        if is_due or is_end:
            self._store.save({"state": None, "extra": place()})

    def of_run(self, method: Method, n: int, place: Callable[[], Any]) -> RunCheckpoint | None:
        """Return the checkpoints of a run; the first run after a restart resumes from them.

        ``place()`` is saved with each of them in the same file, so that the run and the fit around it are
        always of the same moment.
        """
        if self._store is None:
            return None
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

    def __enter__(self) -> StartCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        if self._store is not None:
            self._store.close()


def progress_bar(console: Any = None) -> Any:
    """Return the progress bar of rich that fits and commands show; nothing if the console is a file."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column

    # In a narrow terminal the bar gets shorter, not the words.
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f},"),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        TextColumn("elapsed,"),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        TextColumn("remaining"),
    )
    disabled = console is not None and not console.is_terminal
    return Progress(*columns, console=console, disable=disabled)


F = TypeVar("F", bound=FitState)


class Callbacks(NamedTuple):
    """scikit-learn's callbacks of a fit.

    Attributes
    ----------
    begin : callable
        Returns the context of a fit of so many starts.
    arguments : dict
        What every callback receives.
    attributes_of : callable
        Returns the fitted attributes for parameters.
    most_passes : int or None
        Maximum number of "pass" tasks of a start, if known.
    """

    begin: Callable[[int], Any]
    arguments: dict[str, Any]
    attributes_of: Callable[[Any], dict[str, Any]]
    most_passes: int | None


@dataclass
class Watcher:
    """Observes the fits of one call of ``fit``.

    The tasks of scikit-learn's callbacks are "fit", in it a "start" for each fit, and in that a "pass" for
    each evaluation of the objective: after each pass of em, once per epoch of other methods. A callback that
    returns True at the end of a pass ends its start; at the end of a start, it prevents further starts.

    Parameters
    ----------
    n_starts : int
        Number of fits.
    verbose, interval : int
        Parameters of the estimator: how much to print, and the passes between lines.
    max_iter : int
        Maximum number of passes of a fit.
    title : str
        First line of each fit, if it is not its number.
    callbacks : Callbacks, optional
        The callbacks.
    at_once : bool
        Whether several fits may run at the same time, each with its own memory.

    Attributes
    ----------
    is_fitted : bool
        Set it once the estimator is fitted, before the context ends.
    """

    n_starts: int
    verbose: int = 0
    interval: int = 10
    max_iter: int = 0
    title: str = ""
    callbacks: Callbacks | None = None
    at_once: bool = True
    is_fitted: bool = False
    context: Any = None
    bar: Any = None
    _open: list[StartWatch] = field(default_factory=list)

    def __enter__(self) -> Watcher:
        if self.callbacks is not None:
            self.context = self.callbacks.begin(self.n_starts)
            self.context.call_on_fit_task_begin(**self.callbacks.arguments)
        if self.verbose and sys.stdout.isatty():
            self.bar = progress_bar()
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
        if error is None:
            for watch in self._open:
                watch.end()
            if self.context is not None and self.callbacks is not None:
                self.context.call_on_fit_task_end(
                    **self.callbacks.arguments, reconstruction_attributes={} if self.is_fitted else None
                )

    def map(self, fit: Callable[[int, StartWatch], F]) -> list[F]:
        """Return ``fit(0, watch)``, ...: in threads, unless there are callbacks or output.

        The list is shorter if a callback or Ctrl-C ended the fits. In threads, ``watch.check`` raises after
        Ctrl-C.
        """
        # Around all of them, as the setting is for the whole process.
        with one_thread_blas():
            if self.n_starts > 1 and self.at_once and not self._listens() and get_threads() > 1:
                most = min(self.n_starts, get_threads())
                with DeferredInterrupt() as interrupt, ThreadPoolExecutor(most) as pool:
                    watches = [StartWatch(interrupt.check) for _ in range(self.n_starts)]
                    return list(pool.map(fit, range(self.n_starts), watches))
            fits: list[F] = []
            for number in range(self.n_starts):
                watch = self.watch(number)
                fits.append(fit(number, watch))
                if watch.end(fits[-1]) or fits[-1].interrupted:
                    break
            return fits

    def watch(self, number: int) -> StartWatch:
        """Return the observer of fit ``number``."""
        if not self._listens():
            return StartWatch()
        lines = None
        if self.verbose and self.bar is None:
            lines = Lines(self.title or f"Initialization {number}", self.verbose, self.interval)
        self._open.append(TellingWatch(self, number, lines))
        return self._open[-1]

    def _listens(self) -> bool:
        return bool(self.context is not None or self.verbose)


class Lines:
    """Prints the progress of a fit in scikit-learn's words; its times and gains if ``verbose`` is above 1."""

    def __init__(self, title: str, verbose: int, interval: int) -> None:
        self._is_long, self._interval, self._printed = verbose > 1, interval, 0
        self._began = self._before = clock()
        print(title)

    def after_pass(self, passes: float, gain: float) -> None:
        """Print a line for the last multiple of the interval: evaluations may be several passes apart."""
        reached = int(passes + 1e-9) // self._interval * self._interval
        if reached <= self._printed:
            return
        self._printed, now = reached, clock()
        more = f"\t time lapse {now - self._before:.5f}s\t ll change {gain:.5f}" if self._is_long else ""
        self._before = now
        print(f"  Iteration {reached}{more}")

    def end(self, bound: float, converged: bool) -> None:
        """Print the last line."""
        seconds = clock() - self._began
        more = f" time lapse {seconds:.5f}s\t lower bound {bound:.5f}." if self._is_long else ""
        print(f"Initialization {'converged' if converged else 'did not converge'}.{more}")


class StartWatch:
    """Observes one start, without output; ``check`` raises KeyboardInterrupt after Ctrl-C."""

    wants_theta = False
    """Whether θ of each moment is used."""

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self.check = check

    def __call__(self, moment: Moment, theta: Theta) -> bool:
        """Record a moment; return whether the fit must stop."""
        return False

    def end(self, fit: FitState | None = None) -> bool:
        """Record the end of the start; return whether there are no further starts."""
        return False


class TellingWatch(StartWatch):
    """Observes one start, with output."""

    def __init__(self, watcher: Watcher, number: int, lines: Lines | None) -> None:
        super().__init__()
        self._bar, self._lines, self._callbacks = watcher.bar, lines, watcher.callbacks
        name = f"start {number + 1} of {watcher.n_starts}"
        self._shown = "log-likelihood" if watcher.n_starts == 1 else f"{name}:"
        self._max_iter, self._last, self._theta = watcher.max_iter, inf, None
        self._context: Any = None
        if self._callbacks is not None:
            most = self._callbacks.most_passes
            self._context = watcher.context.subcontext(task_name="start", max_subtasks=most)
            self._context.call_on_fit_task_begin(**self._callbacks.arguments)
            self.wants_theta = True
        if self._bar is not None:
            self._task = self._bar.add_task(name, total=self._max_iter)

    def __call__(self, moment: Moment, theta: Theta) -> bool:
        """Advance the bar or print a line, then call the callbacks."""
        if self._bar is not None:
            words = f"{self._shown} {-moment.objective:.5f}"
            self._bar.update(self._task, completed=moment.passes, description=words)
        elif self._lines is not None:
            self._lines.after_pass(moment.passes, self._last - moment.objective)
        self._last, self._theta = moment.objective, theta
        if self._context is None or self._callbacks is None:
            return False
        step = self._context.subcontext(task_name="pass")
        step.call_on_fit_task_begin(**self._callbacks.arguments)
        return self._ends(step)

    def end(self, fit: FitState | None = None) -> bool:
        """Complete the bar or print the last line, then call the callbacks, once."""
        context, self._context = self._context, None
        if fit is not None and self._bar is not None:
            self._bar.update(self._task, completed=self._max_iter)
        elif fit is not None and self._lines is not None and self._max_iter > 0:
            self._lines.end(fit.bound, fit.converged)
        return context is not None and self._ends(context)

    def _ends(self, context: Any) -> bool:
        """Call the callbacks at the end of a task; return whether they end the fit."""
        assert self._callbacks is not None
        told = self._callbacks.arguments
        return bool(context.call_on_fit_task_end(**told, reconstruction_attributes=self._attributes))

    def _attributes(self) -> dict[str, Any] | None:
        """Return the estimator's attributes as if the fit had stopped at the last moment."""
        if self._theta is None or self._callbacks is None:
            return None
        return self._callbacks.attributes_of(self._theta)
