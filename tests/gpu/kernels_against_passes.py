"""Compare the kernels in Triton with the passes in PyTorch; prints the largest errors as JSON.

``python tests/gpu/kernels_against_passes.py``: on a GPU, or with ``TRITON_INTERPRET=1`` on the CPU.
"""

import json
import sys
from dataclasses import replace

import numpy as np
import torch

from swiftem import models
from swiftem.core.compute import Placement
from swiftem.data import ArraySource
from swiftem.mixture.compute import triton
from swiftem.mixture.compute.torch import TorchCompute, sums

DEVICE = "torch:cuda:0" if torch.cuda.is_available() else "torch:cpu"


def case(kind, n, d, n_components, *, spread=1.0, offset=0.0, weighted=False, pairs=False, seed=0):
    """Return relative errors of the counts, sums, squares and the log-likelihood, and the class used."""
    rng = np.random.default_rng(seed)
    means = spread * rng.normal(size=(n_components, d))
    if pairs:  # of components that overlap, far from all others
        means[1::2] = means[::2] + 0.3 * rng.normal(size=means[1::2].shape)
    mixing = np.eye(d) + 0.1 * rng.normal(size=(n_components, d, d)) / np.sqrt(d)
    which = rng.integers(n_components, size=n)
    y = means[which] + rng.normal(size=(n, d))
    y = (np.einsum("nij,nj->ni", mixing[which], y) if n * d * d < 5e8 else y) + offset
    weight = rng.uniform(0.1, 4.0, size=n) if weighted else None
    model = models.GaussianMixtureModel(n_components, covariance=kind, reg_covar=1e-6)
    source = ArraySource(y.astype(np.float32), weight)
    bound = model.bind(source)
    theta = bound.initial_theta(rng)
    theta = theta._replace(means=means + offset + 0.2 * rng.normal(size=means.shape))
    if pairs:
        shape = {"spherical": n_components, "diag": (n_components, d), "full": (n_components, 1, 1)}[kind]
        covariances = rng.uniform(0.8, 1.2, shape) * (np.eye(d) if kind == "full" else 1.0)
        theta = model.theta(weights=theta.weights, means=theta.means, covariances=covariances)
    compute = TorchCompute(bound, source, Placement(DEVICE))
    rows, (at, extents) = compute.device_rows.resident, compute.given(theta)
    made = triton.kernel_rows(rows, n_components)
    assert made is not None, f"no kernel for {kind}, {d}, {n_components}"
    assert made.is_accurate(*extents), f"float32 is not enough for {kind}, {d}, {n_components}"
    errors = errors_of(compute.completed(made.sums(at), at), sums(rows, at, extents), d)
    again = [made.sums(at)[0] for _ in range(2)]
    assert torch.equal(*again), "bits differ from run to run"
    half = replace(rows, y=rows.y[n // 2 :], weight=None if weight is None else rows.weight[n // 2 :])
    made.fill(half)
    found = made.sums(at)
    assert found[1].shape == (), "em on a device stacks it with other scalars"
    return type(made).__name__, errors + errors_of(found, sums(half, at, extents), d)[:-1]


def errors_of(found, wanted, d):
    """Return the relative errors of counts, sums, squares and the log-likelihood."""
    errors = differences(found[0].cpu().numpy(), wanted[0].cpu().numpy(), d)
    return [*errors, abs(float(found[1] / wanted[1]) - 1.0)]


def differences(found, wanted, d):
    """Return the relative errors of counts, sums and squares."""
    parts = (slice(0, 1), slice(1, 1 + d), slice(1 + d, None))
    return [
        float(np.linalg.norm(found[:, part] - wanted[:, part]) / np.linalg.norm(wanted[:, part]))
        for part in parts
        if wanted[:, part].size
    ]


CASES = [
    ("diag", 1000, 3, 4, {}),
    ("diag", 1000, 5, 20, {"weighted": True}),
    ("spherical", 1000, 3, 4, {"offset": 1e3}),
    ("spherical", 1000, 17, 33, {"weighted": True}),
    ("tied", 1000, 4, 5, {"weighted": True}),
    ("full", 1000, 3, 4, {}),
    ("full", 1000, 6, 7, {"weighted": True, "offset": 100.0}),
    ("spherical", 700, 20, 130, {"weighted": True}),
    ("diag", 700, 9, 130, {}),
    ("tied", 700, 5, 140, {}),
    ("full", 400, 20, 5, {"weighted": True, "offset": 1e3}),
    ("full", 400, 40, 3, {}),
    ("full", 400, 20, 40, {"pairs": True, "spread": 4.0}),
    ("full", 400, 70, 3, {"weighted": True, "offset": 1e3}),
]

if __name__ == "__main__":
    triton.LEAST_ROWS = 0
    chosen = [CASES[int(number)] for number in sys.argv[1:]] or CASES
    for kind, n, d, n_components, options in chosen:
        name, errors = case(kind, n, d, n_components, **options)
        print(json.dumps([kind, n, d, n_components, options, name, errors]))
        sys.stdout.flush()
