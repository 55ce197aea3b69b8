"""The main calls of all estimators, with few data: `make test-oldest` runs them with the lowest versions."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import mixture
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator
from typer.testing import CliRunner

import swiftem
from swiftem.cli.app import app

RNG = np.random.default_rng(0)
ROWS = RNG.permutation(np.concatenate([RNG.normal(size=(300, 2)), RNG.normal(6.0, 1.0, size=(300, 2))]))
COUNTS = RNG.poisson(np.where(np.arange(12) % 2, 5.0, 0.5), size=(80, 12))

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_gaussian_mixture(tmp_path):
    model = swiftem.GaussianMixture(2, random_state=0).fit(ROWS)
    theirs = mixture.GaussianMixture(2, random_state=0).fit(ROWS)
    assert isinstance(model, mixture.GaussianMixture)
    assert model.score(ROWS) == pytest.approx(theirs.score(ROWS), abs=1e-2)
    np.testing.assert_allclose(model.to_sklearn().score_samples(ROWS), model.score_samples(ROWS), rtol=1e-6)
    assert model.sample(5)[0].shape == (5, 2)
    assert model.bic(ROWS) < model.set_params(n_components=2).icl(ROWS)
    model.save(tmp_path / "model")
    loaded = swiftem.GaussianMixture.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(ROWS))
    assert clone(model).partial_fit(ROWS).predict_proba(ROWS).shape == (600, 2)
    model.plot(ROWS).figure.savefig(tmp_path / "plot.png")
    model.history_.plot()


def test_methods_weights_and_starts():
    for method in swiftem.methods.METHODS:
        swiftem.GaussianMixture(2, method=method, random_state=0).fit(ROWS, sample_weight=np.ones(600))
    start = {"weights_init": [0.5, 0.5], "means_init": [[0, 0], [6, 6]], "precisions_init": [np.eye(2)] * 2}
    assert swiftem.GaussianMixture(2, init_params="kmeans", **start).fit(ROWS).converged_


def test_search_for_the_number_of_components():
    search = GridSearchCV(swiftem.GaussianMixture(random_state=0), {"n_components": [1, 2]}, cv=2).fit(ROWS)
    assert search.best_params_ == {"n_components": 2}
    found = swiftem.select(ROWS, n_components=[1, 2], covariance_types=["diag"], random_state=0)
    assert "diag" in str(found)


def test_mixture_of_a_data_frame():
    frame = pd.DataFrame(
        {"size": ROWS[:, 0], "kind": np.where(ROWS[:, 1] > 3, "a", "b"), "n": np.arange(600) % 30}
    )
    frame.loc[3, "size"] = np.nan
    model = swiftem.Mixture(2, family="auto", missing="ignore", random_state=0).fit(frame)
    assert "size" in str(model.summary())
    assert not model.impute(frame).isna().to_numpy().any()
    model.plot(frame)


def test_regressions():
    y = np.where(np.arange(600) % 2, ROWS[:, 0], -ROWS[:, 0]) + 0.1 * ROWS[:, 1]
    assert swiftem.RegressionMixture(2, random_state=0).fit(ROWS, y).score(ROWS, y) > -3.0


def test_topics():
    model = swiftem.PLSA(2, random_state=0).fit(COUNTS)
    assert model.transform(COUNTS).shape == (80, 2)
    assert model.partial_fit(COUNTS).get_feature_names_out().tolist() == ["plsa0", "plsa1"]


def test_command_line(tmp_path):
    file, model = tmp_path / "rows.csv", tmp_path / "model"
    pd.DataFrame(ROWS, columns=["x", "y"]).to_csv(file, index=False)
    fit = ["fit", str(file), "--components", "2", "--out", str(model)]
    for words in (fit, ["predict", str(model), str(file)]):
        assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "estimator", [swiftem.GaussianMixture(), swiftem.Mixture(family="gaussian"), swiftem.PLSA(2)], ids=str
)
def test_check_estimator(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"]
    assert failed == []
