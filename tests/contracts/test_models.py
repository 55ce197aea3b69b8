"""Every registered model passes the contract tests."""

import gate_cases
import numpy as np
import pytest
import scipy.sparse as sp

from swiftem import models
from swiftem.data import TokenSource
from swiftem.mixture.families import FAMILIES, read_family
from swiftem.testing import check_family, check_model

RNG = np.random.default_rng(5)
POINTS = RNG.normal(size=(41, 3)) * 2
FAMILY_ROWS = {name: gate_cases.rows_of(name)[:41] for name in FAMILIES}
FAMILY_ROWS["binomial"] = RNG.binomial(12, np.repeat([[0.2], [0.7]], [20, 21], axis=0), (41, 3)) * 1.0
"""Rows for each family of the library."""
COUNTS = sp.csr_array(RNG.poisson(0.6, size=(12, 15)))


def gaussians(kind):
    """Cases of a kind of covariance: without and with priors, one row, one column, known weights."""
    prior = models.NormalInverseWishart(degrees_of_freedom=5, scale=0.5, mean_precision=0.3)
    matrix = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.7]])
    off_centre = models.NormalInverseWishart(4.0, matrix, mean_precision=2.0, mean=[1.0, 0.0, -3.0])
    scale_only = models.NormalInverseWishart(4.0, [0.5, 1.0, 2.0])
    return [
        (models.GaussianMixtureModel(2, covariance=kind), POINTS + 100.0),
        (models.GaussianMixtureModel(3, covariance=kind, prior=prior, concentration=1.5), POINTS),
        (models.GaussianMixtureModel(3, covariance=kind, prior=off_centre, epsilon=0.01), POINTS),
        (models.GaussianMixtureModel(3, covariance=kind, prior=scale_only), POINTS),
        (models.GaussianMixtureModel(1, covariance=kind, prior=prior), POINTS[:1]),
        (models.GaussianMixtureModel(2, covariance=kind, prior=prior, epsilon=0.1), POINTS[:, 0]),
        (
            models.GaussianMixtureModel(2, covariance=kind, prior=prior, known_weights=[0.2, 0.8]),
            np.asfortranarray(POINTS).astype(np.float32),
        ),
    ]


def of_family(name):
    """Cases of a family: likelihood alone, priors, one column, few rows."""
    rows = FAMILY_ROWS[name]
    column = np.sign(rows[:, 0]) if name == "von-mises-fisher" else rows[:, 0]
    return [
        (models.MixtureModel(3, name), rows),
        (models.MixtureModel(2, name, smoothing=2.0, concentration=1.5), rows.astype(np.float32)),
        (models.MixtureModel(2, name, smoothing=0.5), column),
        (models.MixtureModel(1, name, smoothing=1.0), rows[:3]),
    ]


CASES = {
    "gaussian-mixture": [
        (models.GaussianMixtureModel(n_components=3), POINTS),
        (models.GaussianMixtureModel(n_components=1), POINTS[:1]),
        (models.GaussianMixtureModel(n_components=2, delta=0.5, epsilon=0.1), POINTS[:, 0]),
        (models.GaussianMixtureModel(n_components=2, known_weights=[0.2, 0.8]), POINTS[:, :1]),
        (models.GaussianMixtureModel(n_components=2), np.asfortranarray(POINTS).astype(np.float32)),
        *(case for kind in ("full", "tied", "diag", "spherical") for case in gaussians(kind)),
    ],
    "mixture": [case for name in FAMILIES for case in of_family(name)],
    "plsa": [
        (models.PLSAModel(n_topics=3, alpha=1e-3, beta=1e-3), COUNTS),
        (models.PLSAModel(n_topics=2), COUNTS * 0.5),
        (models.PLSAModel(n_topics=1), COUNTS),
        (models.PLSAModel(n_topics=2, alpha=0.01), (np.array([0, 0, 2, 2, 3]), np.array([1, 0, 1, 4, 2]))),
        (models.PLSAModel(n_topics=2), TokenSource([0, 1, 1], [0, 1, 1], n_documents=4, n_words=5)),
    ],
}


@pytest.mark.parametrize(
    ("model", "data"),
    [case for cases in CASES.values() for case in cases],
    ids=[f"{name}-{i}" for name, cases in CASES.items() for i in range(len(cases))],
)
def test_contract(model, data):
    check_model(model, data)


@pytest.mark.parametrize("name", FAMILIES)
def test_contract_of_a_family(name):
    check_family(read_family(name), FAMILY_ROWS[name])


def test_every_registered_model_has_cases():
    assert CASES.keys() == models.MODELS.keys()
    for name, kind in models.MODELS.items():
        assert all(type(model) is kind for model, _ in CASES[name])
