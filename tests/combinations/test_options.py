"""No parameter of a mixture changes nothing: for each there are two values with different fits."""

import inspect

import numpy as np
import pytest
from combinations.judge import difference
from combinations.mixtures import fitted

import swiftem
from swiftem import models

RNG = np.random.default_rng(0)
LABEL = RNG.integers(3, size=1200)
X = RNG.normal(size=(1200, 2)) + 2.5 * LABEL[:, None]
COUNTS = RNG.poisson(2.0 + 3.0 * LABEL[:, None], size=(1200, 2)).astype(float)
Y = X[:, 0] * np.array([1.0, -1.0, 3.0])[LABEL] + RNG.normal(size=1200)
WITH_HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)

SHARED = {
    "n_components": ({}, {"n_components": 2}),
    "tol": ({}, {"tol": 1e-9}),
    "max_iter": ({}, {"max_iter": 1}),
    "n_init": ({"n_init": 1, "max_iter": 2}, {"n_init": 6, "max_iter": 2}),
    "random_state": ({"max_iter": 1}, {"max_iter": 1, "random_state": 1}),
    "warm_start": ({"max_iter": 2}, {"max_iter": 2, "warm_start": True}),
    "verbose": ({}, {"verbose": 1}),
    "method": ({"max_iter": 2}, {"max_iter": 2, "method": "sem-vr"}),
}
OF_BOTH = {
    "init_params": ({"max_iter": 1}, {"max_iter": 1, "init_params": "random"}),
    "weights_init": ({"max_iter": 1}, {"max_iter": 1, "weights_init": [0.9, 0.05, 0.05]}),
    "device": ({}, {"device": "tpu"}),
}
"""Values that are refused show that a parameter is read."""
NEW = {"init_params": "random_from_data", "max_iter": 2}
EFFECTS = {
    swiftem.GaussianMixture: SHARED | OF_BOTH | {
        "n_init": (NEW, NEW | {"n_init": 6}),  # a race of more candidates has the same winner here
        "covariance_type": ({}, {"covariance_type": "tied"}),
        "reg_covar": ({}, {"reg_covar": 1.0}),
        "means_init": ({"max_iter": 1}, {"max_iter": 1, "means_init": X[:3]}),
        "precisions_init": ({"max_iter": 1}, {"max_iter": 1, "precisions_init": [9.0 * np.eye(2)] * 3}),
        "verbose_interval": ({"verbose": 1}, {"verbose": 1, "verbose_interval": 1}),
        "prior": ({}, {"prior": models.NormalInverseWishart(99.0, 9.0)}),
        "missing": ({}, {"missing": "ignore"}),
    },
    swiftem.Mixture: SHARED | OF_BOTH | {
        "n_init": (NEW, NEW | {"n_init": 6}),
        "family": ({}, {"family": "gaussian"}),
        "concentration": ({}, {"concentration": 90.0}),
        "smoothing": ({}, {"smoothing": 99.0}),
        "params_init": ({"max_iter": 1}, {"max_iter": 1, "params_init": {"rates": COUNTS[:3] + 1.0}}),
        "missing": ({}, {"missing": "ignore"}),
    },
    swiftem.RegressionMixture: SHARED | {
        "family": ({}, {"family": "poisson"}),
        "fit_intercept": ({}, {"fit_intercept": False}),
        "smoothing": ({}, {"smoothing": 99.0}),
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", EFFECTS, ids=lambda kind: kind.__name__)
def test_all_parameters_are_here(kind):
    assert set(EFFECTS[kind]) == set(inspect.signature(kind).parameters) - {"_"}


CASES = [(kind, name) for kind, effects in EFFECTS.items() for name in effects]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::swiftem.mixture.starts.collapsed_components.SpuriousComponentWarning")
@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind.__name__}-{name}" for kind, name in CASES])
def test_a_parameter_changes_something(kind, name, tmp_path, monkeypatch, capsys):
    found = []
    for number, options in enumerate(EFFECTS[kind][name]):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        found.append([*fits(kind, name, options), capsys.readouterr().out, len(list(folder.rglob("*")))])
    assert difference(*found, 0.0)


def fits(kind, name, options):
    """Return the numbers of two fits of one estimator, or the sentence that refuses them."""
    given = {"n_components": 3, "random_state": 0} | options
    if kind is swiftem.Mixture:
        given = {"family": "poisson"} | given
    rows = COUNTS if kind is swiftem.Mixture else X
    rows = WITH_HOLES if name == "missing" else rows
    if kind is swiftem.Mixture and name == "missing":
        rows = np.where(np.isnan(WITH_HOLES), np.nan, COUNTS)
    data = (
        (rows, np.abs(Y.round()) if name == "family" else Y) if kind is swiftem.RegressionMixture else (rows,)
    )
    try:
        mixture = kind(**given).fit(*data)
        first = fitted(mixture)
        return [first, fitted(mixture.fit(*data)) if name == "warm_start" else None]
    except (ValueError, FileNotFoundError) as refused:
        return [str(refused), None]
