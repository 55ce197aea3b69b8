"""Parameters and statistics of Gaussian mixtures whose covariances are estimated."""

from __future__ import annotations

from typing import NamedTuple

from swiftem._typing import Array

__all__ = ["GaussianStatistics", "GaussianTheta"]


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
