"""Runs on files and blocks: with the same draws they do what runs on the same rows in memory do."""

import numpy as np
import pytest
from helpers import make_method
from stored_sources import KINDS, SEQUENTIAL, make

import swiftem
from swiftem import methods, models
from swiftem.core import problem
from swiftem.core.draws import block_draws, read_seed
from swiftem.core.files import is_scratch
from swiftem.data import BlockSource, NpySource
from swiftem.kernels.threads import set_threads

pytest.importorskip("pyarrow")
rng = np.random.default_rng(0)
N = 1200
ROWS = rng.normal(size=(N, 2)) + rng.normal(scale=4.0, size=(3, 2))[rng.integers(3, size=N)]
WEIGHT = rng.integers(3, size=N).astype(float)
COVARIANCES = ("unit", "full", "tied", "diag", "spherical")


def model_of(covariance):
    return models.GaussianMixtureModel(3, covariance=covariance)


def theta_of(model):
    means = np.array([[-2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    shapes = {
        "full": np.array([np.eye(2)] * 3), "tied": np.eye(2),
        "diag": np.ones((3, 2)), "spherical": np.ones(3),
    }  # fmt: skip
    return model.theta(means=means, covariances=shapes.get(model.covariance))


def method_of(name, b=20):
    return make_method(name, batch_size=b, step_size=0.05)


def the_same_in_memory(model, rows, weight, source, method, n_iter):
    given = None
    if method.index_streams:
        streams = method.index_streams
        drawn = block_draws(read_seed(3), *source.layout, batch_size=method.batch_size, streams=streams)
        given = drawn.block(0, n_iter)
        given = given[0] if streams == 1 else given
    return swiftem.run(
        model, rows, method, n_iter=n_iter, theta0=theta_of(model), seed=3, draws=given, sample_weight=weight
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_does_what_it_does_in_memory(kind, name, tmp_path):
    model, method = model_of("full"), method_of(name)
    source = make(kind, tmp_path, ROWS, WEIGHT)
    n_iter = 3 if name == "em" else 100  # one epoch and a half, several windows
    if kind in SEQUENTIAL and methods.METHODS[name].remembers:
        with pytest.raises(
            ValueError, match=f"in order, and {name} must .* again: use em, sem or sem-vr, or"
        ):
            swiftem.run(model, source, method, n_iter=n_iter, theta0=theta_of(model), seed=3)
        return
    expected = the_same_in_memory(model, ROWS, WEIGHT, source, method, n_iter)
    for kernels in ("auto", "reference"):
        result = swiftem.run(
            model, source, method, n_iter=n_iter, theta0=theta_of(model), seed=3, kernels=kernels
        )
        assert np.allclose(result.s, expected.s, rtol=1e-8, atol=1e-10)
        assert result.passes == expected.passes
        assert result.rejected == expected.rejected


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("name", methods.METHODS)
@pytest.mark.parametrize("b", [1, 200])
def test_every_covariance_and_batch_size(covariance, name, b, tmp_path):
    model, method = model_of(covariance), method_of(name, b)
    source = make("npy", tmp_path, ROWS.astype(np.float32), window=300)
    expected = the_same_in_memory(model, ROWS.astype(np.float32), None, source, method, n_iter=12)
    result = swiftem.run(model, source, method, n_iter=12, theta0=theta_of(model), seed=3)
    assert np.allclose(result.s, expected.s, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
def test_threads_change_no_bit(kind, tmp_path, monkeypatch, readers):
    from swiftem.data import stored as stored_source

    monkeypatch.setattr(stored_source, "CHUNK_BYTES", 256 * 16)  # several parts
    source, model = make(kind, tmp_path, ROWS), model_of("full")
    found = []
    for number in (1, 2, 5):
        set_threads(number)
        try:
            found.append(swiftem.run(model, source, methods.EM(), n_iter=3, theta0=theta_of(model)))
        finally:
            set_threads(None)
    assert all(np.array_equal(result.s, found[0].s) for result in found)
    assert not readers()


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv", "blocks"])
@pytest.mark.parametrize("name", methods.METHODS)
def test_a_run_cut_in_two_goes_on_exactly(kind, name, tmp_path):
    if kind in SEQUENTIAL and methods.METHODS[name].remembers:
        return
    source, model, method = make(kind, tmp_path, ROWS), model_of("diag"), method_of(name)
    whole = swiftem.run(model, source, method, n_iter=120, theta0=theta_of(model), seed=1)
    first = swiftem.run(model, source, method, n_iter=47, theta0=theta_of(model), seed=1)
    rest = swiftem.run(model, source, method, n_iter=73, theta0=first.theta, s0=first.s, state=first.state)
    assert np.array_equal(rest.s, whole.s)


@pytest.mark.parametrize("name", ["iem", "fiem", "opt-fiem"])
@pytest.mark.parametrize("covariance", ["unit", "full"])
def test_what_is_remembered_may_be_in_a_file(name, covariance, tmp_path):
    source, model, method = make("npy", tmp_path, ROWS), model_of(covariance), method_of(name)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    free = swiftem.run(model, source, method, n_iter=100, theta0=theta_of(model), seed=1)
    needed = problem.bytes_needed(source, method, statistics=model.bind(source).size)
    less = {"memory_limit": needed + 100, "scratch": scratch}
    limited = swiftem.run(model, source, method, n_iter=60, theta0=theta_of(model), seed=1, **less)
    assert is_scratch(limited.state.method.memory)
    assert not is_scratch(free.state.method.memory)
    kept = {"checkpoint": tmp_path / "kept", "resume": "auto", "theta0": theta_of(model), "seed": 1}
    swiftem.run(model, source, method, n_iter=60, **kept)
    resumed = swiftem.run(model, source, method, n_iter=100, **kept, **less)
    assert is_scratch(resumed.state.method.memory)
    assert np.array_equal(resumed.s, free.s)
    before = limited.state.method.memory.copy()
    more = swiftem.run(
        model, source, method, n_iter=40, theta0=limited.theta, s0=limited.s, state=limited.state, **less
    )
    assert is_scratch(more.state.method.memory)
    assert np.array_equal(more.s, free.s)
    assert np.array_equal(before, limited.state.method.memory)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("name", methods.METHODS)
def test_what_does_not_fit_is_refused_before_the_start(name, tmp_path):
    source = make("npy", tmp_path, ROWS)
    with pytest.raises(ValueError, match=rf"memory_limit must be at least \d+ MB for {name} .* got 10 MB"):
        swiftem.run(model_of("full"), source, method_of(name), n_iter=1, memory_limit="10MB")


def test_large_statistics_count(tmp_path):
    source, method = make("npy", tmp_path, ROWS), methods.EM()
    small, large = (problem.bytes_needed(source, method, statistics=size) for size in (0, 10**7))
    assert large >= small + 8 * 10**7
    with pytest.raises(ValueError, match="memory_limit must be at least"):
        problem.Budget(small).reserve(source, method, statistics=10**7)
    assert model_of("full").bind(source).size == 3 * (1 + 2 + 3)
    assert model_of("unit").bind(source).size == 3 * (1 + 2)


@pytest.mark.parametrize("name", ["sem", "sem-vr"])
def test_the_reader_of_a_stream_ends_with_the_run(name, tmp_path, readers):
    model, source = model_of("full"), make("csv", tmp_path, ROWS)
    swiftem.run(model, source, method_of(name), n_iter=40, theta0=theta_of(model), seed=0)
    assert not readers()


def test_a_path_is_data(tmp_path):
    file = tmp_path / "rows.npy"
    np.save(file, ROWS)
    model = model_of("full")
    for data in (file, str(file), [file]):
        result = swiftem.run(model, data, methods.EM(), n_iter=2, theta0=theta_of(model))
        expected = swiftem.run(model, ROWS, methods.EM(), n_iter=2, theta0=theta_of(model))
        assert np.allclose(result.s, expected.s, rtol=1e-12)
    assert swiftem.objective(model, file, result.theta) == pytest.approx(
        swiftem.objective(model, ROWS, result.theta), rel=1e-12
    )


def test_one_dimensional_blocks_and_rows():
    y = ROWS[:, 0]
    model = models.GaussianMixtureModel(2)
    theta = model.theta(means=[[-1.0], [1.0]])
    source = BlockSource(lambda: (y[start : start + 100] for start in range(0, N, 100)))
    found = swiftem.run(model, source, methods.EM(), n_iter=3, theta0=theta)
    assert np.allclose(found.s, swiftem.run(model, y, methods.EM(), n_iter=3, theta0=theta).s, rtol=1e-12)
    assert NpySource(y).take([3]).y.shape == (1,)


def test_ctrl_c_in_a_pass_ends_the_reader(tmp_path, readers):
    source, model = make("parquet", tmp_path, ROWS), model_of("full")
    calls = []

    def pressed(iterate):
        calls.append(iterate)
        if len(calls) == 2:
            raise KeyboardInterrupt

    result = swiftem.run(
        model, source, methods.EM(), n_iter=5, theta0=theta_of(model), record_every=1, callback=pressed
    )
    assert result.status == "interrupted"
    assert not readers()
