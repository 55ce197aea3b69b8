"""One run of one method, measured once per epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, NamedTuple

from paper.experiments.experiment import complete
from swiftem._run import run
from swiftem.core.draws import Seed
from swiftem.core.model import Model
from swiftem.core.result import Iterate
from swiftem.core.types import Theta
from swiftem.methods import Method

__all__ = ["Point", "Stopwatch", "trace", "warm_up"]


class Point(NamedTuple):
    """State of a run after an epoch: n iterations, one for ``"em"``.

    Attributes
    ----------
    epoch : int
        Epochs done.
    passes : float
        E-step evaluations divided by n, the first pass included.
    seconds : float
        Time of the run, without the measurements.
    value : float
        The measured value.
    """

    epoch: int
    passes: float
    seconds: float
    value: float


class Stopwatch:
    """Seconds since its creation, minus those in :meth:`pause`.

    >>> watch = Stopwatch()
    >>> stopped = watch.pause()
    >>> watch.go_on()
    >>> bool(watch.pause() >= stopped)
    True
    """

    def __init__(self) -> None:
        self._start = perf_counter()
        self._paused_at = 0.0

    def pause(self) -> float:
        """Stop, and return the seconds so far."""
        self._paused_at = perf_counter()
        return self._paused_at - self._start

    def go_on(self) -> None:
        """Resume."""
        self._start += perf_counter() - self._paused_at


def trace(
    model: Model,
    data: Any,
    method: Method,
    *,
    theta0: Theta,
    epochs: int,
    seed: Seed,
    measure: Callable[[Theta], float],
    at: Callable[[float], None] = lambda share: None,
) -> list[Point]:
    """Run ``method`` for ``epochs`` and measure θ after each, and before the first.

    Parameters
    ----------
    model, data, method, theta0, seed
        As in :func:`swiftem.run`; ``data`` as a source avoids reading it again.
    epochs : int
        Epochs, n iterations each; for ``"em"`` one iteration, which is a full pass.
    measure : callable
        Returns the value of a θ.
    at : callable, optional
        Called with the completed share.

    Returns
    -------
    list of Point
        epochs + 1 of them.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C: an incomplete curve would be misleading in an average over runs.

    Examples
    --------
    >>> from swiftem import methods, models
    >>> model = models.GaussianMixtureModel(n_components=1)
    >>> start = model.theta(means=[[0.0]])
    >>> points = trace(
    ...     model, [1.0, 2.0], methods.EM(), theta0=start, epochs=2, seed=0, measure=lambda t: t.means.item()
    ... )
    >>> [(point.epoch, point.passes, round(point.value, 2)) for point in points]
    [(0, 1.0, 0.0), (1, 2.0, 1.5), (2, 3.0, 1.5)]
    """
    epoch = 0
    watch = Stopwatch()

    def record(iterate: Iterate) -> Point:
        nonlocal epoch
        seconds = watch.pause()
        point = Point(epoch, iterate.passes, seconds, measure(iterate.theta))
        at(epoch / epochs)
        epoch += 1
        watch.go_on()
        return point

    every = method.epoch(data.n if hasattr(data, "n") else len(data))
    result = run(
        model,
        data,
        method,
        theta0=theta0,
        n_iter=epochs * every,
        seed=seed,
        record_every=every,
        record=record,
    )
    return complete(result).path


def warm_up(model: Model, data: Any, methods: Iterable[Method], theta0: Theta) -> float:
    """Compile or load all kernels of these methods, and return the seconds it took.

    >>> from swiftem import methods, models
    >>> model = models.GaussianMixtureModel(n_components=1)
    >>> warm_up(model, [1.0, 2.0], [methods.EM()], model.theta(means=[[0.0]])) >= 0
    True
    """
    start = perf_counter()
    for method in methods:
        complete(run(model, data, method, theta0=theta0, n_iter=2, seed=0))
    return perf_counter() - start
