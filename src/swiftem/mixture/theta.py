"""Parameters and statistics of Gaussian mixtures."""

from __future__ import annotations

from typing import NamedTuple

from swiftem.core.types import Array

__all__ = [
    "GaussianMixtureTheta",
    "GaussianStatistics",
    "GaussianTheta",
    "MixtureStatistics",
    "ObservedStatistics",
]


class GaussianMixtureTheta(NamedTuple):
    """Parameters with unit variances: ``weights`` (M,) and ``means`` (M, d)."""

    weights: Array
    means: Array


class MixtureStatistics(NamedTuple):
    """Statistics, means over samples: ``weights`` (M,) of r_m, and ``sums`` of r_m·T(y).

    Their shape is (M, p) for a family of p features, and (M, d) for Gaussians with unit variances.
    """

    weights: Array
    sums: Array


class GaussianTheta(NamedTuple):
    """Parameters, in the coordinates of the data; shapes are scikit-learn's.

    Attributes
    ----------
    weights : ndarray, shape (M,)
        Mixing weights.
    means : ndarray, shape (M, d)
        Means.
    covariances : ndarray
        (M, d, d) for "full", (d, d) for "tied", (M, d) for "diag", (M,) for "spherical".
    precisions_cholesky : ndarray
        Derived from the covariances, with the same shape: U, upper triangular, with U·Uᵀ the inverse of the
        covariance; for "diag" and "spherical" one over the standard deviations.
    """

    weights: Array
    means: Array
    covariances: Array
    precisions_cholesky: Array


class GaussianStatistics(NamedTuple):
    """Statistics, means over samples, of centred data: y means y minus ``bound.centre``.

    Attributes
    ----------
    weights : ndarray, shape (M,)
        Means of r_m.
    sums : ndarray, shape (M, d)
        Means of r_m·y.
    squares : ndarray
        "full": (M, d(d+1)/2), of r_m·vech(yyᵀ), lower triangle row by row; "tied": (d(d+1)/2,), the same
        summed over m; "diag": (M, d), of r_m·y²; "spherical": (M,), of r_m·‖y‖².
    """

    weights: Array
    sums: Array
    squares: Array


class ObservedStatistics(NamedTuple):
    """Statistics of rows with missing cells, means over samples; o is 1 for an observed cell, else 0.

    Attributes
    ----------
    weights : ndarray, shape (M,)
        Means of r_m.
    sums, squares, masses : ndarray, shape (M, d)
        Means of r_m·o·y, r_m·o·y² and r_m·o.
    """

    weights: Array
    sums: Array
    squares: Array
    masses: Array
