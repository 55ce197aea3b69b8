"""The M-step of Gaussian mixtures on a device, in float64: the formulas of :mod:`swiftem.mixture.covariance`.

Nothing is copied to the CPU, so that a CUDA graph can contain it: whether statistics are in the domain is a
tensor, too.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from swiftem.mixture.compute.numpy import lower_triangle
from swiftem.mixture.compute.torch_rows import DeviceTheta
from swiftem.mixture.covariance import DIAG, FULL, SPHERICAL, TIED
from swiftem.mixture.covariance import ROUNDING as REFERENCE_ROUNDING
from swiftem.mixture.gaussians import BoundGaussians

__all__ = ["DeviceMStep"]

ROUNDING = 2.0 * REFERENCE_ROUNDING
"""Twice what the reference allows, which then never refuses what was accepted here."""


class DeviceMStep:
    """θ̄(s), from flat statistics on a device to the coefficients of E-steps there.

    Parameters
    ----------
    bound : BoundGaussians
        The model.
    device : device
        Where statistics are.
    """

    def __init__(self, bound: BoundGaussians, device: torch.device) -> None:
        def there(values: ArrayLike) -> Tensor:
            return torch.from_numpy(np.array(values)).to(device)

        self.code, self._count, self._d = bound.code, bound.n_components, bound.d
        prior, known = bound.prior, bound.model.known_weights
        self._kappa, self._degrees = float(prior.mean_precision), float(prior.degrees)
        self._mean, self._scale = there(prior.mean), there(prior.scale)
        has_matrices = self.code in (FULL, TIED)
        square = torch.outer(self._mean, self._mean) if has_matrices else self._mean.square()
        self._outer = square * self._kappa
        self._reg, self._epsilon = float(bound.model.reg_covar), float(bound.epsilon)
        self._known = None if known is None else there(known)
        if not has_matrices:
            return
        d, (row, column) = self._d, lower_triangle(self._d)
        places = np.empty((d, d), dtype=np.intp)
        places[row, column] = places[column, row] = np.arange(len(row))
        self._places, self._row, self._column = there(places), there(row), there(column)
        self._signs = there(np.where(row == column, -0.5, -1.0))
        self._eye = torch.eye(d, dtype=torch.float64, device=device)
        self._ranks = there(1.0 + 4.0 * np.arange(d))  # each column that is eliminated rounds

    def __call__(self, s: Tensor) -> tuple[Tensor, DeviceTheta]:
        """Return whether ``s`` (q,) is in the domain, a tensor, and φ(θ̄(s)), of any values if it is not."""
        count, d = self._count, self._d
        end = count * (1 + d)
        counts, sums, squares = s[:count], s[count:end].view(count, d), s[end:]
        least, kappa = counts.min(), self._kappa
        is_in = (least + self._epsilon > 0.0) & (least + kappa > 0.0) & (least + self._degrees > 0.0)
        means = (sums + kappa * self._mean) / (counts + kappa)[:, None]
        weights = counts + self._epsilon
        log_weights = torch.log(self._known if self._known is not None else weights / weights.sum())
        log_weights = log_weights - 0.5 * d * float(np.log(2.0 * np.pi))
        if self.code in (FULL, TIED):
            covariances, floor = self._matrices(counts, means, squares)
            lower, info = torch.linalg.cholesky_ex(covariances)
            pivots = torch.diagonal(lower, dim1=-2, dim2=-1).square()
            is_in = is_in & (info == 0).all() & _is_positive(pivots, floor)
            whiten = torch.linalg.solve_triangular(lower, self._eye.expand_as(lower), upper=False)
            return is_in, self._of_matrices(means, whiten, log_weights)
        variances, floor = self._variances(counts, means, squares)
        is_in = is_in & _is_positive(variances, floor)
        precision = 1.0 / variances
        plain = log_weights + 0.5 * torch.log(precision).sum(dim=1)
        constant = plain - 0.5 * (precision * means * means).sum(dim=1)
        squared = -0.5 * (precision if self.code == DIAG else precision[:, :1])
        phi = torch.cat([precision * means, squared], dim=1).T
        none = means.new_empty((0, d, d))
        return is_in, DeviceTheta(phi, constant, means, plain, none, precision.sqrt())

    def _matrices(self, counts: Tensor, means: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
        """Return covariances (M or 1, d, d), and the rounding errors of their diagonals."""
        kappa = self._kappa
        if self.code == FULL:
            inverse = (1.0 / (counts + self._degrees))[:, None, None]
            moments = squares.view(self._count, -1)[:, self._places]
            between = (counts + kappa)[:, None, None] * (means[:, :, None] * means[:, None, :])
            scatter = moments - between + (self._scale + self._outer)
        else:
            inverse = (1.0 / (counts.sum() + self._degrees)).view(1, 1, 1)
            moments = squares[self._places][None]
            between = (((counts + kappa)[:, None] * means).T @ means)[None]
            between = 0.5 * (between + between.transpose(1, 2))
            scatter = moments - between + (self._scale + self._count * self._outer)
        diagonal = diagonals(moments).abs()
        floor = ROUNDING * self._ranks * diagonal * inverse[:, 0]
        return scatter * inverse + self._reg * self._eye, floor

    def _of_matrices(self, means: Tensor, whiten: Tensor, log_weights: Tensor) -> DeviceTheta:
        whitened = (whiten @ means[:, :, None])[:, :, 0]
        plain = log_weights + torch.log(diagonals(whiten)).sum(dim=1)
        constant = plain - 0.5 * whitened.square().sum(dim=1)
        transposed = whiten.transpose(1, 2)
        linear = (transposed @ whitened[:, :, None])[:, :, 0]
        if self.code == FULL:
            precision = transposed @ whiten
            linear = torch.cat([linear, precision[:, self._row, self._column] * self._signs], dim=1)
        return DeviceTheta(linear.T, constant, means, plain, whiten, means.new_empty((0, self._d)))

    def _variances(self, counts: Tensor, means: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
        """Return variances (M, d), for "spherical" all of a row equal, and their rounding errors."""
        kappa, inverse = self._kappa, (1.0 / (counts + self._degrees))[:, None]
        scatter = self._scale + self._outer - (counts + kappa)[:, None] * means.square()
        raw = squares.view(self._count, -1)
        if self.code == SPHERICAL:
            scatter, inverse = scatter.sum(dim=1, keepdim=True), inverse / self._d
        variances = (scatter + raw) * inverse + self._reg
        return variances.expand(-1, self._d), ROUNDING * raw.abs() * inverse


def diagonals(matrices: Tensor) -> Tensor:
    """Return the diagonals (..., d) of matrices (..., d, d)."""
    return matrices.diagonal(dim1=-2, dim2=-1)


def _is_positive(variances: Tensor, floor: Tensor) -> Tensor:
    """Return whether all are finite and above ``floor`` and zero; false for NaN."""
    return ((variances > floor) & (variances > 0.0) & torch.isfinite(variances)).all()
