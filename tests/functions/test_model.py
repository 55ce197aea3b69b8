"""A user's own model: the mixture, written as a class and as four functions, must be the library's."""

from dataclasses import dataclass

import helpers
import numpy as np
import pytest
from helpers import NAMES, make_method

import swiftem
from swiftem import methods, models, schedules
from swiftem.data import ArraySource

DELTA, EPSILON = 1e-3, 2e-3


def initial_theta(y, rng):
    return np.array([0.5, 0.5]), rng.choice(y, size=2)


def expected_statistics(y, theta):
    weights, means = theta
    joint = weights * np.exp(-0.5 * (y[:, None] - means) ** 2) / np.sqrt(2 * np.pi)
    r = joint / joint.sum(axis=1, keepdims=True)
    return np.hstack([r, r * y[:, None]]), np.log(joint.sum(axis=1))


def m_step(s):
    weights = s[:2] + EPSILON
    return weights / weights.sum(), s[2:] / (s[:2] + DELTA)


def penalty(theta):
    weights, means = theta
    return DELTA / 2 * (means**2).sum() - EPSILON * np.log(weights).sum()


@dataclass(frozen=True)
class OwnMixture(models.ExponentialFamilyModel):
    def initial_theta(self, y, rng):
        return initial_theta(y, rng)

    def expected_statistics(self, y, theta):
        return expected_statistics(y, theta)

    def m_step(self, s):
        return m_step(s)

    def penalty(self, theta):
        return penalty(theta)

    def in_domain(self, s):
        return bool((s[:2] + min(DELTA, EPSILON) > 0).all())


def function_model():
    return models.FunctionModel(
        initial_theta=initial_theta, expected_statistics=expected_statistics, m_step=m_step, penalty=penalty
    )


OWN = {"class": OwnMixture, "functions": function_model}


def own(problem, make):
    """Return the problem with the user's model instead of the library's."""
    return problem._replace(model=make(), theta0=(problem.theta0.weights, problem.theta0.means[:, 0]))


@pytest.mark.parametrize("name", NAMES)
@helpers.parametrize_cases(OWN)
def test_runs_as_the_library_s_own(case, name):
    weight = np.linspace(0.1, 1, 40)
    problem = helpers.mixture(40, delta=DELTA, epsilon=EPSILON, sample_weight=weight)
    method = make_method(name, batch_size=3, step_size=schedules.power(0.2, 0.4))
    expected = problem.run(method, n_iter=100, seed=0, record_every=10)
    result = own(problem, case).run(method, n_iter=100, seed=0, record_every=10)
    assert expected.rejected == 0
    for one, other in zip(result.path, expected.path, strict=True):
        helpers.assert_close(one.s, other.s)
        helpers.assert_close(one.theta[1], other.theta.means[:, 0])
        assert (one.k, one.passes) == (other.k, other.passes)


@helpers.parametrize_cases(OWN)
def test_objective(case):
    problem = helpers.mixture(40, delta=DELTA, epsilon=EPSILON)
    mine = own(problem, case)
    value = swiftem.objective(mine.model, mine.data, mine.theta0)
    assert value == pytest.approx(swiftem.objective(problem.model, problem.data, problem.theta0), rel=1e-12)


def test_domain_of_ones_own():
    problem = helpers.mixture(30, delta=DELTA, epsilon=EPSILON, spread=0.2, seed=1)
    method = methods.FastIncrementalEM(step_size=0.9)
    expected = problem.run(method, n_iter=200, seed=0)
    assert expected.rejected > 0
    assert own(problem, OwnMixture).run(method, n_iter=200, seed=0).rejected == expected.rejected


def test_default_domain_is_what_is_finite():
    model = function_model()
    assert model.in_domain(np.array([-5.0, 1e300]))
    assert not model.in_domain(np.array([1.0, np.inf]))
    assert not model.in_domain(np.array([np.nan, 1.0]))


@helpers.parametrize_cases(OWN)
def test_initial_theta_is_drawn_from_the_seed(case):
    problem = helpers.mixture(40)._replace(model=case(), theta0=None)
    first, again, other = (problem.run(methods.EM(), n_iter=2, seed=seed).theta[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_initial_theta_sees_a_sample_of_large_data():
    seen = []

    class Seeing(OwnMixture):
        def initial_theta(self, y, rng):
            seen.append(np.array(y))
            return super().initial_theta(y, rng)

    y = np.arange(25_000.0)
    source = ArraySource(y)
    Seeing().bind(source).initial_theta(np.random.default_rng(0))
    Seeing().bind(ArraySource(y[:50])).initial_theta(np.random.default_rng(0))
    assert len(np.unique(seen[0])) == 10_000
    assert seen[0].mean() == pytest.approx(12_500, rel=0.05)
    np.testing.assert_array_equal(seen[1], y[:50])
