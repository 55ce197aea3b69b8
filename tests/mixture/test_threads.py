"""The number of threads changes no bit."""

import numpy as np
import pytest
from mixture_data import METHODS, assert_same_model, blobs, fitted

import swiftem
from swiftem.kernels.threads import set_threads

X, _ = blobs(3000, 3, 4, apart=1.5, seed=9)


@pytest.fixture(autouse=True)
def _default_threads():
    yield
    set_threads(None)


def fit(threads, seed=0, **parameters):
    set_threads(threads)
    return fitted(swiftem.GaussianMixture(4, random_state=seed, max_iter=8, **parameters), X)


@pytest.mark.filterwarnings("ignore:Components (that sit on few|whose rows lie in a plane)")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_init", [1, 3])
def test_starts_in_threads_give_the_same(method, n_init):
    one, two, three = (
        fit(count, method=method, n_init=n_init, init_params="random_from_data") for count in (1, 2, 3)
    )
    assert_same_model(one, two)
    assert_same_model(one, three)
    np.testing.assert_array_equal(one.history_.objective, two.history_.objective)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_gives_the_same_model_again(method):
    assert_same_model(fit(2, method=method, n_init=2), fit(2, method=method, n_init=2))
    if method != "em":
        assert not np.array_equal(fit(2, method=method).means_, fit(2, seed=1, method=method).means_)


def test_the_environment_says_how_many(monkeypatch):
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("SWIFTEM_NUM_THREADS", threads)
        found.append(fit(None, method="fiem", n_init=3))
    assert_same_model(*found)


def test_starts_draw_differently():
    """Each has its own seed: the best of several is no copy of the first."""
    assert len({fit(1, n_init=n, init_params="random").lower_bound_ for n in (1, 4, 8)}) > 1


def test_global_blas_threads_are_as_before():
    from threadpoolctl import threadpool_info

    before = [found["num_threads"] for found in threadpool_info()]
    fit(2, n_init=3)
    assert [found["num_threads"] for found in threadpool_info()] == before
