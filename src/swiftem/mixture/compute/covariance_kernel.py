"""What differs between kinds of covariance in compiled code: T(y), and the M-step.

The M-step goes from flat statistics to the coefficients of E-steps; formulas as in
:mod:`swiftem.mixture.covariance`. Matrices are factored in place by loops whose innermost runs along a row,
which compiles to vector instructions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from swiftem.core.types import Array
from swiftem.kernels.compile import helper, inlined
from swiftem.kernels.vector import piece, vector
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute.loops import copy, fill
from swiftem.mixture.covariance import DIAG, FULL, SPHERICAL, UNIT
from swiftem.mixture.prior import BoundPrior

if TYPE_CHECKING:
    from swiftem.mixture.gaussians import BoundGaussians

ROUNDING = 32.0 * float(np.finfo(np.float64).eps)
"""Twice what the reference allows, and in :func:`_scatter` more for each column that is eliminated, as
each of them rounds: so the reference never refuses what was accepted here."""


@helper
def raise_powers(code: int, samples: Array, first: int, powers: Array) -> None:
    """Write entries of T(y), from ``first`` on, into ``powers`` (k, b)."""
    d, b = samples.shape
    i = j = 0
    if first > d and code == FULL:
        while (i + 1) * (i + 2) // 2 <= first - d:
            i += 1
        j = first - d - i * (i + 1) // 2
    for place in range(len(powers)):
        entry, line = first + place, powers[place]
        if entry < d:
            copy(samples[entry], line)
        elif code == SPHERICAL:
            fill(line, 0.0)
            for c in range(d):
                one = samples[c]
                for t in range(b):
                    line[t] += one[t] * one[t]
        else:
            if code == DIAG:
                i = j = entry - d
            one, other = samples[i], samples[j]
            for t in range(b):
                line[t] = one[t] * other[t]
            j += 1
            if j > i:
                i, j = i + 1, 0


class Hyper(NamedTuple):
    """Inputs of an M-step in addition to statistics, and buffers.

    K, the number of covariance matrices, is M, or 1 if components share it, or 0 if there are none.

    Attributes
    ----------
    code : int
        Code of the kind of covariance.
    prior : BoundPrior
        The prior; its scale is (d, d), or a diagonal (1, d).
    reg_covar, epsilon : float
        Added to variances, and to the sums of responsibilities.
    known : ndarray, shape (M,), or (0,) if weights are unknown
        Known weights.
    has_masses : bool
        Whether cells are missing and the kind has no matrices: statistics then have masses.
    means, variances : ndarray, shape (M, d)
        Buffers.
    masses : ndarray, shape (d,)
        Sums of responsibilities for each column.
    matrices : ndarray, shape (K, d, d)
        Covariances, then their factors.
    precision : ndarray, shape (d, d)
        Inverse of a covariance.
    """

    code: int
    prior: BoundPrior
    reg_covar: float
    epsilon: float
    known: Array
    has_masses: bool
    means: Array
    variances: Array
    masses: Array
    matrices: Array
    precision: Array


def make_hyper(bound: BoundGaussians) -> Hyper:
    """Return what M-steps of a Gaussian mixture need."""
    kind, d, n_components = bound.kind, bound.d, bound.n_components
    matrices = (1 if kind.is_shared else n_components) if kind.has_matrices else 0
    return Hyper(
        kind.code,
        bound.prior._replace(scale=np.atleast_2d(bound.prior.scale)),
        float(bound.model.reg_covar),
        float(bound.epsilon),
        np.array(bound.model.known_weights or (), float),
        kind.has_masses,
        means=np.empty((n_components, d)),
        variances=np.empty((n_components, d)),
        masses=np.empty(d),
        matrices=np.empty((matrices, d, d)),
        precision=np.empty((d, d) if matrices else (0, 0)),
    )


@helper
def cholesky(a: Array, floor: Array) -> bool:
    """Replace the upper triangle of ``a`` (d, d) by R, RᵀR = a; False if a pivot is not above ``floor``."""
    d = len(a)
    for j in range(d):
        pivot = a[j, j]
        if not (pivot > floor[j] and pivot > 0.0 and pivot < math.inf):
            return False
        inverse = 1.0 / math.sqrt(pivot)
        for c in range(j, d):
            a[j, c] *= inverse
        for i in range(j + 1, d):
            factor, line, top = a[j, i], piece(a, i, i, d), piece(a, j, i, d)
            for c in range(len(line)):
                line[c] -= factor * top[c]
    return True


@helper
def invert(r: Array, inverse: Array) -> None:
    """Write the inverse of Rᵀ, lower triangular, into ``inverse`` (d, d); the rest is set to zero."""
    d = len(r)
    fill(vector(inverse), 0.0)
    for i in range(d):
        inverse[i, i] = 1.0
        for k in range(i):
            factor, line, other = r[k, i], piece(inverse, i, 0, k + 1), piece(inverse, k, 0, k + 1)
            for c in range(len(line)):
                line[c] -= factor * other[c]
        scale = 1.0 / r[i, i]
        for c in range(i + 1):
            inverse[i, c] *= scale


@helper
def gram(lower: Array, precision: Array) -> None:
    """Write the upper triangle of lowerᵀ·lower into ``precision`` (d, d)."""
    fill(vector(precision), 0.0)
    for i in range(len(lower)):
        for a in range(i + 1):
            factor, line, row = lower[i, a], piece(precision, a, a, i + 1), piece(lower, i, a, i + 1)
            for c in range(len(line)):
                line[c] += factor * row[c]


@helper
def _scatter(s1: Array, s3: Array, hyper: Hyper) -> bool:
    """Write the covariances, upper triangles, into their matrices, and factor them; False if that fails.

    All matrices in one call: arguments with many arrays take longer to pass than one of them to compute.
    """
    (n_components, d), prior, floor = hyper.means.shape, hyper.prior, hyper.variances[0]
    kappa = prior.mean_precision
    for m in range(len(hyper.matrices)):
        matrix, count = hyper.matrices[m], 0.0
        first, last = (m, m + 1) if hyper.code == FULL else (0, n_components)
        for one in range(first, last):
            count += s1[one]
        products, mean, inverse = (
            s3[m * d * (d + 1) // 2 :],
            hyper.means[first],
            1.0 / (count + prior.degrees),
        )
        prior_weight, k = (last - first) * kappa, 0
        for j in range(d):
            from_prior, from_mean = prior_weight * prior.mean[j], (s1[first] + kappa) * mean[j]
            for i in range(j + 1):
                value = products[k] + prior.scale[j, i] + from_prior * prior.mean[i] - from_mean * mean[i]
                matrix[i, j] = value * inverse
                k += 1
        for one in range(first + 1, last):
            weight, mean = (s1[one] + kappa) * inverse, hyper.means[one]
            for i in range(d):
                factor, line, rest = weight * mean[i], piece(matrix, i, i, d), piece(hyper.means, one, i, d)
                for c in range(len(line)):
                    line[c] -= factor * rest[c]
        for i in range(d):
            floor[i] = (1 + 4 * i) * ROUNDING * abs(products[i * (i + 1) // 2 + i]) * inverse
            matrix[i, i] += hyper.reg_covar
        if not cholesky(matrix, floor):
            return False
    return True


@helper
def _write_matrices(hyper: Hyper, theta: Coefficients) -> None:
    """Write the coefficients from the factors of the covariances."""
    (n_components, d), linear, precision = hyper.means.shape, hyper.variances[0], hyper.precision
    for m in range(len(hyper.matrices)):
        whiten, log_det = theta.whiten[m], 0.0
        invert(hyper.matrices[m], whiten)
        gram(whiten, precision)
        first, last = (m, m + 1) if hyper.code == FULL else (0, n_components)
        if hyper.code == FULL:
            k = d
            for i in range(d):
                for j in range(i):
                    theta.phi[k, m] = -precision[j, i]
                    k += 1
                theta.phi[k, m] = -0.5 * precision[i, i]
                k += 1
        for i in range(d):
            log_det += math.log(whiten[i, i])
        for one in range(first, last):
            mean, square = hyper.means[one], 0.0
            fill(linear, 0.0)
            for i in range(d):
                value, row = 0.0, piece(whiten, i, 0, i + 1)
                for j in range(len(row)):
                    value += row[j] * mean[j]
                square += value * value
                for j in range(len(row)):
                    linear[j] += value * row[j]  # Pμ = U (Uᵀμ)
            for i in range(d):
                theta.phi[i, one] = linear[i]
            theta.constant[one] = log_det - 0.5 * square
            theta.plain[one] = log_det


@inlined
def _means(m: int, s: Array, hyper: Hyper) -> bool:
    """Write the means of component m, and the masses of its cells.

    ``s`` (q,) has r (M,), then r·y (M, d) and squares, or with masses r·(o·z, o·z², o) (M, 3, d), as in
    :mod:`swiftem.mixture.covariance`. Return whether all masses are positive.
    """
    n_components, d = hyper.means.shape
    width = 3 * d if hyper.has_masses else d
    sums, kappa = s[n_components + m * width :], hyper.prior.mean_precision
    masses, means = hyper.masses, hyper.means[m]
    if hyper.has_masses:
        copy(sums[2 * d :], masses)
    else:
        fill(masses, s[m])
    lowest = math.inf
    for c in range(d):
        lowest = min(lowest, masses[c])
        means[c] = (sums[c] + kappa * hyper.prior.mean[c]) / (masses[c] + kappa)
    return lowest + kappa > 0.0 and lowest + hyper.prior.degrees > 0.0


@inlined
def _variances(m: int, squares: Array, hyper: Hyper) -> bool:
    """Write the variances of component m from the sums of squares of its cells; return whether they exist.

    ``squares`` has d entries, or one for all cells of "spherical" without masses.
    """
    prior, means, masses, variances = hyper.prior, hyper.means[m], hyper.masses, hyper.variances[m]
    kappa = prior.mean_precision
    for c in range(len(means)):
        from_prior = prior.scale[0, c] + kappa * prior.mean[c] * prior.mean[c]
        variances[c] = from_prior - (masses[c] + kappa) * means[c] * means[c]
    is_positive = True
    if hyper.code == DIAG:
        for c in range(len(means)):
            inverse = 1.0 / (masses[c] + hyper.prior.degrees)
            value = (variances[c] + squares[c]) * inverse + hyper.reg_covar
            is_positive &= value > ROUNDING * abs(squares[c]) * inverse and value > 0.0 and value < math.inf
            variances[c] = value
        return is_positive
    total = below = raw = 0.0
    for c in range(len(means)):
        total += variances[c]
        below += masses[c] + hyper.prior.degrees
    for c in range(len(squares)):
        raw += squares[c]
    value = (total + raw) * (1.0 / below) + hyper.reg_covar
    fill(variances, value)
    return value > ROUNDING * raw / below and value > 0.0 and value < math.inf


@inlined
def _write_diagonal(hyper: Hyper, theta: Coefficients) -> None:
    """Write the coefficients from means and variances; with masses, of o·z, o·z² and o, (3d, M)."""
    n_components, d = hyper.means.shape
    for m in range(n_components):
        log_det = square = log_variance = 0.0
        precision = 1.0
        for c in range(d):
            mean = hyper.means[m, c]
            if hyper.code == DIAG or (hyper.code == SPHERICAL and c == 0):
                precision, log_variance = 1.0 / hyper.variances[m, c], math.log(hyper.variances[m, c])
            theta.phi[c, m] = precision * mean
            if hyper.code != UNIT:
                place = d if hyper.code == SPHERICAL and not hyper.has_masses else d + c
                theta.phi[place, m] = -0.5 * precision
            if hyper.has_masses:
                own = log_variance + precision * mean * mean + math.log(2.0 * math.pi)
                theta.phi[2 * d + c, m] = -0.5 * own
            else:
                theta.scales[m, c] = math.sqrt(precision)
                log_det -= 0.5 * log_variance
                square += precision * mean * mean
        theta.plain[m], theta.constant[m] = log_det, log_det - 0.5 * square


@inlined
def _add_weights(s1: Array, hyper: Hyper, volume: float, theta: Coefficients) -> None:
    """Add log ω − ``volume`` to the constants."""
    total = 0.0
    for m in range(len(s1)):
        total += s1[m] + hyper.epsilon
    for m in range(len(s1)):
        weight = hyper.known[m] if len(hyper.known) else (s1[m] + hyper.epsilon) / total
        addend = (math.log(weight) if weight > 0.0 else -math.inf) - volume
        theta.plain[m] += addend
        theta.constant[m] += addend


@helper
def m_step(s: Array, hyper: Hyper, theta: Coefficients) -> bool:
    """Write θ̄(s), of flat statistics ``s`` (q,), into the arrays of ``theta``.

    Return False, and write nothing, if there is no M-step.
    """
    n_components, d = hyper.means.shape
    s1, has_matrices = s[:n_components], len(hyper.matrices) > 0
    squares, width = s[n_components * (1 + d) :], 1 if hyper.code == SPHERICAL else d
    for m in range(n_components):
        if not (s1[m] + hyper.epsilon > 0.0 and _means(m, s, hyper)):
            return False
        first = m * width
        if hyper.has_masses:
            squares, first, width = s[n_components:], 3 * m * d + d, d
        has_variances = not has_matrices and hyper.code != UNIT
        if has_variances and not _variances(m, squares[first : first + width], hyper):
            return False
    if not has_matrices:
        _write_diagonal(hyper, theta)
    elif _scatter(s1, squares, hyper):
        _write_matrices(hyper, theta)
    else:
        return False
    if not hyper.has_masses:
        copy(vector(hyper.means), vector(theta.means))
    _add_weights(s1, hyper, 0.0 if hyper.has_masses else 0.5 * d * math.log(2.0 * math.pi), theta)
    return True
