"""A progress bar while an estimator fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["fit_progress"]

PASSES_A_LOOK = {"sem-vr": 3, "fiem": 2}
"""Passes between two looks at the objective; 1 for the other methods."""


@contextmanager
def fit_progress(model: Any, method: str, console: Console) -> Iterator[None]:
    """Show a bar on a terminal while ``model`` is fitted inside the ``with``: passes, of the most allowed.

    Parameters
    ----------
    model : PLSA
        It must have callbacks of scikit-learn, and ``max_iter``.
    method : str
        The method that it is fitted by.
    console : Console
        Where to show it; nothing is shown where it is no terminal.
    """
    if not console.is_terminal:
        yield
        return
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("fitting", total=model.max_iter)
        model.set_callbacks(_Passes(bar, task, PASSES_A_LOOK.get(method, 1)))
        try:
            yield
        finally:
            model.set_callbacks()


class _Passes:
    """scikit-learn's callback: moves the bar at the end of each pass."""

    def __init__(self, bar: Progress, task: Any, passes: int) -> None:
        self._bar, self._task, self._passes = bar, task, passes

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        if context.task_name == "pass":
            done = self._passes * (context.task_id + 1)
            self._bar.update(
                self._task, completed=done, description=f"fitting: pass {done}, at most {estimator.max_iter}"
            )
        return False
