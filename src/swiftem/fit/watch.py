"""Progress of a fit: a bar or lines, and scikit-learn's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from math import inf
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar

from swiftem.core.checkpoint import RunCheckpoint
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.process import clock
from swiftem.core.types import Theta
from swiftem.fit.history import Moment
from swiftem.kernels.threads import get_threads, one_thread_blas
from swiftem.methods import Method

__all__ = [
    "Callbacks",
    "NoStart",
    "StartWatch",
    "Watcher",
    "progress_bar",
]


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


class Ended(Protocol):
    """Attributes of a fit that are read at its end."""

    converged: bool
    interrupted: bool

    @property
    def bound(self) -> float:
        """Mean log-likelihood."""
        ...


F = TypeVar("F", bound=Ended)


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
    """

    def __init__(
        self,
        n_starts: int,
        verbose: int = 0,
        interval: int = 10,
        max_iter: int = 0,
        title: str = "",
        callbacks: Callbacks | None = None,
        at_once: bool = True,
    ) -> None:
        self.n_starts, self.max_iter, self.callbacks = n_starts, max_iter, callbacks
        self.is_fitted = False  # set it once the estimator is fitted, before the context ends
        self.context: Any = None
        self.bar: Any = None
        self._verbose, self._interval, self._title = verbose, interval, title
        self._at_once, self._open = at_once, list[StartWatch]()

    def __enter__(self) -> Watcher:
        if self.callbacks is not None:
            self.context = self.callbacks.begin(self.n_starts)
            self.context.call_on_fit_task_begin(**self.callbacks.arguments)
        if self._verbose and sys.stdout.isatty():
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
            if self.n_starts > 1 and self._at_once and not self._listens() and get_threads() > 1:
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
        if self._verbose and self.bar is None:
            lines = Lines(self._title or f"Initialization {number}", self._verbose, self._interval)
        self._open.append(TellingWatch(self, number, lines))
        return self._open[-1]

    def _listens(self) -> bool:
        return bool(self.context is not None or self._verbose)


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

    def end(self, fit: Ended | None = None) -> bool:
        """Record the end of the start; return whether there are no further starts."""
        return False


class TellingWatch(StartWatch):
    """Observes one start, with output."""

    def __init__(self, watcher: Watcher, number: int, lines: Lines | None) -> None:
        super().__init__()
        self._bar, self._lines, self._callbacks = watcher.bar, lines, watcher.callbacks
        name, self._max_iter = f"start {number + 1} of {watcher.n_starts}", watcher.max_iter
        self._shown = "log-likelihood" if watcher.n_starts == 1 else f"{name}:"
        self._last, self._theta = inf, None
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

    def end(self, fit: Ended | None = None) -> bool:
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


class NoStart:
    """A start without checkpoints; see :class:`swiftem.fit.checkpoint.StartCheckpoint`."""

    saves = False
    """Whether there are checkpoints."""

    def load(self) -> Any:
        """Return the last saved state, or None."""
        return None

    def reading(self) -> AbstractContextManager[None]:
        """Return a context for the use of a saved state; errors raised in it name the folder."""
        return nullcontext()

    def save(self, place: Callable[[], Any], *, is_end: bool = False) -> None:
        """Save the state of a fit between two passes, if a checkpoint is due or the fit has ended."""

    def of_run(self, method: Method, n: int, place: Callable[[], Any]) -> RunCheckpoint | None:
        """Return the checkpoints of a run; ``place()`` is saved with each of them.

        Both are in the same file, so that the run and the fit around it are always of the same moment.
        """
        return None

    def __enter__(self) -> NoStart:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release the folder."""
