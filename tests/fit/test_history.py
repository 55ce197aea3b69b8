"""How a fit went, and that the bounds are what they say."""

import copy
import pickle

import numpy as np
import pytest
from callbacks import Listener
from mixture_data import KINDS, METHODS, STOCHASTIC, blobs
from scipy.stats import multivariate_normal

import swiftem
from swiftem.fit.driver import Moment
from swiftem.fit.history import History
from swiftem.mixture import fit as fit_of_mixtures

X, _ = blobs(400, 2, 3, seed=6)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fit(data=X, **parameters):
    return swiftem.GaussianMixture(3, random_state=0, **parameters).fit(data)


def mean_log_likelihood(mixture, data=X, weight=None):
    """By SciPy's densities."""
    density = sum(
        w * multivariate_normal(mean, covariance).pdf(data)
        for w, mean, covariance in zip(
            mixture.weights_, mixture.means_, mixture.full_covariances(), strict=True
        )
    )
    return np.average(np.log(density), weights=weight)


@pytest.mark.parametrize("method", METHODS)
def test_columns(method):
    mixture = fit(method=method, max_iter=12, tol=1e-9)
    history = mixture.history_
    assert list(history.table()) == ["passes", "seconds", "objective", "step", "rejected", "method"]
    assert len(history) == len(history.passes) == len(list(history)) > 1
    assert (np.diff(history.passes) > 0).all()
    assert history.passes[-1] <= 12
    assert mixture.n_iter_ == np.ceil(history.passes[-1] - 1e-9)
    assert (np.diff(history.seconds) >= 0).all()
    assert ((history.step > 0) & (history.step <= 1)).all()
    assert set(history.method) <= {method, "sem"}
    np.testing.assert_array_equal(-history.objective, mixture.lower_bounds_)
    if method in ("em", "iem"):
        np.testing.assert_array_equal(history.step[history.method == method], 1.0)
        np.testing.assert_array_equal(history.rejected, 0)


def test_the_steps_of_a_schedule():
    mixture = fit(
        method=swiftem.methods.OnlineEM(step_size=swiftem.schedules.inverse(2, 5), batch_size=100),
        max_iter=3,
        tol=0.0,
        init_params="kmeans",
    )
    np.testing.assert_allclose(mixture.history_.step, [2 / (k + 5) for k in (4, 8, 12)])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_objectives_are_those_of_the_models(method, kind):
    listener = Listener()
    mixture = swiftem.GaussianMixture(
        3, covariance_type=kind, method=method, max_iter=9, random_state=0, tol=0.0
    )
    mixture.set_callbacks(listener).fit(X)
    found = [-mean_log_likelihood(fitted) for task, fitted in listener.fitted if task == "pass"]
    objective = mixture.history_.objective
    # em's is that of the θ that the pass began with, as in scikit-learn.
    expected = objective[1:] if method == "em" else objective
    np.testing.assert_allclose(found[: len(expected)], expected, rtol=1e-9)
    if method != "em":
        assert mixture.lower_bound_ == pytest.approx(mean_log_likelihood(mixture), rel=1e-9)


@pytest.mark.parametrize("method", STOCHASTIC)
def test_the_bound_of_all_rows(method, monkeypatch):
    """Looks are at some rows; the bound at the end is that of all, with their weights."""
    monkeypatch.setattr(fit_of_mixtures, "LOOKED_AT", 50)
    weight = np.random.default_rng(0).integers(1, 5, size=len(X))
    mixture = swiftem.GaussianMixture(3, method=method, max_iter=6, random_state=0).fit(
        X, sample_weight=weight
    )
    assert mixture.lower_bound_ == pytest.approx(mean_log_likelihood(mixture, weight=weight), rel=1e-9)
    assert mixture.lower_bound_ != mixture.lower_bounds_[-1]


@pytest.mark.parametrize(("n", "size"), [(14, 6), (15, 3), (59, 3), (60, 0)])
def test_many_evaluations_are_a_line_without_points(n, size):
    pytest.importorskip("matplotlib")
    history = History([Moment(float(k), 0.1, 2.0, 1.0, 0, "em") for k in range(n)])
    assert history.plot().lines[0].get_markersize() == size


def test_a_history_copies_and_pickles():
    history = History([Moment(1.0, 0.1, 2.0, 1.0, 0, "em")])
    for made in (copy.copy(history), copy.deepcopy(history), pickle.loads(pickle.dumps(history))):
        assert made == history
        np.testing.assert_array_equal(made.passes, [1.0])
    with pytest.raises(AttributeError, match="History has no column 'speed': it has passes, seconds"):
        history.speed  # noqa: B018
    assert len(History()) == 0
    assert History().objective.shape == (0,)
