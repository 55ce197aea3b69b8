"""What experiments share: their result, Ctrl-C, and runs that are measured epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from swiftem._run import run
from swiftem.core.algorithm import Iterate, Result
from swiftem.core.draws import Seed
from swiftem.core.model import Model
from swiftem.core.types import Theta
from swiftem.methods import Method

Progress = Callable[[str, float], None]
"""Called as a job begins, with its name and the completed share of the experiment, from 0 to 1."""


def no_progress(doing: str, share: float) -> None:
    """Ignore the progress."""


def shares(costs: Sequence[float]) -> list[float]:
    """Return the share of the whole that is done as each of these jobs begins.

    >>> shares([1.0, 2.0, 1.0])
    [0.0, 0.25, 0.75]
    """
    return [sum(costs[:place]) / sum(costs) for place in range(len(costs))]


class Experiment(NamedTuple):
    """The raw numbers of one experiment.

    Attributes
    ----------
    name : str
        As on the command line, such as ``"gmm-precision"``.
    settings : dict of str to str
        The settings, in words, for the report.
    rows : tuple of NamedTuple
        One type of row per experiment: the lines of its CSV.
    interrupted : bool
        Whether Ctrl-C ended it early: ``rows`` then has the complete parts.

    Examples
    --------
    >>> from paper.experiments.gmm_precision import gmm_precision
    >>> experiment = gmm_precision(n=100, epochs=2, runs=1)
    >>> experiment.name, experiment.rows[0].method, experiment.rows[0].passes
    ('gmm-precision', 'em', 1.0)
    """

    name: str
    settings: dict[str, str]
    rows: tuple[Any, ...]
    interrupted: bool


def collect(name: str, settings: dict[str, str], parts: Iterable[Sequence[Any]]) -> Experiment:
    """Return the experiment with the rows of all parts; after Ctrl-C, of the complete ones."""
    rows: list[Any] = []
    try:
        for part in parts:
            rows += part
    except KeyboardInterrupt:
        return Experiment(name, settings, tuple(rows), interrupted=True)
    return Experiment(name, settings, tuple(rows), interrupted=False)


def complete(result: Result) -> Result:
    """Return the result of a run, or raise KeyboardInterrupt if Ctrl-C ended it early."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


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


def trace(
    model: Model,
    data: Any,
    method: Method,
    *,
    theta0: Theta,
    epochs: int,
    seed: Seed,
    measure: Callable[[Theta], float],
) -> list[Point]:
    """Run ``method`` and return the ``measure`` of θ before the first epoch and after each.

    Two iterations before it compile what is not compiled yet. Other arguments are as in :func:`swiftem.run`.
    Ctrl-C raises KeyboardInterrupt: an incomplete curve would
    be misleading in an average over runs.

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
    given: dict[str, Any] = {"theta0": theta0, "seed": seed}
    complete(run(model, data, method, n_iter=2, **given))
    points: list[Point] = []
    measuring, began = 0.0, perf_counter()

    def record(iterate: Iterate) -> None:
        nonlocal measuring
        now = perf_counter()
        value = measure(iterate.theta)
        points.append(Point(len(points), iterate.passes, now - began - measuring, value))
        measuring += perf_counter() - now

    every = method.epoch(data.n if hasattr(data, "n") else len(data))
    complete(run(model, data, method, n_iter=epochs * every, record_every=every, record=record, **given))
    return points
