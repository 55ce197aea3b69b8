"""Compare the kernels in Triton with the passes in PyTorch; prints the largest errors as JSON.

``python tests/gpu/kernels_against_passes.py``: on a GPU, or with ``TRITON_INTERPRET=1`` on the CPU.
"""

import json
import sys
from dataclasses import replace

import numpy as np
import torch

from swiftem import models
from swiftem.data import ArraySource
from swiftem.engine.gpu.expectation import DeviceExpectation
from swiftem.engine.gpu.fast import prepare
from swiftem.engine.gpu.passes import sums

DEVICE = "torch:cuda:0" if torch.cuda.is_available() else "torch:cpu"


def case(
    kind, n, d, n_components, *, spread=1.0, offset=0.0, weighted=False, pairs=False, products=None, seed=0
):
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
    e_step = DeviceExpectation(bound, source, DEVICE)
    rows = e_step.blocks.kept
    at = bound.coefficients(theta)
    whole = prepare.fast_rows(rows, bound.code, n_components)
    assert whole is not None, f"no kernel for {kind}, {d}, {n_components}"
    made = whole.chosen(whole.extents(at))
    assert made is not None, f"float32 is not enough for {kind}, {d}, {n_components}"
    if products is not None:
        made._products = products
    expected = sums(rows, e_step.blocks.given(at))
    found, log_likelihood = made.whole(at)
    for _ in range(2):
        again, _ = made.whole(at)
        assert np.array_equal(found, again), "bits differ from run to run"
    if kind == "tied":
        whiten = at.whiten[0]
        log_likelihood -= 0.5 * float(((whiten @ e_step.blocks.products) * whiten).sum())
    errors = differences(found, expected.sums.cpu().numpy(), d)
    errors.append(abs(log_likelihood / float(expected.log_likelihood) - 1.0))
    half = replace(rows, y=rows.y[n // 2 :], weight=None if weight is None else rows.weight[n // 2 :])
    whole.refill(half)
    expected, found = sums(half, e_step.blocks.given(at)), made.sums(made._theta)
    assert found.log_likelihood.shape == (), "em on a device stacks it with other scalars"
    errors += differences(found.sums.cpu().numpy(), expected.sums.cpu().numpy(), d)
    return type(made).__name__ + ", dense" * getattr(made, "_is_dense", False), errors


def differences(found, wanted, d):
    """Return the relative errors of counts, sums and squares."""
    parts = (slice(0, 1), slice(1, 1 + d), slice(1 + d, None))
    return [
        float(np.linalg.norm(found[:, part] - wanted[:, part]) / np.linalg.norm(wanted[:, part]))
        for part in parts
        if wanted[:, part].size
    ]


SMALL = [
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
    ("spherical", 700, 20, 130, {"weighted": True, "spread": 1e3, "offset": 1e4, "pairs": True}),
    ("diag", 700, 9, 130, {"spread": 100.0, "pairs": True}),
    ("full", 400, 20, 5, {"weighted": True, "offset": 1e3}),
    ("full", 400, 40, 3, {"products": 3}),
    ("full", 400, 20, 40, {"pairs": True, "spread": 4.0}),
    ("full", 400, 70, 3, {"weighted": True, "offset": 1e3}),
]

LARGE = [  # those of kernels in Gluon
    ("diag", 100_001, 16, 64, {}),
    ("diag", 30_000, 8, 50, {"weighted": True}),
    ("diag", 30_000, 30, 40, {"weighted": True}),
    ("spherical", 70_000, 12, 60, {"offset": 1e3}),
    ("tied", 70_000, 16, 33, {"weighted": True}),
    ("diag", 200_000, 16, 64, {"spread": 0.4}),
    ("spherical", 50_001, 128, 300, {}),
    ("spherical", 100_000, 128, 1024, {"spread": 0.22}),
    ("spherical", 20_000, 100, 1024, {"weighted": True, "offset": 1e4}),
    ("diag", 40_000, 32, 500, {}),
    ("full", 30_000, 128, 40, {"products": 3}),
    ("full", 20_000, 70, 130, {}),
    ("full", 30_000, 100, 30, {"weighted": True, "offset": 1e3}),
    ("full", 20_000, 128, 64, {"spread": 0.15}),
]

if __name__ == "__main__":
    prepare.LEAST_ROWS = 0
    chosen = [SMALL[int(number)] for number in sys.argv[1:] if number != "large"] or SMALL
    if "large" in sys.argv:
        chosen = LARGE
    for kind, n, d, n_components, options in chosen:
        name, errors = case(kind, n, d, n_components, **options)
        print(json.dumps([kind, n, d, n_components, options, name, errors]))
        sys.stdout.flush()
