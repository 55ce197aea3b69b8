"""Gaussian mixtures with covariances, bound to complete rows or to rows with missing cells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from swiftem._checks import as_floats
from swiftem.data.source import Source
from swiftem.models.completed_gaussians import CompletedGaussians
from swiftem.models.covariance import COVARIANCES
from swiftem.models.gaussian_components import BoundGaussians
from swiftem.models.moments import columns_of
from swiftem.models.normal_inverse_wishart import BoundPrior
from swiftem.models.observed_gaussians import ObservedGaussians
from swiftem.models.rows import check_rows, has_missing, may_have_missing, mean_row

if TYPE_CHECKING:
    from swiftem.models.gaussian_mixture import GaussianMixtureModel

__all__ = ["bind_gaussians"]


def bind_gaussians(
    model: GaussianMixtureModel, source: Source, centre: ArrayLike | None = None
) -> BoundGaussians:
    """Return the model for these data; without a ``centre`` (d,) a pass computes the mean of the data."""
    d = check_rows(source, model.n_components if centre is None else 1)
    if model.missing == "ignore" and not model.has_holes:
        holes = has_missing(source) if centre is None else may_have_missing(source)
        model = replace(model, has_holes=holes)
    if centre is not None:
        middle = as_floats("centre", centre, shape=(d,)).copy()
    else:
        middle = columns_of(source).mean if model.has_holes else mean_row(source)
    kind, total = COVARIANCES[model.covariance], source.total_weight
    prior = BoundPrior(np.zeros(d), 0.0, 0.0, np.zeros((d, d)))
    if model.prior is not None:
        counts = model.prior.bind(middle)
        on_means = int(counts.mean_precision > 0.0)
        degrees = kind.degrees(counts.degrees, d, model.n_components, on_means)
        prior = BoundPrior(counts.mean, counts.mean_precision / total, degrees / total, counts.scale / total)
    epsilon = model.epsilon if model.concentration is None else (model.concentration - 1.0) / total
    bound = BoundGaussians
    if model.has_holes:
        bound = CompletedGaussians if model.covariance in ("full", "tied") else ObservedGaussians
    return bound(model, source, kind, middle, prior, epsilon)
