"""Passes and fits on a GPU, compared with PyTorch's own operations in float32, on blocks of rows.

Passes are those of an iteration of em, from parameters on the device to sums on the device, replayed as the
graph that a fit replays. ``setting`` has the largest relative error of the sums, against float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any
from unittest.mock import patch
from warnings import catch_warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import swiftem
from benchmarks.gpu_topics import topic_rows
from benchmarks.row import Row
from swiftem import methods, models

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Passes on a GPU"
LEAD = ("model", "setting")
NOTE = """Peer: the same sums by PyTorch in float32, block by block, as one writes them without kernels.
Overlapping data have about 18 effective components per row, separated data about one."""
MEASURED = 20
BATCH, ITERATIONS = 1024, 4_000
BLOCK = 1 << 16
MILLION = 1_000_000


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    try:
        import torch
    except ImportError:
        return
    if not torch.cuda.is_available():
        return
    share = 50 if quick else 1
    for spread, name in ((1.0, "separated"), (0.22, "overlapping")):
        yield _pass("spherical", MILLION // share, 128, 1024, spread, name, repeats, goal=4.7e6)
    name = "pairs of clusters, 100 sd apart"
    yield _pass("spherical", MILLION // share, 128, 1024, 100.0, name, repeats, goal=9e6)
    for spread, name in ((1.0, "separated"), (0.4, "overlapping")):
        yield _pass("diag", 10 * MILLION // share, 16, 64, spread, name, repeats, goal=1.2e6)
    yield _pass("full", MILLION // 2, 8, 16, 1.0, "separated", repeats)
    for spread, name, goal in ((1.0, "separated", 6e6), (0.15, "overlapping", 25e6)):
        yield _pass("full", MILLION // (10 * share), 128, 1024, spread, name, repeats, goal)
    yield _fit(10 * MILLION // share, 16, 64, repeats)
    for kind, n, d, n_components in (("diag", 10, 16, 64), ("spherical", 1, 128, 1024)):
        yield _memory(kind, n * MILLION // share, d, n_components)
    yield _stream(40 * MILLION // share, 16, 64, repeats)
    for method in (
        methods.OnlineEM(1e-3, BATCH),
        methods.VarianceReducedEM(1e-3, BATCH, epoch_length=1 << 20),
        methods.FastIncrementalEM(1e-3, BATCH),
    ):
        yield _iterations(method, MILLION // (2 * share), 8, 16, repeats)
    yield from topic_rows(10 * MILLION // share, repeats, queued)


def clusters(n: int, d: int, n_components: int, spread: float) -> tuple[Any, Any]:
    """Return rows on the device, and means near those of their clusters."""
    import torch

    made = torch.Generator(device="cuda").manual_seed(7)
    means = spread * torch.randn(n_components, d, device="cuda", generator=made)
    if spread > 10.0:  # pairs that overlap
        means[1::2] = means[::2] + 0.2 * torch.randn(means[::2].shape, device="cuda", generator=made)
    y = torch.randn(n, d, device="cuda", generator=made)
    for start in range(0, n, MILLION):
        which = torch.randint(n_components, (len(y[start : start + MILLION]),), device="cuda", generator=made)
        y[start : start + MILLION] += means[which]
    moved = means + 0.3 * (spread if spread < 10.0 else 0.2) * torch.randn(
        means.shape, device="cuda", generator=made
    )
    return y, moved.double().cpu().numpy()


def _pass(
    kind: str, n: int, d: int, n_components: int, spread: float, name: str, repeats: int,
    goal: float | None = None,
) -> Row:  # fmt: skip
    import torch

    from swiftem.core.compute import Placement
    from swiftem.core.problem import Problem
    from swiftem.data.tensor import TensorSource
    from swiftem.kernels.torch_device import graph_of
    from swiftem.mixture.compute.torch import sums

    y, means = clusters(n, d, n_components, spread)
    rng = np.random.default_rng(0)
    shape = {"spherical": (n_components,), "diag": (n_components, d)}.get(kind)
    covariances = (
        np.tile(np.eye(d), (n_components, 1, 1)) if shape is None else np.exp(0.1 * rng.normal(size=shape))
    )
    model = models.GaussianMixtureModel(n_components, covariance=kind)
    problem = Problem(model, TensorSource(y), placement=Placement("torch:cuda:0"))
    theta = model.theta(
        weights=rng.dirichlet(np.full(n_components, 5.0)), means=means, covariances=covariances
    )
    e_step: Any = problem.compute
    rows_, (at, extents) = e_step.device_rows.resident, e_step.given(theta)
    fast = e_step.kernels(rows_, extents)
    # Passes are in float64 if no kernel keeps the bound of the error.
    exact_call = partial(sums, rows_, at, extents)
    call = exact_call if fast is None else partial(fast.sums, at)
    found, exact = call()[0].cpu().numpy(), exact_call()[0].cpu().numpy()
    error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    phi, constant = at.phi.float(), at.constant.float()
    is_graph = fast is not None and fast.can_be_captured
    value = queued(graph_of(call).replay if is_graph else call, repeats)
    peer = queued(lambda: eager(y, phi, constant, kind), max(1, repeats // 3), 3)
    torch.cuda.empty_cache()
    return Row(
        figure="gpu", model=f"{kind}, d = {d}", method="em", setting=f"{name}, error {error:.0e}", n=n,
        d=str(d), components=n_components, b=n, iterations=MEASURED, repeats=repeats, value=value,
        unit="ns/iteration",
        peer="torch, float32", peer_value=peer, compared="value", goal=goal,
    )  # fmt: skip


def _iterations(method: Any, n: int, d: int, n_components: int, repeats: int) -> Row:
    """Iterations on batches, with their draws: the time of a long run minus that of a shorter one."""
    from swiftem._run import run_problem
    from swiftem.core.compute import Placement
    from swiftem.core.problem import Problem
    from swiftem.data.tensor import TensorSource

    y, means = clusters(n, d, n_components, 1.0)
    model = models.GaussianMixtureModel(n_components, covariance="full")
    problem = Problem(model, TensorSource(y), placement=Placement("torch:cuda:0"))
    theta = model.theta(
        weights=np.full(n_components, 1.0 / n_components), means=means,
        covariances=np.tile(np.eye(d), (n_components, 1, 1)),
    )  # fmt: skip

    def seconds(count: int) -> float:
        began = perf_counter()
        run_problem(problem, method, theta0=theta, n_iter=count, seed=0)
        return perf_counter() - began

    seconds(ITERATIONS)
    found = [
        1e9 * (seconds(2 * ITERATIONS) - seconds(ITERATIONS)) / ITERATIONS for _ in range(min(repeats, 3))
    ]
    return Row(
        figure="gpu", model=f"full, d = {d}", method=method.name, setting="iterations on the device", n=n,
        d=str(d), components=n_components, b=BATCH, iterations=ITERATIONS, repeats=repeats,
        value=float(np.median(found)), unit="ns/iteration", compared="value",
    )  # fmt: skip


def queued(call: Callable[[], Any], repeats: int, times: int = MEASURED) -> float:
    """Return the nanoseconds of a call: the median over repetitions of ``times`` queued ones."""
    import torch

    call()
    found = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(times):
            call()
        end.record()
        torch.cuda.synchronize()
        found.append(1e6 * begin.elapsed_time(end) / times)
    return float(np.median(found))


def eager(y: Any, phi: Any, constant: Any, kind: str) -> Any:
    """Return the sums of a pass by PyTorch's own operations, in float32."""
    import torch

    from swiftem.mixture.compute.torch import features
    from swiftem.mixture.covariance import COVARIANCES

    total: Any = 0.0
    for start in range(0, len(y), BLOCK):
        powers = features(y[start : start + BLOCK], COVARIANCES[kind].code)
        rows_ = torch.softmax(torch.addmm(constant, powers, phi), dim=1)
        total = total + rows_.T @ powers
    return total


def _fit(n: int, d: int, n_components: int, repeats: int) -> Row:
    """A whole fit of 50 iterations from a given start; the first one compiles and does not count."""
    y, means = clusters(n, d, n_components, 1.0)
    options = {
        "covariance_type": "diag", "max_iter": 50, "tol": 0.0, "means_init": means,
        "weights_init": np.full(n_components, 1.0 / n_components),
        "precisions_init": np.ones((n_components, d)),
    }  # fmt: skip
    seconds = []
    for _ in range(1 + min(repeats, 3)):
        began = perf_counter()
        with catch_warnings(action="ignore", category=ConvergenceWarning):
            swiftem.GaussianMixture(n_components, **options).fit(y)
        seconds.append(perf_counter() - began)
    return Row(
        figure="gpu", model="fit, 50 iterations", method="em", setting="diag, start given", n=n, d=str(d),
        components=n_components, b=n, iterations=1, repeats=repeats, value=min(seconds[1:]), unit="s",
        compared="value", goal=0.1,
    )  # fmt: skip


def _memory(kind: str, n: int, d: int, n_components: int) -> Row:
    """Largest memory of a fit on the device in addition to the data there."""
    import torch

    y, means = clusters(n, d, n_components, 1.0)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    shape = (n_components, d) if kind == "diag" else (n_components,)
    with catch_warnings(action="ignore", category=ConvergenceWarning):
        mixture = swiftem.GaussianMixture(
            n_components, covariance_type=kind, max_iter=4, tol=0.0, means_init=means,
            weights_init=np.full(n_components, 1.0 / n_components), precisions_init=np.ones(shape),
        ).fit(y)  # fmt: skip
    mixture.predict(y)
    used, data = torch.cuda.max_memory_allocated() - before, y.numel() * y.element_size()
    return Row(
        figure="gpu", model=f"{kind}, d = {d}", method="em", setting=f"memory beyond {data / 1e6:.0f} MB",
        n=n, d=str(d), components=n_components, b=n, iterations=4, repeats=1, value=float(used), unit="bytes",
        compared="value", goal=(2.1 if kind == "diag" else 1.1) * data + 200e6,  # "diag" stores features
    )  # fmt: skip


def _stream(n: int, d: int, n_components: int, repeats: int) -> Row:
    """A pass over an array that is copied block by block, as if it did not fit; the peer only copies it."""
    import torch

    from swiftem.core.compute import Placement
    from swiftem.core.problem import Problem
    from swiftem.data import ArraySource
    from swiftem.mixture.compute.torch import DeviceRows

    block = np.random.default_rng(0).normal(size=(n // 400, d)).astype(np.float32)
    y = np.tile(block, (400, 1))
    problem = Problem(
        models.GaussianMixtureModel(n_components, covariance="diag"),
        ArraySource(y),
        placement=Placement("torch:cuda:0"),
    )
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    with patch.object(DeviceRows, "fits", lambda self, needed: False):
        problem.compute.full(theta)
        there = torch.empty(y.shape, device="cuda")  # the array is pinned by now
        host, passes, copies = torch.from_numpy(y), [], []
        for _ in range(max(repeats, 3)):
            began = perf_counter()
            problem.compute.full(theta)
            middle = perf_counter()
            there.copy_(host, non_blocking=True)
            torch.cuda.synchronize()
            passes.append(middle - began)
            copies.append(perf_counter() - middle)
    return Row(
        figure="gpu", model=f"diag, d = {d}", method="em", setting="rows copied in every pass", n=len(y),
        d=str(d), components=n_components, b=len(y), iterations=1, repeats=repeats, value=min(passes),
        unit="s", peer="bare copy", peer_value=min(copies), compared="ratio", goal=1.0 / 0.95,
    )  # fmt: skip
