"""Bad parameters and statistics to start from are refused as in test_bad_input."""

from typing import Any, NamedTuple

import helpers
import numpy as np
import pytest
from helpers import assert_refused

import swiftem
from swiftem import methods, models

NAN = np.nan
MIXTURE, TOPICS = helpers.mixture(20, d=2), helpers.topics(20, D=3, V=4)
GMM, PLSA = MIXTURE.model, TOPICS.model


def mixture(method=None, **options):
    """Run a mixture, right but for what is given."""
    return swiftem.run(GMM, MIXTURE.data, method or methods.EM(), n_iter=3, seed=0, **options)


def topics(**options):
    """Run pLSA, right but for what is given."""
    return swiftem.run(PLSA, TOPICS.data, methods.EM(), n_iter=3, seed=0, **options)


def gmm_theta(weights=(0.5, 0.5), means=((0.0, 1.0), (1.0, 0.0))):
    """Return parameters as they are, unchecked."""
    return models.GaussianMixtureTheta(np.array(weights), np.array(means))


def plsa_theta(**changed):
    return TOPICS.theta0._replace(**{name: np.array(value) for name, value in changed.items()})


def uniform(*shape):
    return np.full(shape, 1 / shape[-1])


class NotATheta(NamedTuple):
    weights: Any
    means: Any


MODELS = {
    "covariance": (lambda: models.GaussianMixtureModel(2, covariance="half"), "covariance 'unit'"),
    "no components": (lambda: models.GaussianMixtureModel(0), "n_components at least 1"),
    "components 2.0": (lambda: models.GaussianMixtureModel(2.0), "n_components integer"),
    "delta": (lambda: models.GaussianMixtureModel(2, delta=-1e-3), "delta at least 0"),
    "epsilon": (lambda: models.GaussianMixtureModel(2, epsilon=NAN), "epsilon at least 0"),
    "known weights' number": (
        lambda: models.GaussianMixtureModel(2, known_weights=[1.0]),
        "known_weights shape",
    ),
    "known weights' sum": (
        lambda: models.GaussianMixtureModel(2, known_weights=[0.2, 0.9]),
        "known_weights sum to 1, got a sum of 1.1",
    ),
    "no topics": (lambda: models.PLSAModel(0), "n_topics at least 1"),
    "alpha": (lambda: models.PLSAModel(2, alpha=-1), "alpha at least 0"),
    "beta": (lambda: models.PLSAModel(2, beta="a"), "beta number"),
    "weights' number": (lambda: GMM.theta(weights=[1.0], means=[[0.0], [1.0]]), r"weights shape \(2,?\)"),
    "weights' sum": (lambda: GMM.theta(weights=[0.5, 0.6], means=[[0.0], [1.0]]), "weights sum to 1"),
    "negative weight": (lambda: GMM.theta(weights=[1.5, -0.5], means=[[0.0], [1.0]]), "weights negative"),
    "means' shape": (lambda: GMM.theta(means=[0.0, 1.0]), r"means shape \(2, any\)"),
    "NaN mean": (lambda: GMM.theta(means=[[0.0], [NAN]]), "means finite"),
    "not the known weights": (
        lambda: models.GaussianMixtureModel(2, known_weights=[0.2, 0.8]).theta(
            weights=[0.5, 0.5], means=[[0], [1]]
        ),
        r"weights the known ones, \(0\.2, 0\.8\)",
    ),
    "doc_topic's shape": (
        lambda: PLSA.theta(doc_topic=uniform(3, 5), topic_word=uniform(2, 4)),
        r"doc_topic shape \(any, 2\)",
    ),
    "doc_topic's sum": (
        lambda: PLSA.theta(doc_topic=np.ones((3, 2)), topic_word=uniform(2, 4)),
        "doc_topic sum to 1",
    ),
    "topic_word's shape": (
        lambda: PLSA.theta(doc_topic=uniform(3, 2), topic_word=uniform(3, 4)),
        r"topic_word shape \(2, any\)",
    ),
}

START = {
    "theta0, shape of weights": (lambda: mixture(theta0=gmm_theta(weights=[1.0])), r"theta0 shape \(2,?\)"),
    "theta0, shape of means": (lambda: mixture(theta0=gmm_theta(means=[0.0, 1.0])), "theta0 shape"),
    "theta0, number of means": (lambda: mixture(theta0=gmm_theta(means=np.ones((3, 2)))), "theta0 shape"),
    "theta0, other dimension": (
        lambda: mixture(theta0=gmm_theta(means=[[0.0], [1.0]])),
        "theta0 as many columns as data, 2, got 1",
    ),
    "theta0, sum of weights": (lambda: mixture(theta0=gmm_theta(weights=[0.5, 0.6])), "theta0 sum to 1"),
    "theta0, negative weight": (lambda: mixture(theta0=gmm_theta(weights=[1.5, -0.5])), "theta0 negative"),
    "theta0, NaN weight": (lambda: mixture(theta0=gmm_theta(weights=[NAN, 0.5])), "theta0 finite"),
    "theta0, NaN mean": (lambda: mixture(theta0=gmm_theta(means=[[0.0, 1.0], [NAN, 0.0]])), "theta0 finite"),
    "theta0, other type": (
        lambda: mixture(theta0=NotATheta([0.5, 0.5], np.ones((2, 2)))),
        r"theta0 made by model\.theta",
    ),
    "theta0, other model": (lambda: mixture(theta0=TOPICS.theta0), r"theta0 made by model\.theta"),
    "theta0, other model of pLSA": (lambda: topics(theta0=gmm_theta()), r"theta0 made by model\.theta"),
    "theta0, number of documents": (
        lambda: topics(theta0=plsa_theta(doc_topic=uniform(4, 2))),
        r"theta0 shape \(3, 2\)",
    ),
    "theta0, number of words": (
        lambda: topics(theta0=plsa_theta(topic_word=uniform(2, 5))),
        r"theta0 shape \(2, 4\)",
    ),
    "theta0, number of topics": (lambda: topics(theta0=plsa_theta(doc_topic=uniform(3, 3))), "theta0 shape"),
    "theta0, sum of topics": (
        lambda: topics(theta0=plsa_theta(doc_topic=np.ones((3, 2)))),
        "theta0 sum to 1",
    ),
    "theta0, negative probability": (
        lambda: topics(theta0=plsa_theta(topic_word=[[1.5, -0.5, 0, 0], [1, 0, 0, 0]])),
        "theta0 negative",
    ),
    "theta0, NaN probability": (
        lambda: topics(theta0=plsa_theta(topic_word=[[NAN, 0.5, 0, 0], [1, 0, 0, 0]])),
        "theta0 finite",
    ),
    "s0, size": (lambda: mixture(s0=np.ones(5)), r"s0 shape \(6,\)"),
    "s0, size beside theta0": (lambda: mixture(s0=np.ones(5), theta0=MIXTURE.theta0), r"s0 shape \(6,\)"),
    "s0, other dimension": (lambda: mixture(s0=np.ones(4)), r"s0 shape \(6,\)"),
    "s0, size of pLSA": (lambda: topics(s0=np.ones(13)), r"s0 shape \(14,\)"),
    "s0, two dimensions": (lambda: mixture(s0=np.ones((2, 3))), "s0 shape"),
    "s0, NaN": (lambda: mixture(s0=[0.5, 0.5, NAN, 0, 0, 0]), "s0 finite"),
    "s0, out of the domain": (lambda: mixture(s0=[1.5, -0.5, 0, 0, 0, 0]), "s0 domain"),
    "s0, out of the domain beside theta0": (
        lambda: mixture(methods.OnlineEM(), s0=[1.5, -0.5, 0, 0, 0, 0], theta0=MIXTURE.theta0),
        "s0 domain",
    ),
    "s0, out of the domain of pLSA": (
        lambda: topics(s0=np.r_[np.ones(6), -np.ones(4), np.ones(4)]),
        "s0 domain",
    ),
    "s0, strings": (lambda: mixture(s0=["a"] * 6), "s0 real numbers"),
}


@helpers.parametrize_cases(MODELS | START)
def test_refused_with_a_sentence(case):
    """The first word of what is expected is the argument."""
    attempt, expected = case
    assert_refused(attempt, *expected.split(" ", 1))


def test_size_of_s0_for_a_model_of_ones_own():
    model = models.FunctionModel(
        initial_theta=lambda y, rng: np.zeros(1),
        expected_statistics=lambda y, theta: (y[:, None], -0.5 * (y - theta) ** 2),
        m_step=lambda s: s.copy(),
        penalty=lambda theta: 0.0,
    )
    for method in (methods.OnlineEM(), methods.IncrementalEM()):
        with pytest.raises(ValueError, match="s0"):
            swiftem.run(model, [1.0, 2.0, 3.0], method, n_iter=2, s0=[1.0, 2.0], seed=0)
