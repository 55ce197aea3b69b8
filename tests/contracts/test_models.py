"""Every registered model passes the contract tests."""

import numpy as np
import pytest
import scipy.sparse as sp

from swiftem import models
from swiftem.data import TokenSource
from swiftem.testing import check_model

RNG = np.random.default_rng(5)
POINTS = RNG.normal(size=(41, 3)) * 2
COUNTS = sp.csr_array(RNG.poisson(0.6, size=(12, 15)))

CASES = {
    "gaussian-mixture": [
        (models.GaussianMixtureModel(n_components=3), POINTS),
        (models.GaussianMixtureModel(n_components=1), POINTS[:1]),
        (models.GaussianMixtureModel(n_components=2, delta=0.5, epsilon=0.1), POINTS[:, 0]),
        (models.GaussianMixtureModel(n_components=2, known_weights=[0.2, 0.8]), POINTS[:, :1]),
        (models.GaussianMixtureModel(n_components=2), np.asfortranarray(POINTS).astype(np.float32)),
    ],
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


def test_every_registered_model_has_cases():
    assert CASES.keys() == models.MODELS.keys()
    for name, kind in models.MODELS.items():
        assert all(type(model) is kind for model, _ in CASES[name])
