"""Compare the kernels in Triton with the passes in PyTorch; prints the largest errors as JSON.

``python tests/gpu/kernels_against_passes.py``: on a GPU, or with ``TRITON_INTERPRET=1`` on the CPU.
"""

import json
import sys
from warnings import simplefilter

import numpy as np
import torch

import swiftem
from swiftem import models
from swiftem.core.compute import Placement
from swiftem.data import ArraySource
from swiftem.mixture.compute import torch as passes
from swiftem.mixture.compute.torch import EXACT, PRODUCTS, TorchCompute, sums
from swiftem.mixture.compute.torch_loop import DeviceEM

DEVICE = "torch:cuda:0" if torch.cuda.is_available() else "torch:cpu"


def case(
    kind,
    n,
    d,
    n_components,
    *,
    spread=1.0,
    offset=0.0,
    weighted=False,
    pairs=False,
    narrow=0,
    beyond=False,
    seed=0,
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
        shape = {"spherical": n_components, "diag": (n_components, d), "full": (n_components, 1, 1)}
        covariances = rng.uniform(0.8, 1.2, shape.get(kind)) * (
            np.eye(d) if kind in ("full", "tied") else 1.0
        )
        theta = model.theta(weights=theta.weights, means=theta.means, covariances=covariances)
    if narrow:  # components that have collapsed onto a row, the last one without rows at all
        some = [part.copy() for part in theta[:3]]
        some[1][:narrow] = y[:narrow].astype(np.float32)
        some[1][narrow - 1] += 50.0
        if kind != "tied":
            some[2][:narrow] *= 1e-6 / (1.0 if kind == "spherical" else np.abs(some[2]).max())
        theta = model.theta(weights=some[0], means=some[1], covariances=some[2])
    compute = TorchCompute(bound, source, Placement(DEVICE))
    rows, (at, form) = compute.device_rows.resident, compute.given(theta)
    assert form == (EXACT if beyond else PRODUCTS), f"{form} for {kind}, {d}, {n_components}"
    made = compute.prepared(rows, form)
    errors = errors_of(compute.total(at, form), sums(rows, at, False), d)
    again = [made.sums(at)[0] for _ in range(2)]
    assert torch.equal(*again), "bits differ from run to run"
    half = rows.part(slice(n // 2, None))
    made.fill(half)
    found = made.sums(at)
    assert found[1].shape == (), "em on a device stacks it with other scalars"
    return type(made).__name__, errors + errors_of(found, sums(half, at, False), d)[:-1]


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
    ("diag", 300, 5, 20, {"narrow": 4, "beyond": True, "weighted": True, "offset": 1e4}),
    ("spherical", 300, 17, 70, {"narrow": 70, "beyond": True}),
    ("spherical", 300, 20, 130, {"pairs": True, "spread": 100.0, "beyond": True, "offset": 1e4}),
    ("tied", 300, 6, 70, {"pairs": True, "spread": 12.0, "beyond": True, "weighted": True}),
    ("diag", 300, 70, 70, {"beyond": True}),
    ("diag", 300, 130, 9, {"beyond": True, "weighted": True, "narrow": 3, "offset": 1e4}),
    ("tied", 900, 140, 5, {"beyond": True}),
    ("full", 300, 5, 4, {"narrow": 2, "beyond": True, "weighted": True, "offset": 1e4}),
    ("full", 300, 130, 3, {"beyond": True}),
]


def whole_fit(kind):
    """Return the forms of the passes of a fit from random rows, and how far its bounds are from the CPU's."""
    rng, forms, begin = np.random.default_rng(0), [], DeviceEM._begin
    y = 4.0 * rng.normal(size=(4, 3))[rng.integers(4, size=400)] + rng.normal(size=(400, 3))
    y = y.astype(np.float32)
    DeviceEM._begin = lambda self, rows: forms.append(self._form) or begin(self, rows)
    options = {
        "init_params": "random_from_data",
        "max_iter": 6,
        "tol": 0.0,
        "method": "em",
        "random_state": 0,
    }
    fits = [
        swiftem.GaussianMixture(4, covariance_type=kind, device=device, **options).fit(y)
        for device in (DEVICE.removesuffix(":0").replace("torch:cuda", "cuda"), "cpu")
    ]
    bounds = [np.array(fit.lower_bounds_) for fit in fits]
    DeviceEM._begin = begin
    return forms, float(np.abs(bounds[0] / bounds[1] - 1.0).max())


if __name__ == "__main__":
    passes.LEAST_SINGLE_ROWS = 0
    if sys.argv[1:] == ["fits"]:
        simplefilter("ignore")
        for kind in ("diag", "spherical", "tied", "full"):
            print(json.dumps([kind, *whole_fit(kind)]))
        sys.exit()
    chosen = [CASES[int(number)] for number in sys.argv[1:]] or CASES
    for kind, n, d, n_components, options in chosen:
        name, errors = case(kind, n, d, n_components, **options)
        print(json.dumps([kind, n, d, n_components, options, name, errors]))
        sys.stdout.flush()
