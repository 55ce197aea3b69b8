"""E-steps of mixtures in PyTorch, in float64: the definition of correct on a device, and its fallback.

Logits are T(y)·φ + c, statistics r ⊗ T(y), as in :class:`swiftem.models.components.BoundComponents`. Rows may
be float32; everything that is computed is float64. If expanded squares would lose digits, logits come from
whitened differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.engine.small_expectation import DIAG, FARTHEST, FULL, SPHERICAL, TIED
from swiftem.models.components import Coefficients

__all__ = ["Extents", "Given", "Rows", "Sums", "e_steps", "extents", "features", "sums", "there"]

NUMBERS = 3 << 21
"""Numbers computed at a time: features and logits of a block of rows."""


@dataclass(frozen=True)
class Rows:
    """Rows on a device.

    Attributes
    ----------
    y : tensor, shape (n, d)
        Features, float32 or float64. For Gaussians these are the samples.
    centre : tensor, shape (d,)
        Subtracted from the features, float64.
    weight : tensor, shape (n,), or None
        Weights, float64; None if all are one.
    reach : ndarray, shape (d,)
        Largest absolute differences from the centre.
    norm : float
        Largest Euclidean norm of a row minus the centre.
    """

    y: Any
    centre: Any
    weight: Any
    reach: Array
    norm: float

    def __len__(self) -> int:
        return len(self.y)

    def centred(self, here: slice) -> Any:
        """Return features minus the centre (b, d), float64."""
        return self.y[here].double() - self.centre


class Sums(NamedTuple):
    """Sums over rows: ``sums`` (M, 1 + p) of w·r ⊗ [1, T(y)], and Σ w log g without log h(y); float64."""

    sums: Any
    log_likelihood: Any


class Extents(NamedTuple):
    """How far rows are at some θ, which decides how a pass is computed.

    Attributes
    ----------
    squared_reach : float
        The largest squared distance of rows and means from the centre, in standard deviations; 0 if only φ
        is used.
    logit : float
        A bound on the largest term of expanded squares.
    """

    squared_reach: float
    logit: float

    @property
    def is_near(self) -> bool:
        """Whether expanded squares keep enough digits in float64."""
        return self.squared_reach <= FARTHEST


def there(theta: Coefficients, device: Any) -> Coefficients:
    """Return coefficients as tensors on a device."""
    import torch

    return Coefficients(*(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in theta))


def extents(theta: Any, code: int, reach: Any, norm: float) -> Any:
    """Return :class:`Extents` at θ as a tensor (2,): nothing is copied to the CPU.

    ``theta`` has tensors, and ``reach`` is one; they and ``norm`` are those of :class:`Rows`.
    """
    import torch

    d, phi = len(reach), theta.phi
    squared = torch.zeros((), dtype=torch.float64, device=reach.device)
    if len(theta.whiten) or len(theta.scales):
        extent = torch.maximum(reach, theta.means.abs().amax(dim=0))
        far = theta.whiten.abs() @ extent if len(theta.whiten) else theta.scales * extent
        squared = far.square().sum(dim=1).max()
    logit = norm * torch.linalg.vector_norm(phi[:d], dim=0)
    if code == DIAG:
        logit = logit + norm**2 * phi[d:].abs().amax(dim=0)
    elif code == SPHERICAL:
        logit = logit + norm**2 * (phi[d] - phi[d].mean()).abs()
    return torch.stack([squared, logit.max()])


class Given(NamedTuple):
    """θ on a device, float64, and the kind of features.

    Attributes
    ----------
    code : int
        The features, see :mod:`swiftem.engine.small_expectation`.
    theta : Coefficients
        θ, as tensors.
    near : bool
        Whether expanded squares keep enough digits.
    """

    code: int
    theta: Coefficients
    near: bool


def features(x: Any, code: int) -> Any:
    """Return T(y) (b, p) of centred samples (b, d), without its first entry, 1."""
    import torch

    if code == FULL:
        row, column = torch.tril_indices(x.shape[1], x.shape[1], device=x.device)
        return torch.cat([x, x[:, row] * x[:, column]], dim=1)
    if code == DIAG:
        return torch.cat([x, x * x], dim=1)
    if code == SPHERICAL:
        return torch.cat([x, (x * x).sum(dim=1, keepdim=True)], dim=1)
    return x


def e_steps(rows: Rows, given: Given) -> Iterator[tuple[slice, Any, Any, Any]]:
    """Yield slice, T(y) (b, p), responsibilities (b, M) and log g without log h(y) (b,) of each block."""
    import torch

    d, n_components = rows.y.shape[1], len(given.theta.constant)
    p = {FULL: d + d * (d + 1) // 2, DIAG: 2 * d, SPHERICAL: d + 1}.get(given.code, d)
    size = max(1, NUMBERS // (n_components + p))
    for first in range(0, len(rows), size):
        here = slice(first, min(first + size, len(rows)))
        x = rows.centred(here)
        powers = features(x, given.code)
        if given.near:
            logits = torch.addmm(given.theta.constant, powers, given.theta.phi)
        else:
            logits = _differences(x, given.theta)
        log_likelihood = torch.logsumexp(logits, dim=1)
        responsibilities = logits.sub_(log_likelihood[:, None]).exp_()
        if given.near and given.code == TIED:  # its expanded squares lack the common part
            log_likelihood -= 0.5 * (x @ given.theta.whiten[0].T).square().sum(dim=1)
        yield here, powers, responsibilities, log_likelihood


def _differences(x: Any, theta: Coefficients) -> Any:
    """Return the logits (b, M) of samples, from squares of whitened differences."""
    import torch

    logits = x.new_empty((len(x), len(theta.plain)))
    for m, mean in enumerate(theta.means):
        away = x - mean
        if len(theta.whiten):
            away = away @ theta.whiten[min(m, len(theta.whiten) - 1)].T
        else:
            away = away * theta.scales[m]
        torch.sum(away.square_(), dim=1, out=logits[:, m])
    return logits.mul_(-0.5).add_(theta.plain)


def sums(rows: Rows, given: Given, keep: Callable[[slice, Any], Any] | None = None) -> Sums:
    """Return the sums of a full pass over the rows.

    ``keep`` gets the slice of each block and its responsibilities (b, M), and returns those to be summed.
    """
    import torch

    found, log_likelihood = None, torch.zeros((), dtype=torch.float64, device=rows.y.device)
    for here, powers, responsibilities, of_rows in e_steps(rows, given):
        if keep is not None:
            responsibilities = keep(here, responsibilities)
        if rows.weight is not None:
            responsibilities = responsibilities * rows.weight[here][:, None]
            of_rows *= rows.weight[here]
        part = torch.cat([responsibilities.sum(dim=0)[:, None], responsibilities.T @ powers], dim=1)
        found = part if found is None else found + part
        log_likelihood += of_rows.sum()
    return Sums(found, log_likelihood)
