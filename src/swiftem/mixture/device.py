"""What a mixture does on a GPU outside the engine: the loop of em, and random rows."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from swiftem.core.checks import torch_of
from swiftem.core.loop import DeferredInterrupt
from swiftem.data.as_source import DEVICE_KERNELS
from swiftem.fit.stopping import Remaining
from swiftem.mixture.rows import rows_of
from swiftem.mixture.starts.family_starts import DEAD, starts_of

__all__ = ["em_on_device", "sample_on_device"]


def em_on_device(one: Any, there: Any, passes: int, remaining: Remaining) -> None:
    """Do passes of em whose statistics and θ stay on a device: only the stopping rule is here.

    Parameters
    ----------
    one : _OneFit
        The fit, of :mod:`swiftem.mixture.fit`.
    there : DeviceEM
        Its iterations on the device.
    passes : int
        Maximum number of passes.
    remaining : Remaining
        The stopping rule.
    """
    fit, bound, e_step = one.fit, one.problem.bound, one.problem.compute
    n, is_ahead, is_held = rows_of(one.problem.source), False, starts_of(bound).is_held
    with DeferredInterrupt() as interrupt:

        def check() -> None:
            interrupt.check()
            one.watch.check()

        there.load(fit.theta)
        try:
            for left in range(passes - 1, -1, -1):
                check()
                with e_step.checked_by(check):
                    objective, is_in, least = there.advance()
                fit.passes += 1.0
                value = -objective
                if is_in and (is_held or least * n >= DEAD):
                    is_ahead = True
                else:
                    if is_ahead:
                        fit.theta = bound.m_step(there.before)
                    s, is_ahead = there.s, False
                    if one._mend(s, is_last=not left):
                        value = -inf
                    else:
                        fit.s, fit.theta = s, bound.m_step(s)
                    there.load(fit.theta)
                one._note(fit.passes, objective, 1.0, "em", fit.theta)
                fit.converged = remaining.is_small(value)
                fit.last = remaining.state
                if fit.converged:
                    break
        finally:
            if is_ahead:
                fit.s = there.s
                fit.theta = bound.m_step(fit.s)
        interrupt.check()


def sample_on_device(theta: Any, kind: str, count: int, kernels: str, seed: int, dtype: Any) -> Any:
    """Return random rows (count, d) of a Gaussian mixture and their components (count,), tensors.

    Parameters
    ----------
    theta : GaussianTheta
        The parameters.
    kind : str
        The kind of covariance.
    count : int
        Number of rows.
    kernels : str
        The device, as given by :func:`swiftem.data.as_source.kernels_of`.
    seed : int
        Of the draws, which are other ones than those of the CPU.
    dtype : dtype
        Precision of the rows.
    """
    torch, device = torch_of("a sample"), kernels.removeprefix(DEVICE_KERNELS)
    rng = torch.Generator(device=device).manual_seed(seed)
    weights, means, factors = (
        torch.from_numpy(np.array(part, dtype=np.float64, order="C")).to(device)  # factors may be flipped
        for part in (theta.weights, theta.means, theta.precisions_cholesky)
    )
    labels = torch.multinomial(weights, count, replacement=True, generator=rng).sort().values
    rows = torch.randn((count, means.shape[1]), dtype=torch.float64, device=device, generator=rng)
    if kind == "full":  # U z = x
        for m in range(len(means)):
            here = labels == m
            rows[here] = torch.linalg.solve_triangular(factors[m], rows[here], upper=True, left=False)
    elif kind == "tied":
        rows = torch.linalg.solve_triangular(factors, rows, upper=True, left=False)
    else:
        rows = rows / factors[labels].reshape(count, -1)
    return (rows + means[labels]).to(getattr(torch, np.dtype(dtype).name)), labels
