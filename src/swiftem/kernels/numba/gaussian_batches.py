"""Gaussian mixtures with covariances: whole stretches of iterations on batches.

``y`` (n, d), ``sample_weight`` (n,) or (0,), ``weight_scale`` n / W, ``share`` 1 / W; where data are on disk,
``y``, weights and memory are of the samples of the stretch alone. ``index`` (iterations, b); ``s`` and
``centre`` (q,) flat statistics, changed in place, as is ``memory`` (n, M). ``tools`` is a :class:`Tools`.
Every loop returns the number of rejected steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem.kernels.numba.compile import helper, kernel
from swiftem.kernels.numba.gaussian_blocks import TIED, add_statistics, add_up, e_step, is_near, spread
from swiftem.kernels.numba.gaussian_m_step import m_step

__all__ = ["Tools", "fast_incremental_em", "incremental_em", "online_em", "variance_reduced_em"]


class Tools(NamedTuple):
    """What all loops need.

    Attributes
    ----------
    kind : int
        Code of the kind of covariance.
    offset, reach : ndarray, shape (d,)
        The centre of the data, and how far samples are from it (infinite where unknown).
    hyper, scratch, work
        Of M-steps and E-steps.
    spare : ndarray, size b·M of a block
        Responsibilities at an anchor.
    change, candidate : ndarray, shape (q,)
        Statistics of a batch, and where a step would lead.
    """

    kind: Any
    offset: Any
    reach: Any
    hyper: Any
    scratch: Any
    work: Any
    spare: Any
    change: Any
    candidate: Any


@helper
def _take(y: Any, index: Any, offset: Any, samples: Any) -> None:
    """Write samples ``index`` (b,) of ``y`` (n, d), minus the offset, as columns into ``samples`` (d, b)."""
    for t in range(len(index)):
        i = np.uintp(index[t])
        for c in range(y.shape[1]):
            samples[c, t] = y[i, c] - offset[c]


@helper
def _is_known_near(theta: Any, tools: Any) -> Any:
    """Tell whether expanded squares keep enough digits for all samples there are."""
    tools.work.extent[:] = tools.reach
    return is_near(theta, tools.work.extent)


@helper
def _responsibilities(samples: Any, theta: Any, is_known: Any, tools: Any, rows: Any) -> Any:
    """Write the responsibilities of ``samples`` (d, b) into ``rows`` (b, M); return whether they are near."""
    near = is_known
    if not is_known:
        spread(samples, tools.work.extent)
        near = is_near(theta, tools.work.extent)
    e_step(tools.kind, samples, theta, near, tools.work, rows)
    return near


@helper
def _weigh(rows: Any, sample_weight: Any, index: Any, factor: Any) -> None:
    """Multiply row t by factor times the weight of sample ``index[t]``; ``sample_weight`` (0,): ones."""
    for t in range(len(rows)):
        scale = factor * sample_weight[index[t]] if len(sample_weight) else factor
        for m in range(rows.shape[1]):
            rows[t, m] *= scale


@helper
def _swap(rows: Any, index: Any, memory: Any) -> None:
    """Write ``rows`` (b, M) into the memory (n, M) and replace them by the change of what is stored."""
    for t in range(len(rows)):
        i = np.uintp(index[t])
        for m in range(rows.shape[1]):
            old = np.float64(memory[i, m])
            memory[i, m] = rows[t, m]
            rows[t, m] = np.float64(memory[i, m]) - old


@helper
def _take_off(rows: Any, index: Any, memory: Any) -> None:
    """Subtract rows ``index`` (b,) of the memory (n, M) from ``rows`` (b, M)."""
    for t in range(len(rows)):
        i = np.uintp(index[t])
        for m in range(rows.shape[1]):
            rows[t, m] -= memory[i, m]


@helper
def _add_flat(kind: Any, work: Any, change: Any) -> None:
    """Add the sums of a block to flat statistics."""
    (p, n_components), d = work.sums2.shape, len(work.sums3)
    end = n_components * (1 + d)
    per_component = p - d
    for m in range(n_components):
        change[m] += work.sums1[m]
        for c in range(d):
            change[n_components + m * d + c] += work.sums2[c, m]
        for c in range(per_component):
            change[end + m * per_component + c] += work.sums2[d + c, m]
    if kind == TIED:
        for i in range(d):
            for j in range(i + 1):
                change[end] += work.sums3[i, j]
                end += 1


@helper
def _statistics(
    y: Any, sample_weight: Any, factor: Any, index: Any, theta: Any, has_anchor: Any, anchor: Any,
    memory: Any, renew: Any, tools: Any,
) -> None:  # fmt: skip
    """Write the statistics of samples ``index`` (b,), times ``factor``, into ``tools.change``.

    They are those at ``theta``, minus those at the ``anchor`` where there is one, minus those of the memory
    unless it is (0, M); where ``renew``, that is then written to.
    """
    d, n_components = y.shape[1], theta.phi.shape[1]
    parts = -(-len(index) // len(tools.work.largest))
    block = -(-len(index) // parts)  # blocks of equal size: a small one at the end would be dear
    is_known = _is_known_near(theta, tools)
    is_known_there = has_anchor and _is_known_near(anchor, tools)
    tools.change[:] = 0.0
    for first in range(0, len(index), block):
        here = index[first : first + block]
        b = len(here)
        samples = tools.work.samples[: d * b].reshape(d, b)
        rows = tools.work.rows[: b * n_components].reshape(b, n_components)
        _take(y, here, tools.offset, samples)
        spare = tools.spare[: b * n_components].reshape(b, n_components)
        if has_anchor:
            _responsibilities(samples, anchor, is_known_there, tools, spare)
        near = _responsibilities(samples, theta, is_known, tools, rows)
        if has_anchor:
            rows -= spare
        if len(memory):
            if renew:
                _swap(rows, here, memory)
            else:
                _take_off(rows, here, memory)
        _weigh(rows, sample_weight, here, factor)
        if tools.kind == TIED:
            add_up(rows, tools.work.totals)
        add_statistics(tools.kind, samples, rows, near, True, tools.work)
        _add_flat(tools.kind, tools.work, tools.change)


@helper
def _advance(s: Any, gamma: Any, theta: Any, tools: Any) -> Any:
    """sE-step and M-step, where ``tools.candidate`` is S; return 1 where rejected, else 0."""
    candidate = tools.candidate
    if gamma < 1.0:
        for q in range(len(s)):
            candidate[q] = s[q] + gamma * (candidate[q] - s[q])  # (sestep)
    if not m_step(tools.kind, candidate, tools.hyper, tools.scratch, theta):  # (mstep)
        return 1
    s[:] = candidate
    return 0


@kernel
def online_em(
    y: Any, sample_weight: Any, weight_scale: Any, steps: Any, index: Any, s: Any, theta: Any, tools: Any
) -> Any:
    """sem, equation (oem)."""
    rejected, nothing = 0, np.empty((0, len(theta.constant)))
    for k in range(len(steps)):
        i = index[k]
        _statistics(
            y, sample_weight, weight_scale / len(i), i, theta, False, theta, nothing, False, tools
        )  # fmt: skip
        tools.candidate[:] = tools.change
        rejected += _advance(s, steps[k], theta, tools)
    return rejected


@kernel
def incremental_em(
    y: Any, sample_weight: Any, share: Any, index: Any, memory: Any, centre: Any, s: Any, theta: Any,
    tools: Any,
) -> Any:  # fmt: skip
    """iem, equation (iem)."""
    rejected = 0
    for k in range(len(index)):
        _statistics(y, sample_weight, share, index[k], theta, False, theta, memory, True, tools)
        centre += tools.change
        tools.candidate[:] = centre
        rejected += _advance(s, 1.0, theta, tools)
    return rejected


@kernel
def variance_reduced_em(
    y: Any, sample_weight: Any, weight_scale: Any, steps: Any, index: Any, anchor: Any, centre: Any, s: Any,
    theta: Any, tools: Any,
) -> Any:  # fmt: skip
    """sem-vr, equation (svrgem); ``centre`` holds the statistics at the anchor."""
    rejected, nothing = 0, np.empty((0, len(theta.constant)))
    for k in range(len(steps)):
        i = index[k]
        _statistics(
            y, sample_weight, weight_scale / len(i), i, theta, True, anchor, nothing, False, tools
        )  # fmt: skip
        tools.candidate[:] = centre
        tools.candidate[:] += tools.change
        rejected += _advance(s, steps[k], theta, tools)
    return rejected


@kernel
def fast_incremental_em(
    y: Any, sample_weight: Any, weight_scale: Any, share: Any, steps: Any, index_i: Any, index_j: Any,
    memory: Any,
    centre: Any, s: Any, theta: Any, tools: Any,
) -> Any:  # fmt: skip
    """fiem, equation (sagaem): i reads the memory and the centre before j renews them."""
    rejected = 0
    for k in range(len(steps)):
        i, j = index_i[k], index_j[k]
        _statistics(
            y, sample_weight, weight_scale / len(i), i, theta, False, theta, memory, False, tools
        )  # fmt: skip
        tools.candidate[:] = centre
        tools.candidate[:] += tools.change
        _statistics(y, sample_weight, share, j, theta, False, theta, memory, True, tools)
        centre += tools.change
        rejected += _advance(s, steps[k], theta, tools)
    return rejected
