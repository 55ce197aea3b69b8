"""E-steps at given parameters on any rows, without a fit."""

from __future__ import annotations

from typing import Any

from swiftem._typing import Theta
from swiftem.data.as_source import as_source
from swiftem.data.foreign import is_planned, kernels_of
from swiftem.data.source import Source
from swiftem.data.units.unit_source import UnitSource
from swiftem.engine.expectation import Evaluation
from swiftem.models.gaussian_theta import GaussianTheta
from swiftem.models.model import Model
from swiftem.models.rows import check_rows
from swiftem.problem import Problem, check_kernels

__all__ = ["posterior"]


def posterior(
    model: Model,
    data: Any,
    theta: Theta,
    *,
    responsibilities: bool = False,
    labels: bool = False,
    kernels: str = "auto",
    device: str = "auto",
) -> Evaluation:
    """Return the log-likelihood of each sample and, optionally, responsibilities or most likely components.

    Data are read in blocks, by all cores; only the returned arrays grow with n.

    Parameters
    ----------
    model : Model
        The model.
    data : array-like (n,) or (n, d), path, or Source
        Samples, not of Dask; a mixture with covariances accepts fewer samples than components, too.
    theta : NamedTuple
        Parameters, from ``model.theta`` or from a run.
    responsibilities, labels : bool
        Whether to return them.
    kernels, device : {"auto", "reference"} and {"auto", "cpu", "cuda"}
        As in :func:`swiftem.run`; the returned arrays are NumPy's.

    Examples
    --------
    >>> import swiftem
    >>> from swiftem import models
    >>> model = models.GaussianMixtureModel(2, covariance="spherical")
    >>> theta = model.theta(means=[[0.0], [4.0]], covariances=[1.0, 1.0])
    >>> found = swiftem.posterior(model, [[0.0], [2.0]], theta, responsibilities=True, labels=True)
    >>> found.log_likelihood.round(3), found.labels
    (array([-1.612, -2.919]), array([0, 0]))
    >>> found.responsibilities[1]
    array([0.5, 0.5])
    """
    check_kernels(kernels)
    if is_planned(data) or isinstance(data, UnitSource):
        kind = "units" if isinstance(data, UnitSource) else "a Dask collection"
        raise TypeError(
            f"data must be an array or a file for posterior, got {kind}: call it for each chunk, or use "
            "predict_proba of a mixture."
        )
    if isinstance(data, Problem):
        problem = Problem.read(model, data)
    else:
        allow_missing = getattr(model, "missing", "error") == "ignore"
        on_device = kernels_of(device, data)
        source = as_source(data, on_device=on_device is not None, allow_missing=allow_missing)
        problem = _bind(model, source, theta, on_device or kernels)
    return problem.e_step.evaluate(
        problem.bound.check_theta(theta, "theta"), responsibilities=responsibilities, labels=labels
    )


def _bind(model: Model, source: Source, theta: Theta, kernels: str) -> Problem:
    if not isinstance(theta, GaussianTheta):
        return Problem(model, source, kernels=kernels)
    # The middle of the components is good enough as a centre, and saves the pass for the data's mean.
    columns, d = theta.means.shape[1], check_rows(source, 1)
    if columns != d:
        raise ValueError(f"theta.means must have as many columns as data, {d}, got {columns}.")
    bound = model.bind(source, theta.weights @ theta.means)  # type: ignore[call-arg]
    return Problem(model, source, bound=bound, kernels=kernels)
