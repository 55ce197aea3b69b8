import dense
import helpers
import numpy as np
import pytest
from helpers import assert_close

import swiftem
from swiftem import methods, models

MIXTURES = {
    "plain": {"d": 1},
    "d = 3": {"d": 3, "M": 3},
    "known weights": {"known_weights": (0.3, 0.7)},
    "sample weights": {"d": 2, "sample_weight": np.random.default_rng(0).exponential(size=40)},
    "no penalty": {"delta": 0.0, "epsilon": 0.0},
    "large penalty": {"delta": 2.0, "epsilon": 3.0},
}


@helpers.parametrize_cases(MIXTURES)
def test_mixture(case):
    problem = helpers.mixture(**case)
    model = problem.model
    value = swiftem.objective(model, problem.data, problem.theta0, sample_weight=problem.sample_weight)
    expected = dense.gmm_objective(
        problem.data.reshape(40, -1), *problem.theta0, delta=model.delta, epsilon=model.epsilon,
        known_weights=model.known_weights, sample_weight=problem.sample_weight,
    )  # fmt: skip
    assert_close(value, expected)


@pytest.mark.parametrize(("alpha", "beta"), [(1e-3, 1e-2), (0.0, 0.0), (0.5, 2.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_plsa(alpha, beta, weighted):
    problem = helpers.topics(alpha=alpha, beta=beta)
    documents, words = helpers.tokens_of(problem.data.toarray())
    weight = np.random.default_rng(0).exponential(size=4) if weighted else np.ones(4)
    value = swiftem.objective(
        problem.model, problem.data, problem.theta0, sample_weight=weight if weighted else None
    )
    expected = dense.plsa_objective(
        documents, words, *problem.theta0[:2], alpha=alpha, beta=beta, sample_weight=weight[documents]
    )
    assert_close(value, expected)


def test_plsa_objective_is_that_of_the_reported_topics():
    """Negative statistics make the E-step's topics differ from the reported ones."""
    problem = helpers.topics(60, D=5, V=8, K=3)
    result = problem.run(methods.FastIncrementalEM(step_size=0.2), n_iter=300, seed=0)
    assert (result.theta.topic_scale != 1).any()
    documents, words = helpers.tokens_of(problem.data.toarray())
    expected = dense.plsa_objective(documents, words, *result.theta[:2], alpha=1e-3, beta=1e-3)
    assert_close(swiftem.objective(problem.model, problem.data, result.theta), expected)


def test_more_samples_than_a_block():
    problem = helpers.mixture(9_001)
    expected = dense.gmm_objective(problem.data[:, None], *problem.theta0, delta=1e-3, epsilon=1e-3)
    assert_close(swiftem.objective(problem.model, problem.data, problem.theta0), expected)


def test_is_infinite_on_the_boundary():
    """Without warnings: they are errors here."""
    model = models.GaussianMixtureModel(2)
    assert swiftem.objective(model, [0.0, 1.0], model.theta(weights=[1, 0], means=[[0.0], [1.0]])) == np.inf
    problem = helpers.topics(counts=np.array([[1, 2]]))
    theta = problem.model.theta(doc_topic=[[1, 0]], topic_word=[[0.5, 0.5], [0.5, 0.5]])
    assert swiftem.objective(problem.model, problem.data, theta) == np.inf
    impossible = problem.model.theta(doc_topic=[[0.5, 0.5]], topic_word=[[1, 0], [1, 0]])
    free = models.PLSAModel(2, alpha=0.0, beta=0.0)
    assert swiftem.objective(free, problem.data, impossible) == np.inf


def test_zero_weights_are_finite_without_a_penalty():
    model = models.GaussianMixtureModel(2, epsilon=0.0)
    theta = model.theta(weights=[1, 0], means=[[0.0], [1.0]])
    assert np.isfinite(swiftem.objective(model, [0.0, 1.0], theta))


def test_theta_is_checked():
    model = models.GaussianMixtureModel(2)
    with pytest.raises(ValueError, match=r"means .*1"):
        swiftem.objective(model, [0.0, 1.0], model.theta(means=[[0.0, 1.0], [1.0, 2.0]]))
