"""The surrogate majorises the loss, touches it, and incremental EM never increases it."""

from itertools import pairwise

import numpy as np
import pytest

import swiftem
from paper import theory
from paper.tests.theory_problems import CASES, central, random_s
from paper.theory.family import family_of
from swiftem import methods, models

cases = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))


def at(case, seed):
    """Return θ, its posteriors (n, R) and losses (n,), at the M-step of random statistics."""
    family, source = family_of(case.model, case.data)
    theta = family.theta(random_s(case, seed))
    rows, log_likelihood = family.bound.posterior(source.take(np.arange(source.n)), theta)
    return theta, rows, -log_likelihood


@cases
def test_it_touches(case):
    theta, rows, loss = at(case, 0)
    np.testing.assert_allclose(theory.surrogate(case.model, case.data, theta, rows), loss, rtol=1e-10)
    assert theory.mean_surrogate(case.model, case.data, theta, rows) == pytest.approx(
        swiftem.objective(case.model, case.data, theta), rel=1e-10
    )


@cases
@pytest.mark.parametrize("seed", range(4))
def test_it_majorises_by_a_divergence(case, seed):
    theta, rows, loss = at(case, seed)
    _, other, _ = at(case, seed + 10)
    gap = theory.surrogate(case.model, case.data, theta, other) - loss
    divergence = (other * np.log(other / rows)).sum(axis=1)
    np.testing.assert_allclose(gap, divergence, rtol=1e-8, atol=1e-12)
    assert gap.min() >= 0
    assert gap.max() > 1e-4


@cases
@pytest.mark.parametrize("seed", range(2))
def test_lemma_lips_theta_gradient_of_the_gap(case, seed):
    """∇e_i(θ; θ') = J_φ(θ)ᵀ (s̄_i(θ) − s̄_i(θ')): the sign that the paper has the other way."""
    family, source = family_of(case.model, case.data)
    theta, rows, _ = at(case, seed)
    _, other, _ = at(case, seed + 10)
    batch = source.take(np.arange(source.n))

    def gap(vector):
        here = family.from_vector(vector)
        return theory.surrogate(case.model, case.data, here, other) + family.bound.posterior(batch, here)[1]

    slope = central(gap, family.vector(theta)).T
    each = family.each_statistics(batch, rows) - family.each_statistics(batch, other)
    np.testing.assert_allclose(each @ family.jacobian_phi(theta), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["two", "three", "topics"])
@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_incremental_em_never_increases_it(name, kernels):
    """At every single iteration, the memory as it was then."""
    case = CASES[name]
    result = swiftem.run(case.model, case.data, methods.IncrementalEM(), n_iter=0, seed=2, kernels=kernels)
    values = []
    for _ in range(150):
        memory = result.state.method.memory
        values.append(theory.mean_surrogate(case.model, case.data, result.theta, memory))
        assert values[-1] >= swiftem.objective(case.model, case.data, result.theta) - 1e-12
        result = swiftem.run(
            case.model, case.data, methods.IncrementalEM(), n_iter=1, theta0=result.theta, s0=result.s,
            state=result.state, kernels=kernels,
        )  # fmt: skip
    for before, after in pairwise(values):
        assert after <= before + 1e-13 * abs(before)
    assert values[-1] < values[0] - 1e-4


def test_rows_must_be_those_of_the_samples():
    model = models.GaussianMixtureModel(2)
    with pytest.raises(ValueError, match=r"^rows must have shape \(3, 2\)"):
        theory.surrogate(model, [0.0, 1.0, 2.0], model.theta(means=[[0.0], [1.0]]), np.ones((2, 2)))
