"""Callbacks, progress bars and lines."""

import io
import re
import sys
import time
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest
from callbacks import Listener
from mixture_data import METHODS, blobs
from sklearn import mixture
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import swiftem

X, _ = blobs(300, 2, 3, seed=10)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fit(*callbacks, data=X, **parameters):
    # By name: with few rows the default compares starts, and n_init adds to them.
    made = swiftem.GaussianMixture(3, init_params="kmeans", random_state=0, **parameters)
    return made.set_callbacks(*callbacks).fit(data)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_init", [1, 2])
def test_every_task_that_begins_ends(method, n_init):
    listener = Listener()
    fitted = fit(listener, method=method, n_init=n_init, max_iter=6, tol=0.0)
    assert listener.events[0] == "setup"
    assert listener.events[-1] == "teardown"
    open_tasks = []
    for event in listener.events[1:-1]:
        if event[0] == "begin":
            open_tasks.append(event[1:])
        else:
            assert open_tasks.pop() == event[1:]
    assert open_tasks == []
    begun = [event[1] for event in listener.events[1:-1] if event[0] == "begin"]
    assert (begun.count("fit"), begun.count("start")) == (1, n_init)
    if n_init == 1:
        assert begun.count("pass") == len(fitted.history_)


@pytest.mark.parametrize("method", METHODS)
def test_callbacks_see_models_that_can_be_used(method):
    listener = Listener()
    final = fit(listener, method=method, max_iter=6, tol=0.0)
    for task, fitted in listener.fitted:
        assert fitted is not final
        assert fitted.predict(X).shape == (len(X),)
        assert task in ("pass", "start", "fit")
    last = listener.fitted[-1][1]
    np.testing.assert_array_equal(last.means_, final.means_)
    assert last.lower_bound_ == final.lower_bound_


@pytest.mark.parametrize("method", METHODS)
def test_callbacks_change_nothing(method):
    listened, plain = (fit(*those, method=method, max_iter=8) for those in ([Listener()], []))
    np.testing.assert_array_equal(listened.means_, plain.means_)


@pytest.mark.parametrize("method", METHODS)
def test_a_callback_stops_the_fit(method):
    fitted = fit(Listener("pass", after=2), method=method, max_iter=50, tol=0.0)
    assert len(fitted.history_) == 2
    assert not fitted.converged_
    assert np.isfinite(fitted.score(X))


def test_a_callback_that_stops_a_repair_stops_the_fit():
    """The first pass is of sem-vr, in which a component dies, the second of em, which sets it anew."""
    start = {"means_init": [[0.0, 0.0], [1e5, 1e5]], "weights_init": [0.5, 0.5]}
    made = swiftem.GaussianMixture(
        2, method="sem-vr", precisions_init=[np.eye(2)] * 2, random_state=0, **start
    ).set_callbacks(Listener(stop="pass", after=2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(X)
    assert made.history_.method.tolist() == ["sem-vr", "em"]


def test_a_callback_stops_further_starts():
    listener = Listener("start", after=2)
    fit(listener, n_init=5, max_iter=3)
    assert sum(event[:2] == ("begin", "start") for event in listener.events) == 2


def test_callbacks_see_the_data_and_weights():
    weight = np.where(np.arange(len(X)) % 2, 2.0, 0.0)
    listener = Listener()
    made = swiftem.GaussianMixture(2, random_state=0).set_callbacks(listener)
    made.fit(X, y := np.arange(len(X)), sample_weight=weight)
    for data, target, metadata in listener.told:
        assert data.shape == X.shape
        assert target is y
        np.testing.assert_array_equal(metadata["sample_weight"], weight)


def test_an_error_in_a_callback_is_the_users():
    class Broken(Listener):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("mine")

    listener = Broken()
    with pytest.raises(RuntimeError, match="mine"):
        fit(listener)
    assert listener.events[-1] == "teardown"


@pytest.mark.parametrize("method", ["em", "fiem"])
def test_scikit_learns_progress_bar(method, capsys):
    fit(ProgressBar(), method=method, n_init=2, max_iter=5)
    assert "GaussianMixture - fit" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["em", "sem-vr"])
def test_scikit_learns_scoring_monitor(method):
    monitor = ScoringMonitor(scoring={"score": lambda fitted, data, y: fitted.score(data)})
    made = swiftem.GaussianMixture(3, method=method, random_state=0, max_iter=8, tol=0.0).set_callbacks(
        monitor
    )
    made.fit(X, np.zeros(len(X)))  # it scores only where there is a y
    log = monitor.get_logs().data
    scores = [row["score"] for row in log if row["task_name"] == "pass"]
    assert len(scores) == len(made.history_)
    assert scores[-1] == pytest.approx(made.score(X))
    if method == "em":
        assert (np.diff(scores) > -1e-9).all()


def test_callbacks_of_a_pipeline_reach_the_mixture():
    listener = Listener()
    steps = make_pipeline(StandardScaler(), swiftem.GaussianMixture(2, random_state=0))
    steps.set_callbacks(listener).fit(X)
    assert ("begin", "start", 0) in listener.events
    assert sum(event[0] == "begin" for event in listener.events[1:-1]) == sum(
        event[0] == "end" for event in listener.events[1:-1]
    )


@pytest.mark.parametrize("verbose", [1, 2])
@pytest.mark.parametrize(("n_init", "interval"), [(1, 1), (2, 3)])
def test_the_lines_are_scikit_learns(verbose, n_init, interval):
    said = []
    for made in (mixture.GaussianMixture(3), swiftem.GaussianMixture(3, method="em", init_params="kmeans")):
        made.set_params(verbose=verbose, verbose_interval=interval, n_init=n_init, random_state=0, max_iter=7)
        with redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            made.fit(X)
        said.append(re.sub(r"time lapse \d+\.\d+s", "time lapse", out.getvalue()))
    assert said[1] == said[0]
    assert "Initialization 0" in said[1]


def test_the_last_line_has_the_seconds_of_the_fit(capsys):
    began = time.perf_counter()
    fit(verbose=2, max_iter=3)
    (said,) = re.findall(r"converge\w*\. time lapse (\d+\.\d+)s", capsys.readouterr().out)
    assert 0.0 <= float(said) <= time.perf_counter() - began


@pytest.mark.parametrize("method", METHODS[1:])
def test_lines_of_other_methods(method, capsys):
    fit(method=method, verbose=1, verbose_interval=5, max_iter=23, tol=0.0)
    out = capsys.readouterr().out
    assert [int(number) for number in re.findall(r"Iteration (\d+)", out)] == [5, 10, 15, 20]
    assert out.endswith("Initialization did not converge.\n")


def test_silence_without_verbose(capsys):
    fit()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("method", METHODS)
def test_a_bar_in_a_terminal(method, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    fit(method=method, verbose=1, max_iter=5)
    said = terminal.getvalue()
    assert "5 of 5" in said
    assert "log-likelihood -" in said
    assert "Initialization" not in said
