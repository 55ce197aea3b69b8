"""Progress of a fit: a bar or lines, and scikit-learn's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from math import inf
from types import TracebackType
from typing import Any, Protocol, TypeVar

from swiftem.core.checkpoint import RunCheckpoint
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.types import Theta
from swiftem.fit.history import Moment
from swiftem.kernels.threads import get_threads, one_thread_blas
from swiftem.methods import Method

__all__ = [
    "NoStart",
    "StartWatch",
    "VerboseLines",
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


class Watcher:
    """Observes the fits of one call of ``fit``.

    The tasks of scikit-learn's callbacks are "fit", in it a "start" for each fit, and in that a "pass" for
    each evaluation of the objective: after each pass of em, once per epoch of other methods. A callback that
    returns True at the end of a pass ends its start; at the end of a start, it prevents further starts.

    Parameters
    ----------
    estimator : estimator
        Its ``verbose``, ``verbose_interval``, ``max_iter``, ``attributes_of`` and callbacks are used.
    n_starts : int
        Number of fits.
    X, y, sample_weight
        As passed to the callbacks.
    most_looks : int, optional
        Maximum number of "pass" tasks of a start, if known.
    at_once : bool
        Whether several fits may run at the same time, each with its own memory.
    """

    def __init__(
        self,
        estimator: Any,
        n_starts: int,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        most_looks: int | None = None,
        at_once: bool = True,
    ) -> None:
        self.estimator, self.n_starts, self.most_looks = estimator, n_starts, most_looks
        self.at_once = at_once
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.told = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.context: Any = None
        self.bar: Any = None
        self.is_fitted = False  # set it once the estimator is fitted, before the context ends
        self._open: list[StartWatch] = []

    def __enter__(self) -> Watcher:
        if getattr(self.estimator, "_skl_callbacks", None):
            self.context = self.estimator._init_callback_context(max_subtasks=self.n_starts)
            self.context.call_on_fit_task_begin(**self.told)
        if self.estimator.verbose and sys.stdout.isatty():
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
            if self.context is not None:
                self.context.call_on_fit_task_end(
                    **self.told, reconstruction_attributes={} if self.is_fitted else None
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
        self._open.append(TellingWatch(self, number))
        return self._open[-1]

    def _listens(self) -> bool:
        return bool(self.context is not None or self.estimator.verbose)


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

    def __init__(self, watcher: Watcher, number: int) -> None:
        super().__init__()
        self._estimator, self._bar, self._told = watcher.estimator, watcher.bar, watcher.told
        name = f"start {number + 1} of {watcher.n_starts}"
        self._shown = "log-likelihood" if watcher.n_starts == 1 else f"{name}:"
        self._last, self._printed, self._theta = inf, 0, None
        self._context: Any = None
        if watcher.context is not None:
            self._context = watcher.context.subcontext(task_name="start", max_subtasks=watcher.most_looks)
            self._context.call_on_fit_task_begin(**self._told)
            self.wants_theta = True
        if self._bar is not None:
            self._task = self._bar.add_task(name, total=self._estimator.max_iter)
        elif self._estimator.verbose:
            self._estimator._print_verbose_msg_init_beg(number)

    def __call__(self, moment: Moment, theta: Theta) -> bool:
        """Advance the bar or print a line, then call the callbacks."""
        self._show(moment)
        self._last, self._theta = moment.objective, theta
        if self._context is None:
            return False
        step = self._context.subcontext(task_name="pass")
        step.call_on_fit_task_begin(**self._told)
        return bool(step.call_on_fit_task_end(**self._told, reconstruction_attributes=self._attributes))

    def _show(self, moment: Moment) -> None:
        if self._bar is not None:
            words = f"{self._shown} {-moment.objective:.5f}"
            self._bar.update(self._task, completed=moment.passes, description=words)
        elif self._estimator.verbose:
            # Evaluations may be several passes apart: a line for the last multiple of the interval between
            # them.
            interval = getattr(self._estimator, "verbose_interval", 10)
            reached = int(moment.passes + 1e-9) // interval * interval
            if reached > self._printed:
                self._estimator._print_verbose_msg_iter_end(reached, self._last - moment.objective)
                self._printed = reached

    def end(self, fit: Ended | None = None) -> bool:
        """Complete the bar or print scikit-learn's last line, then call the callbacks, once."""
        context, self._context = self._context, None
        if fit is not None and self._bar is not None:
            self._bar.update(self._task, completed=self._estimator.max_iter)
        elif fit is not None and self._estimator.verbose and self._estimator.max_iter > 0:
            self._estimator._print_verbose_msg_init_end(fit.bound, fit.converged)
        if context is None:
            return False
        return bool(context.call_on_fit_task_end(**self._told, reconstruction_attributes=self._attributes))

    def _attributes(self) -> dict[str, Any] | None:
        """Return the estimator as if the fit had stopped at the last moment."""
        return None if self._theta is None else self._estimator.attributes_of(self._theta)


class VerboseLines:
    """What ``verbose`` prints, for estimators that do not derive from scikit-learn's mixture."""

    def _print_verbose_msg_init_beg(self, number: int) -> None:
        print(f"Start {number}")

    def _print_verbose_msg_iter_end(self, passes: int, gain: float) -> None:
        print(f"  Pass {passes}\t gain of the mean log-likelihood {gain:.5f}")

    def _print_verbose_msg_init_end(self, bound: float, converged: bool) -> None:
        print(f"{'Converged' if converged else 'Not converged'}, mean log-likelihood {bound:.5f}")


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
