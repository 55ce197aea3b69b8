"""What differs between kinds of covariance in compiled code: T(y), and the M-step.

The M-step goes from flat statistics to the coefficients of E-steps; formulas as in
:mod:`swiftem.mixture.covariance`. Matrices are factored in place by loops whose innermost runs along a row,
which compiles to vector instructions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.kernels.compile import helper
from swiftem.kernels.memory import matrix, piece, vector
from swiftem.kernels.softmax import copy, fill
from swiftem.mixture.covariance import DIAG, FULL, SPHERICAL, TIED, UNIT

__all__ = [
    "Hyper",
    "Scratch",
    "cholesky",
    "gram",
    "invert",
    "m_step",
    "make_scratch",
    "raise_powers",
]


ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
"""Twice what the reference allows, and in :func:`_scatter` more for each column that is eliminated, as
each of them rounds: so the reference never refuses what was accepted here."""


@helper
def raise_powers(kind: Any, samples: Any, first: Any, powers: Any) -> None:
    """Write entries of T(y), from ``first`` on, into ``powers`` (k, b)."""
    d, b = samples.shape
    i = j = 0
    if first > d and kind == FULL:
        while (i + 1) * (i + 2) // 2 <= first - d:
            i += 1
        j = first - d - i * (i + 1) // 2
    for place in range(len(powers)):
        entry, line = first + place, powers[place]
        if entry < d:
            copy(samples[entry], line)
        elif kind == SPHERICAL:
            fill(line, 0.0)
            for c in range(d):
                one = samples[c]
                for t in range(b):
                    line[t] += one[t] * one[t]
        else:
            if kind == DIAG:
                i = j = entry - d
            one, other = samples[i], samples[j]
            for t in range(b):
                line[t] = one[t] * other[t]
            j += 1
            if j > i:
                i, j = i + 1, 0


class Hyper(NamedTuple):
    """Inputs of an M-step in addition to statistics: the bound prior, and how weights are estimated.

    ``mean`` (d,), ``mean_precision``, ``degrees`` and ``scale`` (d, d), or its diagonal (1, d), as in
    :class:`swiftem.mixture.prior.BoundPrior`; ``known`` weights are (M,), or (0,) if they are
    unknown. If cells are missing, statistics of "diag" and "spherical" have masses: ``has_masses``.
    """

    mean: Any
    mean_precision: Any
    degrees: Any
    scale: Any
    reg_covar: Any
    epsilon: Any
    known: Any
    has_masses: Any


class Scratch(NamedTuple):
    """Buffers: ``means``, ``variances`` (M, d), ``matrices`` (M or 1, d, d), and one more, ``precision``."""

    means: Any
    matrices: Any
    precision: Any
    variances: Any


def make_scratch(kind: int, n_components: int, d: int) -> Scratch:
    """Return buffers for M-steps.

    >>> make_scratch(FULL, 3, 2).matrices.shape
    (3, 2, 2)
    """
    matrices = {FULL: n_components, TIED: 1}.get(kind, 0)
    width = d if matrices else 0
    return Scratch(
        np.empty((n_components, d)),
        np.empty((matrices, d, d)),
        np.empty((width, width)),
        np.empty((n_components, d)),
    )


@helper
def cholesky(a: Any, floor: Any) -> Any:
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
def invert(r: Any, inverse: Any) -> None:
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
def gram(lower: Any, precision: Any) -> None:
    """Write the upper triangle of lowerᵀ·lower into ``precision`` (d, d)."""
    fill(vector(precision), 0.0)
    for i in range(len(lower)):
        for a in range(i + 1):
            factor, line, row = lower[i, a], piece(precision, a, a, i + 1), piece(lower, i, a, i + 1)
            for c in range(len(line)):
                line[c] += factor * row[c]


@helper
def _scatter(kind: Any, m: Any, s1: Any, s3: Any, hyper: Any, scratch: Any) -> Any:
    """Write the covariance of component m, upper triangle, into its matrix, and factor it.

    For "tied", which has one covariance for all, it is that of component 0.
    """
    n_components, d = scratch.means.shape
    matrix, floor = scratch.matrices[m], scratch.variances[0]
    count = s1[m]
    if kind == TIED:
        count = 0.0
        for one in range(n_components):
            count += s1[one]
    products = s3[m * d * (d + 1) // 2 :]
    first, last = (m, m + 1) if kind == FULL else (0, n_components)
    kappa, inverse = hyper.mean_precision, 1.0 / (count + hyper.degrees)
    prior, weight, mean = (last - first) * kappa, s1[first] + kappa, scratch.means[first]
    k = 0
    for j in range(d):
        from_prior, from_mean = prior * hyper.mean[j], weight * mean[j]
        for i in range(j + 1):
            value = products[k] + hyper.scale[j, i] + from_prior * hyper.mean[i] - from_mean * mean[i]
            matrix[i, j] = value * inverse
            k += 1
    for one in range(first + 1, last):
        weight, mean = (s1[one] + kappa) * inverse, scratch.means[one]
        for i in range(d):
            factor, line, rest = weight * mean[i], piece(matrix, i, i, d), piece(scratch.means, one, i, d)
            for c in range(len(line)):
                line[c] -= factor * rest[c]
    for i in range(d):
        floor[i] = (1 + 4 * i) * ROUNDING * abs(products[i * (i + 1) // 2 + i]) * inverse
        matrix[i, i] += hyper.reg_covar
    return cholesky(matrix, floor)


@helper
def _variances(kind: Any, s1: Any, s3: Any, hyper: Any, scratch: Any) -> Any:
    """Write the variances of kinds without matrices; return whether all are positive."""
    n_components, d = scratch.means.shape
    if kind == UNIT:
        fill(vector(scratch.variances), 1.0)
        return True
    kappa = hyper.mean_precision
    for m in range(n_components):
        inverse = 1.0 / (s1[m] + hyper.degrees)
        total, raw = 0.0, 0.0
        for c in range(d):
            mean = scratch.means[m, c]
            value = hyper.scale[0, c] + kappa * hyper.mean[c] * hyper.mean[c] - (s1[m] + kappa) * mean * mean
            total += value
            if kind == DIAG:
                raw = s3[m * d + c]
                value = (value + raw) * inverse + hyper.reg_covar
                if not (value > ROUNDING * abs(raw) * inverse and value > 0.0 and value < math.inf):
                    return False
                scratch.variances[m, c] = value
        if kind == SPHERICAL:
            raw = s3[m]
            value = (total + raw) * inverse / d + hyper.reg_covar
            if not (value > ROUNDING * abs(raw) * inverse / d and value > 0.0 and value < math.inf):
                return False
            fill(scratch.variances[m], value)
    return True


@helper
def _of_observed(kind: Any, s: Any, hyper: Any, scratch: Any) -> Any:
    """Write means and variances from sums of observed cells; return whether they exist.

    ``s`` (q,) has r (M,), and r·(o·z, o·z², o) (M, 3, d), as in :mod:`swiftem.mixture.missing`.
    """
    n_components, d = scratch.means.shape
    kappa = hyper.mean_precision
    sums = matrix(s[n_components:], n_components, 3 * d)
    for m in range(n_components):
        if not s[m] + hyper.epsilon > 0.0:
            return False
        total = below = raw = 0.0
        for c in range(d):
            mass = sums[m, 2 * d + c]
            if not (mass + kappa > 0.0 and mass + hyper.degrees > 0.0):
                return False
            mean = (sums[m, c] + kappa * hyper.mean[c]) / (mass + kappa)
            scratch.means[m, c] = mean
            if kind == DIAG:
                total = below = raw = 0.0
            total += sums[m, d + c] - (mass + kappa) * mean * mean
            total += hyper.scale[0, c] + kappa * hyper.mean[c] * hyper.mean[c]
            below += mass + hyper.degrees
            raw += abs(sums[m, d + c])
            if kind == DIAG or c == d - 1:
                value = total / below + hyper.reg_covar
                if not (value > ROUNDING * raw / below and value > 0.0 and value < math.inf):
                    return False
                scratch.variances[m, c] = value
        if kind == SPHERICAL:
            fill(scratch.variances[m], scratch.variances[m, d - 1])
    return True


@helper
def _write_observed(scratch: Any, theta: Any) -> None:
    """Write the coefficients of o·z, o·z² and o, (3d, M), from means and variances."""
    n_components, d = scratch.means.shape
    for m in range(n_components):
        theta.constant[m] = theta.plain[m] = 0.0
        for c in range(d):
            precision, mean = 1.0 / scratch.variances[m, c], scratch.means[m, c]
            theta.phi[c, m] = precision * mean
            theta.phi[d + c, m] = -0.5 * precision
            own = math.log(scratch.variances[m, c]) + precision * mean * mean + math.log(2.0 * math.pi)
            theta.phi[2 * d + c, m] = -0.5 * own


@helper
def _write_matrix(kind: Any, m: Any, matrix: Any, scratch: Any, theta: Any) -> Any:
    """Write the coefficients from the factor of component m; return log|U|."""
    n_components, d = scratch.means.shape
    whiten, precision = theta.whiten[m], scratch.precision
    invert(matrix, whiten)
    gram(whiten, precision)
    if kind == FULL:
        k = d
        for i in range(d):
            for j in range(i):
                theta.phi[k, m] = -precision[j, i]
                k += 1
            theta.phi[k, m] = -0.5 * precision[i, i]
            k += 1
    log_det = 0.0
    for i in range(d):
        log_det += math.log(whiten[i, i])
    first, last = (m, m + 1) if kind == FULL else (0, n_components)
    for one in range(first, last):
        mean, linear = scratch.means[one], scratch.variances[0]
        square = 0.0
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
    return log_det


@helper
def _add_weights(s1: Any, hyper: Any, volume: Any, theta: Any) -> None:
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
def m_step(kind: Any, s: Any, hyper: Any, scratch: Any, theta: Any) -> Any:
    """Write θ̄(s), of flat statistics ``s`` (q,), into the arrays of ``theta``.

    ``theta`` is a :class:`swiftem.mixture.covariance.Coefficients`. Return False, and write nothing, if there
    is no M-step.
    """
    n_components, d = scratch.means.shape
    s1 = s[:n_components]
    if hyper.has_masses:
        if not _of_observed(kind, s, hyper, scratch):
            return False
        _write_observed(scratch, theta)
        _add_weights(s1, hyper, 0.0, theta)
        return True
    s2 = matrix(s[n_components:], n_components, d)
    s3 = s[n_components * (1 + d) :]
    kappa = hyper.mean_precision
    for m in range(n_components):
        if not (s1[m] + hyper.epsilon > 0.0 and s1[m] + kappa > 0.0 and s1[m] + hyper.degrees > 0.0):
            return False
        for c in range(d):
            scratch.means[m, c] = (s2[m, c] + kappa * hyper.mean[c]) / (s1[m] + kappa)
    for m in range(len(scratch.matrices)):
        if not _scatter(kind, m, s1, s3, hyper, scratch):
            return False
    if not len(scratch.matrices) and not _variances(kind, s1, s3, hyper, scratch):
        return False

    copy(vector(scratch.means), vector(theta.means))
    for m in range(len(scratch.matrices)):
        _write_matrix(kind, m, scratch.matrices[m], scratch, theta)
    if not len(scratch.matrices):
        for m in range(n_components):
            theta.plain[m] = theta.constant[m] = 0.0
            for c in range(d):
                precision, mean = 1.0 / scratch.variances[m, c], scratch.means[m, c]
                theta.scales[m, c] = math.sqrt(precision)
                theta.phi[c, m] = precision * mean
                if kind != UNIT:
                    theta.phi[d + c if kind == DIAG else d, m] = -0.5 * precision
                theta.plain[m] -= 0.5 * math.log(scratch.variances[m, c])
                theta.constant[m] -= 0.5 * precision * mean * mean
            theta.constant[m] += theta.plain[m]
    _add_weights(s1, hyper, 0.5 * d * math.log(2.0 * math.pi), theta)
    return True
