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


def test_the_environment_says_how_many(monkeypatch):
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("SWIFTEM_NUM_THREADS", threads)
        found.append(fit(None, method="fiem", n_init=3))
    assert_same_model(*found)
