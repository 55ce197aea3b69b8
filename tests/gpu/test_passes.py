"""Passes on a device compared with the reference in NumPy."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from gpu_problems import DEVICE, KINDS, ON, clusters, on_device, problem, torch
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem import methods, models
from swiftem._run import run_problem
from swiftem.core.checks import MemoryLimitError, in_numpy, is_tensor
from swiftem.core.compute import Placement
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.data.as_source import kernels_of, like
from swiftem.data.tensor import TensorSource
from swiftem.mixture.gaussians import BoundGaussians
from swiftem.mixture.starts.named_starts import DegenerateComponentWarning

REFERENCE = Placement(form="reference")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("offset", "spread"), [(0.0, 2.0), (1e4, 2.0), (0.0, 1e3)])
def test_a_pass_equals_the_reference(kind, weighted, offset, spread):
    y = clusters(offset=offset, spread=spread)
    weight = np.random.default_rng(2).uniform(0.0, 3.0, size=len(y)) if weighted else None
    here, theta = problem(y, kind, weight=weight)
    there, _ = problem(y, kind, placement=REFERENCE, weight=weight)
    for _ in range(3):
        s, expected = here.compute.full(theta), there.compute.full(theta)
        np.testing.assert_allclose(s, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
        assert here.compute.objective(theta) == pytest.approx(there.compute.objective(theta), rel=1e-12)
        theta = here.bound.m_step(s)
    found = here.compute.evaluate(theta, responsibilities=True, labels=True)
    wanted = there.compute.evaluate(theta, responsibilities=True, labels=True)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, rtol=1e-9)
    np.testing.assert_allclose(found.responsibilities, wanted.responsibilities, atol=1e-8)
    assert (found.labels == wanted.labels).mean() > 0.999


def test_blocks_do_not_change_the_result(monkeypatch):
    from swiftem.mixture.compute import torch as passes

    here, theta = problem(clusters())
    whole = here.compute.full(theta)
    monkeypatch.setattr(passes, "NUMBERS", 1000)
    np.testing.assert_allclose(problem(clusters())[0].compute.full(theta), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        (torch.zeros(3), "data must have shape"),
        (torch.zeros((0, 2)), "at least one row"),
        (torch.zeros((2, 2), dtype=torch.complex64), "data must be real numbers"),
        (torch.tensor([[1.0], [float("nan")]]), "got NaN or infinity in row 1"),
    ],
)
def test_bad_tensors(tensor, sentence):
    with pytest.raises(ValueError, match=sentence):
        TensorSource(tensor)


def test_tensors_are_told_from_arrays():
    tensor = torch.ones((2, 2), requires_grad=True)
    assert is_tensor(tensor)
    assert not is_tensor(np.ones(2))
    assert not is_tensor([[1.0]])
    np.testing.assert_array_equal(in_numpy(tensor), np.ones((2, 2)))
    assert like(tensor, np.zeros(3)).device == tensor.device
    arrays = pytest.importorskip("pyarrow")
    assert not is_tensor(arrays.array([1.0]))


def test_names_of_devices():
    assert kernels_of("cpu") is None
    assert kernels_of("auto", torch.zeros(3)) is None
    assert kernels_of("torch:cpu") == "torch:cpu"
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got 'gpu'"):
        kernels_of("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="PyTorch finds no CUDA device"):
            kernels_of("cuda")


@pytest.mark.parametrize("kind", KINDS)
def test_iterations_of_em_do_not_leave_the_device(monkeypatch, kind):
    y = clusters(6000)
    options = {"covariance_type": kind, "random_state": 0, "init_params": "random_from_data", "method": "em"}
    real, calls = BoundGaussians.solve, []

    def solve(self, s):
        calls.append(s)
        return real(self, s)

    monkeypatch.setattr(BoundGaussians, "solve", solve)
    fitted = swiftem.GaussianMixture(4, device=ON, **options).fit(y)
    assert fitted.n_iter_ > 10
    assert len(calls) <= 4  # of the start, and of the end


def test_a_component_without_rows_is_reinitialised_on_a_device():
    y = clusters(3000)
    options = {
        "means_init": [[0.0, 0, 0], [1.0, 1, 1], [2.0, 0, 1], [1e4, 1e4, 1e4]], "random_state": 0,
        "method": "em", "max_iter": 500,
    }  # fmt: skip
    with pytest.warns(DegenerateComponentWarning):
        fitted = swiftem.GaussianMixture(4, device=ON, **options).fit(y)
    with pytest.warns(DegenerateComponentWarning):
        expected = swiftem.GaussianMixture(4, **options).fit(y)
    np.testing.assert_allclose(fitted.means_, expected.means_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fitted.lower_bounds_, expected.lower_bounds_, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_k_means_plus_plus_chooses_the_rows_of_scikit_learn(weighted):
    from sklearn.cluster import kmeans_plusplus

    y = clusters(2000)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, size=len(y)) if weighted else None
    here, _ = problem(y, n_components=6, weight=weight)
    found = here.compute.starts().single_rows("k-means++", np.random.RandomState(5))
    _, expected = kmeans_plusplus(y, 6, sample_weight=weight, random_state=np.random.RandomState(5))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_random_rows_are_drawn_on_the_device(kind):
    y = clusters(4000, dtype=np.float32)
    fitted = swiftem.GaussianMixture(3, covariance_type=kind, random_state=0, init_params="k-means++").fit(y)
    rows, labels = fitted.to(ON).sample(100_000)
    again, _ = fitted.sample(100_000)
    assert torch.equal(rows, again)
    assert rows.dtype == torch.float32
    assert rows.device.type == labels.device.type == DEVICE.split(":")[1]
    y, labels = rows.cpu().double().numpy(), labels.cpu().numpy()
    np.testing.assert_allclose(np.bincount(labels) / 1e5, fitted.weights_, atol=0.01)
    full = {
        "full": lambda m: fitted.covariances_[m], "tied": lambda m: fitted.covariances_,
        "diag": lambda m: np.diag(fitted.covariances_[m]),
        "spherical": lambda m: fitted.covariances_[m] * np.eye(3),
    }[kind]  # fmt: skip
    for m in range(3):
        np.testing.assert_allclose(y[labels == m].mean(axis=0), fitted.means_[m], atol=0.1)
        np.testing.assert_allclose(np.cov(y[labels == m].T), full(m), atol=0.3)


def test_a_model_moves_between_devices_and_files(tmp_path):
    y = clusters(3000, dtype=np.float32)
    options = {"random_state": 0, "init_params": "k-means++", "device": ON}
    with swiftem.config_context(device_memory_limit="3GB"):
        fitted = swiftem.GaussianMixture(4, **options).fit(on_device(y))
    fitted.save(tmp_path / "model.swiftem")
    loaded = swiftem.GaussianMixture.load(tmp_path / "model.swiftem")
    assert loaded.device == "auto"
    np.testing.assert_array_equal(loaded.means_, fitted.means_)
    np.testing.assert_array_equal(loaded.predict(y), fitted.to("cpu").predict(y))
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="PyTorch finds no CUDA device"):
            loaded.to("cuda")


class OnlyDLPack:
    """An array of a library that is not PyTorch: DLPack, and a namespace."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __array_namespace__(self):
        return OnlyDLPack

    @classmethod
    def from_dlpack(cls, found):
        return cls(torch.from_dlpack(found))

    @classmethod
    def asarray(cls, found):
        return cls(torch.from_numpy(found))


@pytest.mark.parametrize("there", [False, True])
def test_arrays_with_dlpack_come_in_and_go_out(there):
    y = clusters(3000)
    rows = OnlyDLPack(torch.from_numpy(y).to(DEVICE.removeprefix("torch:") if there else "cpu"))
    options = {"random_state": 0, "init_params": "k-means++", "method": "em"}
    fitted = swiftem.GaussianMixture(4, device=ON if there else "cpu", **options).fit(rows)
    found = fitted.predict(rows), fitted.predict_proba(rows), fitted.score_samples(rows)
    assert all(isinstance(each, OnlyDLPack) for each in found)
    expected = swiftem.GaussianMixture(4, **options).fit(y)
    np.testing.assert_allclose(fitted.means_, expected.means_, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found[0].tensor.cpu().numpy(), expected.predict(y))


DISPATCH = """
import numpy as np, torch, swiftem
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

y = torch.from_numpy(np.random.default_rng(0).normal(size=(2000, 3)))
mixture = swiftem.GaussianMixture(2, random_state=0, tol=0.1)
with config_context(array_api_dispatch=True):
    pipeline = make_pipeline(MinMaxScaler(), mixture).fit(y)
    found = pipeline.predict(y), pipeline.predict_proba(y), pipeline.score_samples(y)
assert all(isinstance(each, torch.Tensor) and len(each) == len(y) for each in found), found
"""


def test_array_api_dispatch_gives_the_namespace_of_the_input():
    """In a process of its own: SciPy reads the variable when it is imported."""
    environment = dict(os.environ, SCIPY_ARRAY_API="1")
    done = subprocess.run([sys.executable, "-c", DISPATCH], env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_a_limit_of_the_devices_memory(caplog):
    y = clusters(400_000, dtype=np.float32)
    model = models.GaussianMixtureModel(4, covariance="full", reg_covar=1e-6)
    options = {"method": methods.EM(), "n_iter": 3, "seed": 0}
    made = [
        Problem(model, ArraySource(y), placement=Placement(DEVICE, memory_limit=limit))
        for limit in (None, 180_000_000)
    ]
    with caplog.at_level("INFO", logger="swiftem"):
        ends = [run_problem(each, **options) for each in made]
    assert [each.compute.device_rows.resident is None for each in made] == [False, True]
    assert "rows do not fit into device_memory_limit" in caplog.text
    np.testing.assert_allclose(ends[0].s, ends[1].s, rtol=1e-5, atol=1e-6)
    small = Problem(model, ArraySource(y), placement=Placement(DEVICE, memory_limit=10_000_000))
    with pytest.raises(MemoryLimitError, match="device_memory_limit must be at least"):
        run_problem(small, **options)
    with pytest.raises(ValueError, match="device_memory_limit must be a number of bytes"):
        swiftem.run(model, y, methods.EM(), n_iter=1, device_memory_limit="much")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_of_tensors_stay_on_the_device(monkeypatch, dtype):
    y = clusters(3000, dtype=dtype)
    fitted = swiftem.GaussianMixture(4, random_state=0, init_params="k-means++", device=ON).fit(y)
    tensor, asked = torch.from_numpy(y).to(DEVICE.removeprefix("torch:")), []
    with monkeypatch.context() as patched:
        patched.setattr(torch.Tensor, "cpu", lambda self: asked.append(self.numel()) or self.to("cpu"))
        found = [fitted.predict(tensor), fitted.predict_proba(tensor), fitted.score_samples(tensor)]
    assert max(asked, default=0) < 100, "results were copied to the CPU"
    assert all(each.device == tensor.device for each in found)
    expected = fitted.predict(y), fitted.predict_proba(y), fitted.score_samples(y)
    for one, other in zip(found, expected, strict=True):
        assert one.cpu().numpy().dtype == other.dtype
        np.testing.assert_allclose(one.cpu().numpy(), other, rtol=1e-5, atol=1e-6)
    assert fitted.score(tensor) == pytest.approx(fitted.score(y), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_without_memory_for_a_copy_is_prepared_block_by_block(monkeypatch, kind):
    from swiftem.mixture.compute import torch as passes

    y = clusters(3000, dtype=np.float32)
    whole, theta = problem(y, kind)
    monkeypatch.setattr(passes, "BYTES", 700 * 8 * y.shape[1])
    monkeypatch.setattr(passes, "LEAST_ROWS", 1)
    monkeypatch.setattr(passes.DeviceRows, "fits", lambda self, needed: False)
    source = TensorSource(torch.from_numpy(y).to(DEVICE.removeprefix("torch:")))
    there = Problem(whole.model, source, placement=Placement(DEVICE))
    np.testing.assert_allclose(there.compute.full(theta), whole.compute.full(theta), rtol=1e-6, atol=1e-7)
    assert there.compute.device_rows.largest[0] == 700


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_do_not_fit_are_copied_in_every_pass(monkeypatch, kind, weighted):
    from swiftem.mixture.compute import torch as passes

    y = clusters(5000, dtype=np.float32)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, size=len(y)) if weighted else None
    whole, theta = problem(y, kind, weight=weight)
    expected, value = whole.compute.full(theta), whole.compute.objective(theta)
    monkeypatch.setattr(passes, "NUMBERS", 900)
    monkeypatch.setattr(passes, "BYTES", 700 * 8 * y.shape[1])
    monkeypatch.setattr(passes, "LEAST_ROWS", 1)
    monkeypatch.setattr(passes.DeviceRows, "fits", lambda self, needed: False)
    if torch.cuda.is_available():
        monkeypatch.setattr(passes, "LEAST_SINGLE_ROWS", 0)
    streamed, _ = problem(y, kind, weight=weight)
    np.testing.assert_allclose(streamed.compute.full(theta), expected, rtol=1e-5, atol=1e-6)
    assert streamed.compute.objective(theta) == pytest.approx(value, rel=1e-6)
    assert streamed.compute.device_rows.resident is None
    found = streamed.compute.evaluate(theta, labels=True).labels
    np.testing.assert_array_equal(found, whole.compute.evaluate(theta, labels=True).labels)


@pytest.fixture
def copies(monkeypatch):
    """Return the sizes of tensors whose numbers the CPU reads or copies."""
    found, real = (
        [],
        {name: getattr(torch.Tensor, name) for name in ("cpu", "tolist", "__float__", "__int__")},
    )

    def counted(name):
        def call(self, *given):
            found.append(self.numel())
            return real[name](self, *given)

        return call

    for name in real:
        monkeypatch.setattr(torch.Tensor, name, counted(name))
    return found


DEVICE_STARTS = ("race", "kmeans", "k-means++", "random_from_data", "given")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", DEVICE_STARTS)
def test_a_fit_leaves_the_rows_on_the_device(copies, kind, start):
    """The race takes a sample; otherwise the CPU reads less than a tenth of the rows, and rarely."""
    y = torch.from_numpy(clusters(40_000, dtype=np.float32)).to(DEVICE.removeprefix("torch:"))
    options = {"means_init": y[:4].cpu().numpy()} if start == "given" else {"init_params": start}
    if start == "given":
        options["precisions_init"] = {"full": np.array([np.eye(3)] * 4), "tied": np.eye(3)}.get(
            kind, np.ones((4, 3) if kind == "diag" else 4)
        )
        options["weights_init"] = np.full(4, 0.25)
    copies.clear()
    fitted = swiftem.GaussianMixture(
        4, covariance_type=kind, device=ON, random_state=0, method="em", max_iter=12, tol=0.0, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(y)
    sample = 2 * 26_000 * 3 if start == "race" else 0
    assert sum(copies) < 0.3 * y.numel() + sample
    assert fitted.n_iter_ == 12


@pytest.mark.parametrize("kind", KINDS)
def test_how_often_the_cpu_looks_makes_no_difference(monkeypatch, kind):
    from swiftem.mixture.compute import torch_loop

    y, found = clusters(3000, spread=1.0), []
    for ahead in (1, 3, 64):
        monkeypatch.setattr(torch_loop, "AHEAD", ahead)
        found.append(
            swiftem.GaussianMixture(
                4,
                covariance_type=kind,
                device=ON,
                random_state=0,
                init_params="random_from_data",
                max_iter=500,
            ).fit(y)
        )
    for other in found[1:]:
        assert other.n_iter_ == found[0].n_iter_
        assert other.lower_bounds_ == found[0].lower_bounds_
        np.testing.assert_array_equal(other.means_, found[0].means_)
        np.testing.assert_array_equal(other.covariances_, found[0].covariances_)


def test_the_cpu_waits_once_per_few_passes(monkeypatch):
    from swiftem.mixture.compute.torch_loop import AHEAD, DeviceEM

    real, waits = DeviceEM._do, []
    monkeypatch.setattr(DeviceEM, "_do", lambda self, *given: waits.append(given[0]) or real(self, *given))
    options = {"device": ON, "random_state": 0, "init_params": "random_from_data", "tol": 0.0, "max_iter": 20}
    with pytest.warns(ConvergenceWarning):
        swiftem.GaussianMixture(4, covariance_type="diag", **options).fit(clusters(6000))
    assert len(waits) <= 20 // AHEAD + 4  # and where the form of passes changes


def test_the_rule_of_the_device_is_that_of_the_cpu():
    from swiftem.fit.stopping import Remaining
    from swiftem.mixture.compute.torch_loop import gains_after

    rng, tol = np.random.default_rng(0), 1e-3
    for _ in range(30):
        remaining = Remaining(tol, 1000)
        gains = torch.tensor(remaining.last, dtype=torch.float64)
        rate, bound = rng.uniform(0.3, 1.02), -3.0
        for k in range(40):
            bound += rng.uniform(0.5, 1.5) * rate**k * rng.choice([0.3, 1.0, 0.0], p=[0.4, 0.5, 0.1])
            gains, is_small = gains_after(
                gains, torch.tensor(bound, dtype=torch.float64), tol, remaining.small
            )
            assert bool(is_small) == remaining.is_small(bound)
            assert tuple(gains.tolist()) == remaining.last
