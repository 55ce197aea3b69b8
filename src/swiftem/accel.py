"""Run a script that uses scikit-learn's GaussianMixture with swiftem's instead.

``python -m swiftem.accel script.py`` runs an unchanged script (``-m module`` a module), and ``%load_ext
swiftem.accel`` does the same in a notebook, before the import of scikit-learn's class. Afterwards a report
says what was replaced, how long the fits took, and what was not replaced and why.

Classes that a script derives from ``GaussianMixture`` stay scikit-learn's: they may override methods that
swiftem never calls. So do processes that a script starts and that import scikit-learn themselves.
"""

from __future__ import annotations

import functools
import inspect
import runpy
import sys
import time
from abc import ABCMeta
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from threading import local
from typing import Any

__all__ = ["Report", "accelerated", "load_ipython_extension", "main", "unload_ipython_extension"]

OTHER_MODELS = {
    "sklearn.mixture.BayesianGaussianMixture": "swiftem has no variational mixtures",
    "sklearn.decomposition.LatentDirichletAllocation": "swiftem.PLSA is another model",
}
"""Classes of scikit-learn that swiftem has no equal of, and why."""

USAGE = "usage: python -m swiftem.accel [-m] SCRIPT [ARGUMENTS ...]"


class Report:
    """What was replaced, and what was not.

    Attributes
    ----------
    made, fits : int
        Number of estimators that were replaced, and of their fits in this process.
    seconds : float
        Time of these fits.
    left : dict
        Why a class was not replaced, by its name.
    """

    def __init__(self) -> None:
        self.made = self.fits = 0
        self.seconds = 0.0
        self.left: dict[str, str] = {}
        self.of_thread = local()

    def __str__(self) -> str:
        lines = [f"{name} was not replaced: {why}." for name, why in sorted(self.left.items())]
        if self.made:
            fits = "1 fit" if self.fits == 1 else f"{self.fits} fits"
            lines.insert(0, f"GaussianMixture was replaced: {fits} in {self.seconds:.2f} s.")
        return "\n".join(f"swiftem.accel: {line}" for line in lines or ["there was nothing to replace."])


class accelerated(AbstractContextManager["Report"]):
    """Replace scikit-learn's ``GaussianMixture`` by swiftem's within a ``with`` block.

    Returns
    -------
    report : Report
        Filled while the block runs; ``print(report)`` shows it.

    Examples
    --------
    >>> from swiftem.accel import accelerated
    >>> with accelerated() as report:
    ...     from sklearn.mixture import GaussianMixture
    ...
    ...     mixture = GaussianMixture(2, random_state=0).fit([[0.0], [0.1], [4.0], [4.1]])
    >>> type(mixture).__module__, report.fits
    ('swiftem.mixture.gaussian_mixture', 1)
    """

    def __enter__(self) -> Report:
        """Put the replacement in place."""
        import sklearn.decomposition
        import sklearn.mixture

        import swiftem

        report = Report()
        with ExitStack() as stack:
            replacement = stand_in(sklearn.mixture.GaussianMixture, swiftem.GaussianMixture, report)
            for method in ("fit", "fit_predict"):
                timed = timed_method(getattr(swiftem.GaussianMixture, method), report)
                replace(stack, swiftem.GaussianMixture, method, timed)
            for path, why in OTHER_MODELS.items():
                module, _, name = path.rpartition(".")
                cls = getattr(sys.modules[module], name)
                replace(stack, cls, "fit", noted_method(cls.fit, name, why, report))
            replace(stack, sklearn.mixture, "GaussianMixture", replacement)
            self._stack = stack.pop_all()
        return report

    def __exit__(self, *error: object) -> None:
        """Put scikit-learn's class back."""
        self._stack.close()


def replace(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    """Set an attribute until ``stack`` is closed."""
    had, old = name in vars(owner), getattr(owner, name)
    stack.callback(*((setattr, owner, name, old) if had else (delattr, owner, name)))
    setattr(owner, name, value)


def stand_in(original: type, ours: type, report: Report) -> type:
    """Return a class that makes instances of ``ours`` and counts instances of ``original`` as its own."""
    known = set(inspect.signature(original).parameters)

    class StandIn(ABCMeta):
        """A call makes swiftem's estimator; a class that derives from it derives from scikit-learn's."""

        def __new__(mcs, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any) -> type:
            if any(isinstance(base, StandIn) for base in bases):
                report.left[name] = "it derives from GaussianMixture and may override its methods"
                bases = tuple(original if isinstance(base, StandIn) else base for base in bases)
                return type(original)(name, bases, members, **options)
            return super().__new__(mcs, name, bases, members, **options)

        def __call__(cls, *args: Any, **parameters: Any) -> Any:
            if len(args) > 1 or not set(parameters) <= known:
                return original(*args, **parameters)  # scikit-learn says what is wrong
            report.made += 1
            return ours(*args, **parameters)

        def __instancecheck__(cls, instance: object) -> bool:
            return original in type(instance).__mro__

        def __subclasscheck__(cls, subclass: type) -> bool:
            return original in subclass.__mro__

    members = {"__doc__": original.__doc__, "__module__": original.__module__}
    members["__signature__"] = inspect.signature(original)  # type: ignore[assignment]
    return StandIn(original.__name__, (original,), members)


def timed_method(method: Callable[..., Any], report: Report) -> Callable[..., Any]:
    """Return ``method`` such that the report counts its calls and their time, each fit once."""

    @functools.wraps(method)
    def timed(self: Any, *args: Any, **keywords: Any) -> Any:
        if getattr(report.of_thread, "fits", False):
            return method(self, *args, **keywords)
        report.of_thread.fits = True
        start = time.perf_counter()
        try:
            return method(self, *args, **keywords)
        finally:
            report.of_thread.fits = False
            report.fits += 1
            report.seconds += time.perf_counter() - start

    return timed


def noted_method(method: Callable[..., Any], name: str, why: str, report: Report) -> Callable[..., Any]:
    """Return ``method`` such that a call adds the class ``name`` to the report."""

    @functools.wraps(method)
    def noted(*args: Any, **keywords: Any) -> Any:
        report.left[name] = why
        return method(*args, **keywords)

    return noted


def main(words: list[str]) -> int | str | None:
    """Run the script or module that ``words`` names, with its arguments; return an exit status."""
    is_module = words[:1] == ["-m"]
    words = words[is_module:]
    if not words or words[0] in ("-h", "--help"):
        print(__doc__, USAGE, sep="\n")
        return 0 if words else 2
    if not is_module and not Path(words[0]).is_file():
        return f"SCRIPT must be a file, got {words[0]!r}, which does not exist.\n{USAGE}"
    sys.argv = words
    sys.path[0] = "" if is_module else str(Path(words[0]).resolve().parent)
    with accelerated() as report:
        try:
            if is_module:
                runpy.run_module(words[0], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(words[0], run_name="__main__")
        finally:
            print(report, file=sys.stderr)
    return 0


notebook = accelerated()


def load_ipython_extension(shell: Any) -> None:
    """Replace the class in a notebook: ``%load_ext swiftem.accel``."""
    notebook.__enter__()


def unload_ipython_extension(shell: Any) -> None:
    """Put scikit-learn's class back: ``%unload_ext swiftem.accel``."""
    notebook.__exit__()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
