"""A problem is bound once: how often data are read, their mean is found, and E-steps are built."""

import signal
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mixture_data import blobs
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem import methods, models, posterior
from swiftem._run import run_problem
from swiftem.core.compute import Compute
from swiftem.data import ArraySource
from swiftem.data.as_source import read_problem
from swiftem.kernels.threads import set_threads

X, _ = blobs(900, 3, 3, seed=7)
MODEL = models.GaussianMixtureModel(3, covariance="full")
METHODS = {name: methods.METHODS[name]() for name in ("em", "sem", "iem", "sem-vr", "fiem")}


@pytest.fixture
def passes(monkeypatch):
    """The number of passes by blocks, by the number of rows."""
    found, blocks = Counter(), ArraySource.blocks

    def counted_blocks(self, rows):
        yield from blocks(self, rows)
        found[self.n] += 1

    monkeypatch.setattr(ArraySource, "blocks", counted_blocks)
    return found


def fit(**parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture = swiftem.GaussianMixture(3, init_params="kmeans", random_state=0, max_iter=12, **parameters)
        return mixture.fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_binds_once(method, passes):
    """The mean and the start from labels are read; em also reads the features that its passes keep."""
    fit(method=method)
    assert passes == {900: 3 if method == "em" else 2}


@pytest.mark.parametrize("method", ["em", "sem-vr"])
def test_starts_share_what_is_known_of_the_data(method, passes):
    set_threads(1)
    try:
        alone = fit(method=method, n_init=4)
        set_threads(2)
        shared = fit(method=method, n_init=4)
    finally:
        set_threads(None)
    assert passes[900] < 2 * 4 * 2
    np.testing.assert_array_equal(alone.means_, shared.means_)
    np.testing.assert_array_equal(alone.lower_bounds_, shared.lower_bounds_)


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_a_run_binds_once(method, passes):
    swiftem.run(MODEL, X, method, n_iter=20, seed=0, record_every=10)
    assert passes == {900: 2}  # the mean, and the covariance for a start


def test_every_pass_of_em_reads_the_data_once(passes):
    class Plain(ArraySource):
        """No source that compiled code has the rows of."""

    theta0 = MODEL.bind(ArraySource(X)).initial_theta(np.random.default_rng(0))
    passes.clear()
    swiftem.run(MODEL, Plain(X), methods.EM(), n_iter=5, theta0=theta0)
    assert passes == {900: 1 + 1 + 5}  # the mean, the statistics to start from, and five E-steps


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
@pytest.mark.parametrize("kind", ["unit", "full", "tied", "diag", "spherical"])
def test_runs_on_one_problem_are_those_on_the_data(kind, method):
    """What E-steps know from earlier runs changes no bit, and counts begin anew."""
    model = models.GaussianMixtureModel(3, covariance=kind)
    problem = read_problem(model, X)
    for seed in (0, 1):
        alone = swiftem.run(model, X, method, n_iter=40, seed=seed)
        found = run_problem(problem, method, n_iter=40, seed=seed)
        assert found.passes == alone.passes
        np.testing.assert_array_equal(found.s, alone.s)
        again = swiftem.run(model, X, method, n_iter=9, theta0=alone.theta, s0=alone.s, state=alone.state)
        more = run_problem(problem, method, n_iter=9, theta0=found.theta, s0=found.s, state=found.state)
        assert more.passes == again.passes
        np.testing.assert_array_equal(more.s, again.s)


def test_memories_are_of_the_run_alone():
    problem = read_problem(MODEL, X)
    single = run_problem(problem, methods.IncrementalEM(memory_dtype="float32"), n_iter=3, seed=0)
    double = run_problem(problem, methods.IncrementalEM(), n_iter=3, seed=0)
    assert [run.state.method.memory.dtype for run in (single, double)] == [np.float32, np.float64]


def test_passes_of_a_callback_are_not_broken_off():
    """A record that was broken off would be missing from the run that goes on."""
    problem, seen = read_problem(MODEL, X), []

    def callback(iterate):
        signal.raise_signal(signal.SIGINT)
        seen.append(problem.compute.objective(problem.bound.check_theta(iterate.theta)))

    result = run_problem(problem, methods.EM(), n_iter=5, seed=0, record_every=1, callback=callback)
    assert (result.status, len(seen)) == ("interrupted", 1)


def test_threads_have_e_steps_of_their_own():
    problem = read_problem(MODEL, X)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: problem.compute).result()
    assert other is not problem.compute
    assert problem.compute is problem.compute


def test_the_last_m_step_is_of_its_thread():
    """Threads do not share the arrays of an M-step."""
    bound = MODEL.bind(ArraySource(X))
    s = Compute(bound, ArraySource(X)).full(bound.initial_theta(np.random.default_rng(0)))
    assert bound.in_domain(s)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(bound.m_step, s).result()
    mine = bound.m_step(s)
    for part, same in zip(mine, other, strict=True):
        assert part is not same
        np.testing.assert_array_equal(part, same)


def test_other_rows_have_the_same_bound_model():
    problem = read_problem(MODEL, X)
    assert problem.on(problem.source) is problem
    some = problem.on(ArraySource(X[:100]))
    assert some.bound is problem.bound
    assert some.source.n == some.compute.n == 100


def test_what_takes_data_takes_a_problem():
    model = models.GaussianMixtureModel(3)
    problem = read_problem(model, X)
    assert read_problem(model, problem) is problem
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    assert swiftem.objective(model, problem, theta) == swiftem.objective(model, X, theta)
    found, expected = (posterior(model, data, theta, labels=True) for data in (problem, X))
    np.testing.assert_array_equal(found.log_likelihood, expected.log_likelihood)
    np.testing.assert_array_equal(found.labels, expected.labels)
    for other, weight in ((MODEL, None), (model, np.ones(len(X)))):
        with pytest.raises(ValueError, match="model must be the problem"):
            swiftem.objective(other, problem, theta, sample_weight=weight)
