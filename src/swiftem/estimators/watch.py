"""What is told while an estimator fits: a progress bar or lines, and scikit-learn's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from swiftem._typing import Theta
from swiftem.estimators.history import Moment
from swiftem.kernels.threads import get_threads, one_thread_blas

__all__ = ["Watcher"]

T = TypeVar("T")


class Watcher:
    """Watches the fits of one call of ``fit``.

    Parameters
    ----------
    estimator : GaussianMixture
        Who fits: its ``verbose``, ``verbose_interval``, ``max_iter`` and callbacks count.
    n_starts : int
        How many fits there will be.
    X : ndarray
        The rows, for the callbacks.
    """

    def __init__(self, estimator: Any, n_starts: int, X: Any) -> None:
        self._estimator, self._n_starts, self._X = estimator, n_starts, X
        self._callbacks = bool(getattr(estimator, "_skl_callbacks", None))
        self._context: Any = None
        self._bar: Any = None

    def __enter__(self) -> Watcher:
        estimator = self._estimator
        if self._callbacks:
            self._context = estimator._init_callback_context(max_subtasks=self._n_starts)
            self._context.call_on_fit_task_begin(estimator=estimator, X=self._X)
        if estimator.verbose and sys.stdout.isatty():
            from rich.progress import Progress

            self._bar = Progress()
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._context is not None and error is None:
            self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X)

    def map(self, fit: Callable[[int], T], count: int) -> list[T]:
        """Return ``fit(0)``, ``fit(1)``, ...: in threads, unless somebody listens."""
        if count == 1 or self._callbacks or self._estimator.verbose or get_threads() == 1:
            return [fit(number) for number in range(count)]
        # Around all of them, as the setting is one for the whole process.
        with one_thread_blas(), ThreadPoolExecutor(min(count, get_threads())) as pool:
            return list(pool.map(fit, range(count)))

    def watch(self, number: int) -> Callable[[Moment, Theta], bool]:
        """Return who watches fit ``number``."""
        estimator = self._estimator
        context = self._start_context()
        task = None
        if self._bar is not None:
            task = self._bar.add_task(f"start {number + 1} of {self._n_starts}", total=estimator.max_iter)
        elif estimator.verbose:
            estimator._print_verbose_msg_init_beg(number)
        last = np.nan

        def look(moment: Moment, theta: Theta) -> bool:
            nonlocal last
            if self._bar is not None:
                words = f"start {number + 1} of {self._n_starts}: mean log-likelihood {-moment.objective:.5f}"
                self._bar.update(task, completed=moment.passes, description=words)
            elif estimator.verbose:
                estimator._print_verbose_msg_iter_end(round(moment.passes), last - moment.objective)
            last = moment.objective
            return context is not None and self._pass_ended(context, theta)

        return look

    def _start_context(self) -> Any:
        if self._context is None:
            return None
        context = self._context.subcontext(task_name="start", max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self._estimator, X=self._X)
        return context

    def _pass_ended(self, context: Any, theta: Theta) -> bool:
        """Tell the callbacks, with a model as if the fit had stopped here; return whether one wants to stop."""
        step = context.subcontext(task_name="pass")
        step.call_on_fit_task_begin(estimator=self._estimator, X=self._X)
        fitted = self._estimator.attributes_of(theta)
        return bool(
            step.call_on_fit_task_end(estimator=self._estimator, X=self._X, reconstruction_attributes=fitted)
        )
