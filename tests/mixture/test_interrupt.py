"""Ctrl-C leaves a fitted model."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from callbacks import AtPass
from mixture_data import METHODS, blobs, fitted
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.kernels.threads import set_threads
from swiftem.mixture import fit as fit_of_mixtures

X, _ = blobs(400, 2, 3, seed=11)


def by_signal():
    os.kill(os.getpid(), signal.SIGINT)


def by_exception():
    raise KeyboardInterrupt


@pytest.mark.parametrize("press", [by_signal, by_exception])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("at", [1, 3])
def test_a_model_and_a_warning(press, method, at):
    mixture = swiftem.GaussianMixture(3, method=method, max_iter=50, tol=0.0, random_state=0, n_init=3)
    with pytest.warns(ConvergenceWarning, match=r"The fit was interrupted after \d+\.\d passes") as found:
        mixture.set_callbacks(AtPass(at, press)).fit(X)
    assert len(found) == 1
    assert found[0].filename == __file__
    assert at <= len(mixture.history_) <= at + 1
    assert not mixture.converged_
    assert np.isnan(mixture.stationarity_)
    assert np.isfinite(mixture.score(X))
    assert mixture.predict(X).shape == (len(X),)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    mixture.set_callbacks().set_params(warm_start=True, max_iter=5)
    assert fitted(mixture, X).n_iter_ >= 4


@pytest.mark.parametrize("method", METHODS)
def test_in_the_first_look_or_pass(method, monkeypatch):
    """Before the first iteration there is the start."""

    def press(*arguments, **options):
        raise KeyboardInterrupt

    from swiftem.mixture.compute.numpy import NumpyCompute

    mixture = swiftem.GaussianMixture(3, method=method, random_state=0)
    with (  # noqa: PT031
        pytest.warns(ConvergenceWarning, match="interrupted after 0.0 passes"),
        monkeypatch.context() as patch,
    ):
        patch.setattr(NumpyCompute, "_pass", press)
        patch.setattr(fit_of_mixtures.Look, "at", press)
        mixture.fit(X)
    start = swiftem.GaussianMixture(3, random_state=0, max_iter=0).fit(X)
    np.testing.assert_array_equal(mixture.means_, start.means_)


def test_in_the_pass_that_certifies(monkeypatch):
    from swiftem.mixture import fit as fit_mixture

    def press(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_mixture, "certify", press)
    for method in METHODS:
        mixture = swiftem.GaussianMixture(3, method=method, random_state=0)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            mixture.fit(X)
        assert np.isfinite(mixture.score(X))


@pytest.mark.parametrize("method", ["em", "fiem"])
def test_starts_in_threads_end_too(method):
    """All of them soon, although the signal reaches only the main thread."""
    data, _ = blobs(20_000, 3, 5, apart=0.5, seed=0)
    mixture = swiftem.GaussianMixture(
        5, method=method, max_iter=100_000, tol=0.0, random_state=0, n_init=4, init_params="random_from_data"
    )
    set_threads(2)
    timer = threading.Timer(1.0, by_signal)
    began = time.monotonic()
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted"):  # noqa: PT031
            timer.start()
            mixture.fit(data)
    finally:
        timer.cancel()
        set_threads(None)
    assert time.monotonic() - began < 60
    assert np.isfinite(mixture.score(data))


def test_partial_fit_is_undone():
    mixture = swiftem.GaussianMixture(3, random_state=0).partial_fit(X[:100])
    before = mixture.means_.copy(), mixture._online

    def press(*arguments):
        raise KeyboardInterrupt

    mixture._fit_rows = press
    with pytest.raises(KeyboardInterrupt):
        mixture.partial_fit(X[100:])
    del mixture._fit_rows
    np.testing.assert_array_equal(mixture.means_, before[0])
    assert mixture._online is before[1]
    mixture.partial_fit(X[100:])
