"""Random rows of a mixture on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.core.checks import torch_of
from swiftem.data.as_source import DEVICE_KERNELS

__all__ = ["sample_on_device"]


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
