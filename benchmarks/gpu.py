"""Whole calls on a GPU, passes of fits from random rows, and passes compared with PyTorch in float32.

The clock is synchronised. Of whole calls the second one of the process counts; ``setting`` has the first one.
The peer of a pass is what one writes without kernels: the same sums by PyTorch in float32, block by block.
``--quick`` runs tiny sizes, on PyTorch's CPU device if there is no GPU: it shows that all rows can be made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np

import swiftem
from benchmarks.gpu_topics import topic_rows
from benchmarks.row import Row
from benchmarks.timing import threads
from swiftem import methods, models

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Calls and passes on a GPU"
LEAD = ("model", "setting")
NOTE = """Peer of passes: the same sums by PyTorch in float32, block by block, as one writes them without
kernels. Overlapping data have about 18 effective components per row, separated data about one."""
MEASURED = 20
THREADS = os.cpu_count() or 1
BATCH, ITERATIONS = 1024, 4_000
NUMBERS = 1 << 28
"""Numbers that the peer computes at a time."""
MILLION = 1_000_000
KINDS = ("spherical", "diag", "tied", "full")
COLUMNS = (2, 4, 16, 32, 64, 128, 200, 384, 768, 1536)
COMPONENTS = (8, 32, 128, 512, 2048, 8192)
SHAPES = 48


class Size(NamedTuple):
    """A kind of covariance, rows, columns and components."""

    kind: str
    n: int
    d: int
    components: int

    def tiny(self) -> Size:
        return Size(self.kind, 1_000, min(self.d, 5), min(self.components, 4))


FITS: tuple[tuple[Size, str, float], ...] = (
    (Size("diag", 10 * MILLION, 16, 64), "race", 1.5),
    (Size("spherical", MILLION, 128, 1024), "random_from_data", 0.35),
    (Size("diag", 200_000, 384, 256), "random_from_data", 0.15),
    (Size("diag", 100_000, 768, 100), "random_from_data", 0.10),
    (Size("full", MILLION, 16, 32), "random_from_data", 0.15),
    (Size("spherical", MILLION, 128, 1024), "k-means++", 1.5),
    (Size("spherical", MILLION, 128, 1024), "kmeans", 2.5),
)
"""Whole fits, their starts and goals in seconds; all but default ones make 20 passes."""
PASSES: tuple[tuple[Size, float, str, float | None], ...] = (
    (Size("spherical", MILLION, 128, 1024), 1.0, "separated", 4.8e6),
    (Size("spherical", MILLION, 128, 1024), 0.22, "overlapping", 4.8e6),
    (Size("spherical", MILLION, 128, 1024), 100.0, "pairs of clusters, 100 sd apart", None),
    (Size("diag", MILLION, 128, 1024), 1.0, "separated", 9e6),
    (Size("diag", 10 * MILLION, 16, 64), 1.0, "separated", 1.2e6),
    (Size("tied", 100_000, 128, 1024), 1.0, "separated", None),
    (Size("full", MILLION, 16, 32), 1.0, "separated", 1.2e6),
    (Size("full", 100_000, 128, 1024), 1.0, "separated", 30e6),
    (Size("full", 100_000, 128, 1024), 0.15, "overlapping", 30e6),
)


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    """Yield nothing without PyTorch, or without a GPU unless it is a smoke test."""
    try:
        import torch
    except ImportError:
        return
    if quick or torch.cuda.is_available():
        with threads(THREADS):  # races of starts, and fits on the CPU
            yield from _rows(quick, repeats)


def _rows(quick: bool, repeats: int) -> Iterator[Row]:
    for size, start, goal in FITS:
        yield _fit(size.tiny() if quick else size, start, goal)
    yield _log_likelihood(Size("diag", MILLION // 5, 16, 64), quick)
    for size, start, _ in FITS[1:5]:
        yield from _passes_of_a_fit(size.tiny() if quick else size, start)
    yield from _first_call(quick)
    for size, spread, name, goal_of_pass in PASSES:
        yield _pass(size.tiny() if quick else size, spread, name, repeats, goal_of_pass)
    yield from _shapes(quick)
    for kind, name in product(KINDS, ("sem", "sem-vr", "fiem")):
        yield _iterations(name, Size(kind, 1000 if quick else MILLION // 2, 8, 16), quick, repeats)
    for size in (Size("diag", 10 * MILLION, 16, 64), Size("spherical", MILLION, 128, 1024)):
        yield _memory(size.tiny() if quick else size)
    yield _stream(Size("diag", 40 * MILLION, 16, 64), quick, repeats)
    yield from topic_rows(quick, repeats, queued)


def place() -> tuple[str, str]:
    """Return the device's name for swiftem, and for PyTorch."""
    import torch

    return ("cuda", "cuda") if torch.cuda.is_available() else ("torch:cpu", "cpu")


def seconds(call: Callable[[], Any]) -> float:
    """Return the time of a call, with all that it has begun on the device."""
    import torch

    def wait() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    wait()
    began = perf_counter()
    with catch_warnings():
        simplefilter("ignore")
        call()
    wait()
    return perf_counter() - began


def clusters(size: Size, spread: float) -> tuple[Any, Any]:
    """Return rows on the device, and means near those of their clusters."""
    import torch

    device = place()[1]
    made = torch.Generator(device=device).manual_seed(7)
    draw = partial(torch.randn, device=device, generator=made)
    means = spread * draw(size.components, size.d)
    if spread > 10.0:  # pairs that overlap
        means[1::2] = means[::2] + 0.2 * draw(*means[::2].shape)
    y = draw(size.n, size.d)
    for start in range(0, size.n, MILLION):
        some = y[start : start + MILLION]
        some += means[torch.randint(size.components, (len(some),), device=device, generator=made)]
    moved = means + 0.3 * (spread if spread < 10.0 else 0.2) * draw(*means.shape)
    return y, moved.double().cpu().numpy()


def row_of(size: Size, value: float, **options: Any) -> Row:
    """Return a row of the table."""
    given = {
        "figure": "gpu",
        "method": "em",
        "setting": "",
        "iterations": 1,
        "repeats": 1,
        "compared": "value",
    }
    given |= {"threads": THREADS, "b": size.n, "model": f"{size.kind}, d = {size.d}", "unit": "s"}
    made = {"n": size.n, "d": str(size.d), "components": size.components, "value": value}
    return Row(**given | made | options)


def _fit(size: Size, start: str, goal: float) -> Row:
    """A whole fit of a tensor on the device, the second one of the process."""
    y, _ = clusters(size, 1.0)
    options = {"covariance_type": size.kind, "init_params": start, "random_state": 0, "device": place()[0]}
    options |= {} if start == "race" else {"max_iter": 20, "tol": 0.0, "method": "em"}
    fits = [swiftem.GaussianMixture(size.components, **options) for _ in range(2)]
    first, second = (seconds(lambda fit=fit: fit.fit(y)) for fit in fits)
    what = "default fit" if start == "race" else f"{start}, 20 passes"
    setting = f"{what}, {fits[1].n_iter_} passes; first call {first:.2f} s"
    return row_of(size, second, setting=setting, iterations=fits[1].n_iter_, goal=goal)


def _log_likelihood(size: Size, quick: bool) -> Row:
    """How much less the default fits of five seeds explain than those of the CPU, at most ``tol``."""
    size = size.tiny() if quick else size
    y, _ = clusters(size, 1.0)
    host, means = y.cpu().numpy(), []
    for device, X in ((place()[0], y), ("cpu", host)):
        made = [
            swiftem.GaussianMixture(
                size.components, covariance_type=size.kind, random_state=seed, device=device
            )
            for seed in range(1 if quick else 5)
        ]
        seconds(lambda made=made, X=X: [fit.fit(X) for fit in made])
        means.append(-float(np.mean([fit.log_likelihood_ for fit in made])))
    setting = "−log-likelihood of default fits, five seeds"
    options = {"peer": "CPU", "peer_value": means[1], "compared": "difference", "goal": 1e-3, "unit": "nats"}
    return row_of(size, means[0], setting=setting, **options)


def _problem(size: Size, y: Any) -> tuple[Any, Any]:
    """Return model and problem for rows on the device."""
    from swiftem.core.compute import Placement
    from swiftem.core.problem import Problem
    from swiftem.data.as_source import kernels_of
    from swiftem.data.tensor import TensorSource

    model = models.GaussianMixtureModel(size.components, covariance=size.kind, reg_covar=1e-6)
    return model, Problem(model, TensorSource(y), placement=Placement(str(kernels_of(place()[0]))))


def _passes_of_a_fit(size: Size, start: str) -> Iterator[Row]:
    """Passes 1, 5 and 20 of a fit from random rows, compared with the fastest of the three.

    The faster one of pass 5 and the next counts, as a graph may be made in one of them; so of pass 20.
    """
    from swiftem.mixture.starts.named_starts import make_start
    from swiftem.mixture.starts.settings import StartSettings

    y, _ = clusters(size, 1.0)
    _, problem = _problem(size, y)
    times: dict[int, float] = {}
    forms: dict[int, int] = {}
    for _ in range(2):  # the first fit compiles
        begun = make_start(problem, StartSettings(start), np.random.RandomState(0))
        em = problem.compute.em(0.0, 0.0, -np.inf)
        em.load(begun.theta, (-np.inf, np.inf, np.inf))
        for number in range(1, 22):
            forms[number] = em._form
            times[number] = seconds(lambda em=em: em.advance(1))
    times |= {number: min(times[number], times[number + 1]) for number in (5, 20)}
    fastest = min(times[number] for number in (1, 5, 20))
    for number in (1, 5, 20):
        setting = f"pass {number} from random rows, form {forms[number]}"
        options = {"peer": "fastest of 1, 5, 20", "peer_value": fastest, "compared": "ratio", "goal": 2.5}
        yield row_of(size, times[number], setting=setting, **options)


FIRST = """
import json, sys
from benchmarks.gpu import Size, clusters, place, seconds
import swiftem
size = Size(*json.loads(sys.argv[1]))
y, _ = clusters(size, 1.0)
options = {"covariance_type": size.kind, "init_params": "random_from_data", "max_iter": 20}
options["device"] = place()[0]
call = lambda: swiftem.GaussianMixture(size.components, random_state=0, **options).fit(y)
print(json.dumps([seconds(call), seconds(call)]))
"""


def _first_call(quick: bool) -> Iterator[Row]:
    """The first call of a process minus the second one, with an empty and a warm cache of kernels."""
    size = Size("spherical", MILLION, 128, 1024)
    size = size.tiny() if quick else size
    with TemporaryDirectory() as folder:
        environment = os.environ | {"TRITON_CACHE_DIR": folder}
        for name, goal in (("empty", 10.0), ("warm", 1.0)):
            command = [sys.executable, "-c", FIRST, json.dumps(size)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            first, second = json.loads(done.stdout.splitlines()[-1])
            yield row_of(size, first - second, setting=f"first call minus second, {name} cache", goal=goal)


def _pass(size: Size, spread: float, name: str, repeats: int, goal: float | None = None) -> Row:
    """A pass of em at a θ near the optimum, as the graph that a fit replays."""
    import torch

    from swiftem.kernels.torch_device import graph_of
    from swiftem.mixture.compute.torch import DIFFERENCES, EXACT, PRODUCTS

    y, means = clusters(size, spread)
    model, problem = _problem(size, y)
    rng, (count, d) = np.random.default_rng(0), means.shape
    covariances = {
        "spherical": lambda: np.exp(0.1 * rng.normal(size=count)),
        "diag": lambda: np.exp(0.1 * rng.normal(size=(count, d))),
        "tied": lambda: np.eye(d),
        "full": lambda: np.tile(np.eye(d), (count, 1, 1)),
    }[size.kind]()
    weights = rng.dirichlet(np.full(count, 5.0))
    compute: Any = problem.compute
    at, form = compute.given(model.theta(weights=weights, means=means, covariances=covariances))
    call, exact_call = partial(compute.total, at, form), partial(compute.total, at, DIFFERENCES)
    found, exact = call()[0], exact_call()[0]
    error = float(torch.linalg.vector_norm(found - exact) / torch.linalg.vector_norm(exact))
    fast = compute.prepared(compute.device_rows.resident, form) if form in (PRODUCTS, EXACT) else None
    is_graph = fast is not None and fast.can_be_captured and y.is_cuda
    value = queued(graph_of(call).replay if is_graph else call, repeats)
    peer = queued(partial(eager, y, at.phi.float(), at.constant.float(), size.kind), max(1, repeats // 3), 3)
    setting = f"one pass, {name}, form {form}, error {error:.0e}"
    options = {"peer": "torch, float32", "peer_value": peer, "unit": "ns/iteration", "goal": goal}
    del compute, problem, found, exact, call, exact_call, fast
    if y.is_cuda:
        torch.cuda.empty_cache()
    return row_of(size, value, setting=setting, iterations=MEASURED, repeats=repeats, **options)


def shapes() -> list[Size]:
    """Return the fixed shapes: kinds in turn, and rows so that passes have about the same work."""
    made = []
    for number, (d, count) in enumerate(product(COLUMNS, COMPONENTS)):
        kind = KINDS[number % 4 if number % 4 < 3 or count * d * d <= 1 << 26 else number % 3]
        n = 10**12 // (count * d * d) if kind == "full" else 10**11 // (count * d)
        made.append(Size(kind, int(np.clip(n, 20_000, 2 * MILLION)), d, count))
    keep = np.linspace(0, len(made) - 1, SHAPES).astype(int)
    return [made[number] for number in keep]


def _shapes(quick: bool) -> Iterator[Row]:
    """A pass of each shape compared with PyTorch in float32, and the geometric mean of the speed-ups."""
    from dataclasses import replace

    found = []
    for size in shapes()[: 4 if quick else SHAPES]:
        row = _pass(size.tiny() if quick else size, 1.0, "separated", 1 if quick else 3)
        found.append(replace(row, compared="speed-up", goal=1.0))
        yield found[-1]
    mean = float(np.exp(np.mean([np.log(row.peer_value / row.value) for row in found])))
    size = Size("all kinds", 0, 0, 0)
    setting = f"geometric mean of {len(found)} shapes"
    yield row_of(
        size, 1.0, setting=setting, peer="torch, float32", peer_value=mean, compared="speed-up", goal=3.0
    )


def eager(y: Any, phi: Any, constant: Any, kind: str) -> Any:
    """Return the sums of a pass by PyTorch's own operations, in float32."""
    import torch

    from swiftem.mixture.compute.torch import features
    from swiftem.mixture.covariance import COVARIANCES

    total: Any = 0.0
    block = max(1, NUMBERS // sum(phi.shape))
    for start in range(0, len(y), block):
        powers = features(y[start : start + block], COVARIANCES[kind].code)
        total = total + torch.softmax(torch.addmm(constant, powers, phi), dim=1).T @ powers
    return total


def queued(call: Callable[[], Any], repeats: int, times: int = MEASURED) -> float:
    """Return the nanoseconds of a call: the median over repetitions of ``times`` queued ones."""
    call()

    def several() -> None:
        for _ in range(times):
            call()

    return float(np.median([1e9 * seconds(several) / times for _ in range(repeats)]))


def _iterations(name: str, size: Size, quick: bool, repeats: int) -> Row:
    """Iterations on batches, with their draws: the time of a long run minus that of a shorter one."""
    from swiftem._run import run_problem

    b, count = (16, 64) if quick else (BATCH, ITERATIONS)
    method = {
        "sem": methods.OnlineEM(1e-3, b),
        "sem-vr": methods.VarianceReducedEM(1e-3, b, epoch_length=1 << 20),
        "fiem": methods.FastIncrementalEM(1e-3, b),
    }[name]
    y, means = clusters(size, 1.0)
    model, problem = _problem(size, y)
    shape = {"spherical": (), "diag": (size.d,), "tied": None, "full": (1, 1)}[size.kind]
    covariances = np.eye(size.d) if shape is None else np.ones((size.components, *shape))
    if size.kind == "full":
        covariances = covariances * np.eye(size.d)
    weights = np.full(size.components, 1.0 / size.components)
    theta = model.theta(weights=weights, means=means, covariances=covariances)

    def run(iterations: int) -> float:
        return seconds(lambda: run_problem(problem, method, theta0=theta, n_iter=iterations, seed=0))

    run(count)
    found = [1e9 * (run(2 * count) - run(count)) / count for _ in range(min(repeats, 3))]
    options = {"method": name, "b": b, "iterations": count, "unit": "ns/iteration", "goal": 150e3}
    return row_of(size, float(np.median(found)), setting="iterations on the device", **options)


def _memory(size: Size) -> Row:
    """Largest memory of a fit on the device in addition to the data there."""
    import torch

    y, _ = clusters(size, 1.0)
    before = 0
    if y.is_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    options = {"covariance_type": size.kind, "max_iter": 4, "tol": 0.0, "init_params": "random_from_data"}
    mixture = swiftem.GaussianMixture(size.components, device=place()[0], random_state=0, **options)
    seconds(lambda: mixture.fit(y).predict(y))
    used, data = (
        (torch.cuda.max_memory_allocated() - before if y.is_cuda else 0),
        y.numel() * y.element_size(),
    )
    goal = (2.1 if size.kind == "diag" else 1.1) * data + 500e6  # "diag" stores features
    return row_of(size, float(used), setting=f"memory beyond {data / 1e6:.0f} MB", unit="bytes", goal=goal)


def _stream(size: Size, quick: bool, repeats: int) -> Row:
    """A pass over an array that is copied block by block, as if it did not fit; the peer only copies it."""
    from unittest.mock import patch

    import torch

    from swiftem.core.compute import Placement
    from swiftem.core.problem import Problem
    from swiftem.data import ArraySource
    from swiftem.data.as_source import kernels_of
    from swiftem.mixture.compute.torch import DeviceRows

    size = size.tiny() if quick else size
    block = np.random.default_rng(0).normal(size=(max(1, size.n // 400), size.d)).astype(np.float32)
    y = np.tile(block, (400, 1))
    model = models.GaussianMixtureModel(size.components, covariance=size.kind)
    problem = Problem(model, ArraySource(y), placement=Placement(str(kernels_of(place()[0]))))
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    with patch.object(DeviceRows, "fits", lambda self, needed: False):
        problem.compute.full(theta)
        there, host = torch.empty(y.shape, device=place()[1]), torch.from_numpy(y)  # pinned by now
        repeats = max(repeats, 3)
        passes = [seconds(lambda: problem.compute.full(theta)) for _ in range(repeats)]
        copies = [seconds(lambda: there.copy_(host, non_blocking=True)) for _ in range(repeats)]
    options = {"peer": "bare copy", "peer_value": min(copies), "compared": "ratio", "goal": 1.0 / 0.95}
    size = size._replace(n=len(y))
    return row_of(size, min(passes), setting="rows copied in every pass", repeats=repeats, **options)
