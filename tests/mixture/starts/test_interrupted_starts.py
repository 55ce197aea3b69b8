"""Ctrl-C while starts race leaves the best of them as the model, and no checkpoint has it."""

import _thread
import os
import signal
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from callbacks import Listener
from mixture_data import assert_same_model, blobs, fitted
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.core.loop import DeferredInterrupt
from swiftem.kernels.threads import set_threads
from swiftem.mixture.starts import race as racing

X, _ = blobs(2000, 2, 4, apart=1.5, seed=5)
CASES = {
    "race": (X, {}),
    "further starts": (X, {"n_init": 3}),
    "one by one": (X, {"covariance_type": "tied"}),
    "few rows": (X[:300], {}),
    "further starts of few rows": (X[:300], {"n_init": 4}),
    "without passes": (X, {"max_iter": 0}),
    "another method": (X, {"method": "sem-vr"}),
}


def by_exception():
    raise KeyboardInterrupt


def by_signal():
    os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def pressed(at, press=by_exception):
    """Press Ctrl-C at check number ``at`` of the starts, and have it counted; infinity: never."""
    calls = []

    class Counted(DeferredInterrupt):
        def check(self):
            calls.append(1)
            if len(calls) >= at and (press is by_exception or len(calls) == at):
                press()
            super().check()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(racing, "DeferredInterrupt", Counted)
        yield calls


def fit(rows, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return swiftem.GaussianMixture(4, **{"random_state": 0} | options).fit(rows)


def fit_interrupted(rows, **options):
    mixture = swiftem.GaussianMixture(4, **{"random_state": 0} | options)
    with pytest.warns(ConvergenceWarning, match=r"interrupted after 0\.0 passes; the model is") as found:  # noqa: PT031
        try:
            mixture.fit(rows)
        except KeyboardInterrupt:
            pytest.fail("KeyboardInterrupt came out of fit")
    assert [warning.filename for warning in found] == [__file__]
    return mixture


def count_of_checks(rows, **options):
    with pressed(np.inf) as calls:
        fit(rows, **options)
    return len(calls)


@pytest.fixture
def with_signals():
    """Python's handler, also if whoever runs the tests ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    set_threads(None)
    signal.signal(signal.SIGINT, before)


def places_in(count, most):
    """Return at most so many numbers, from 1 to ``count``."""
    return np.unique(np.linspace(1, count, most).astype(int))


@pytest.mark.parametrize("name", CASES)
def test_a_model_wherever_it_is_pressed(name):
    rows, options = CASES[name]
    scores = []
    count = count_of_checks(rows, **options)
    assert count > 5
    for at in places_in(count, count if name == "race" else 12):
        with pressed(at):
            mixture = fit_interrupted(rows, **options)
        assert not mixture.converged_
        assert (mixture.n_iter_, len(mixture.history_)) == (0, 0)
        assert np.isnan(mixture.stationarity_)
        assert np.isfinite(mixture.means_).all()
        scores.append(mixture.score(rows))
    assert np.isfinite(scores).all()
    assert scores[-1] >= scores[0]
    assert name not in ("race", "one by one") or scores[-1] > scores[0] + 1e-3
    mixture.set_params(warm_start=True, max_iter=100)
    assert fitted(mixture, rows).n_iter_ >= 1


@pytest.mark.parametrize("name", ["race", "few rows", "another method"])
def test_a_resumed_fit_is_that_without_an_interrupt(name, tmp_path):
    """The start that was interrupted is not the start of the checkpoint."""
    rows, options = CASES[name]
    whole = fit(rows, **options)
    count = count_of_checks(rows, **options)
    for number, at in enumerate(places_in(count, 6)):
        folder = tmp_path / str(number)
        with pressed(at), swiftem.checkpoint(folder, every=1):
            mixture = fit_interrupted(rows, **options)
        assert not np.array_equal(mixture.means_, whole.means_)
        assert not any(folder.glob("state-*"))
        assert not any(folder.glob("start-*"))
        resume = (True, "auto", False)[number % 3]  # nothing is lost: it may also begin again
        with swiftem.checkpoint(folder, every=1, resume=resume):
            again = fit(rows, **options)
        assert_same_model(again, whole)
        np.testing.assert_array_equal(again.history_.objective, whole.history_.objective)
        assert again.history_.moves == whole.history_.moves


@pytest.mark.usefixtures("with_signals")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize("options", [{}, {"covariance_type": "tied"}])
def test_a_signal_while_threads_work(threads, presses, options):
    """Checks are in any thread, the signal is in the main one; a second one ends the race at once."""
    data, _ = blobs(20_000, 4, 6, apart=0.7, seed=1)
    set_threads(threads)
    for at in (1, 7, 40):
        began = time.monotonic()
        with pressed(at, lambda: [by_signal() for _ in range(presses)]):
            mixture = fit_interrupted(data, **options)
        assert time.monotonic() - began < 60
        assert np.isfinite(mixture.score(data))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("at", [1, 2, 3])
def test_of_several_named_starts_the_first_is_kept(at):
    calls = []

    def init(X, n_components, random_state):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return random_state.randint(n_components, size=len(X))

    if at == 1:
        with pytest.raises(KeyboardInterrupt):
            fit(X, init_params=init, n_init=3)
        return
    start = fit(X, init_params=init, max_iter=0)
    calls.clear()
    mixture = fit_interrupted(X, init_params=init, n_init=3)
    np.testing.assert_array_equal(mixture.means_, start.means_)


@pytest.mark.usefixtures("with_signals")
def test_a_selection_completes_the_fit_under_way():
    def press():
        _thread.interrupt_main()
        time.sleep(0.5)  # the main thread learns of it before the fit ends

    with (
        pressed(20, press),
        pytest.warns(ConvergenceWarning, match=r"The selection was interrupted after \d of 9 fits"),
    ):
        found = swiftem.select(X, range(4, 13), "full", random_state=0, n_jobs=1)
    assert found.interrupted
    assert found.table[0].converged


def test_other_families_stored_rows_labels_and_callbacks(tmp_path):
    da = pytest.importorskip("dask.array")
    counts = np.random.default_rng(0).poisson(3.0 * (1 + X[:, :1] ** 2 % 5), size=(len(X), 2))
    np.save(tmp_path / "rows.npy", X)
    for family, rows, limit in (
        ("poisson", counts, None),
        ("", tmp_path / "rows.npy", None),
        ("", tmp_path / "rows.npy", "120MB"),
        ("", da.from_array(X, chunks=(500, 2)), None),
    ):
        kind = swiftem.Mixture if family else swiftem.GaussianMixture
        mixture = kind(4, random_state=0, **({"family": family} if family else {}))
        interrupted = pytest.warns(ConvergenceWarning, match=r"interrupted after 0\.0 passes")
        with pressed(5), interrupted, swiftem.config_context(memory_limit=limit):
            mixture.fit(rows)
        assert np.isfinite(mixture.score(counts if rows is counts else X))
    told = Listener()
    mixture = swiftem.GaussianMixture(4, random_state=0).set_callbacks(told)
    with pressed(10), pytest.warns(ConvergenceWarning, match=r"interrupted after 0\.0 passes"):
        labels = mixture.fit_predict(X)
    np.testing.assert_array_equal(labels, mixture.predict(X))
    assert [each if isinstance(each, str) else each[:2] for each in told.events] == [
        "setup", ("begin", "fit"), ("end", "fit"), "teardown",
    ]  # fmt: skip
