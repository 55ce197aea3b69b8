"""Mixtures with unit variances: samples at which densities vanish, and components of weight zero."""

import helpers
import numpy as np
import pytest
from helpers import assert_same_to_rounding, both

import swiftem
from swiftem import methods, models

every_method = pytest.mark.parametrize("name", helpers.COMPILED)


@every_method
@pytest.mark.parametrize("b", [1, 3])
def test_a_component_of_weight_zero_is_nearest_to_a_far_sample(name, b):
    y = np.array([0.0, 0.5, 1000.0, 1.0])
    model = models.GaussianMixtureModel(2)
    theta0 = model.theta(weights=[1.0, 0.0], means=[[0.0], [1000.0]])
    draws = np.full((1, b), 2)
    method = helpers.make_method(name, step_size=0.5, batch_size=b)
    compiled, plain = both(
        model, y, method, theta0=theta0, n_iter=1, draws=(draws, draws) if name in helpers.IN_PAIRS else draws
    )
    assert_same_to_rounding(compiled, plain)
    assert compiled.theta.means[0] > 100


@pytest.mark.parametrize("centre", [0.0, 1e4], ids=["near", "far"])
def test_a_component_of_weight_zero_has_no_part_in_a_pass(centre):
    """Neither where squares are expanded nor where they are not."""
    y = centre * np.array([[-1.0], [1.0], [0.0]]) + np.array([[0.0], [0.0], [30.0]])
    model = models.GaussianMixtureModel(2, epsilon=0.0)
    theta = model.theta(weights=[1.0, 0.0], means=[[0.0], [30.0]])
    first = swiftem.run(model, y, methods.IncrementalEM(), theta0=theta, n_iter=0)
    np.testing.assert_array_equal(first.state.method.memory, [[1.0, 0.0]] * 3)
    penalty = 0.5 * model.delta * 30.0**2
    expected = 0.5 * (y**2).mean() + 0.5 * np.log(2 * np.pi) + penalty
    assert swiftem.objective(model, y, theta) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("b", [1, 3])
def test_samples_that_are_far_from_the_anchor_alone(b):
    """A full pass, which knows how far they are, moves a component there; only then are they drawn."""
    y = np.concatenate([np.linspace(-1, 1, 10), np.linspace(59, 61, 10)])
    model = models.GaussianMixtureModel(2)
    theta0 = model.theta(means=[[0.0], [1.0]])
    draws = np.repeat([[0], [12], [3], [15], [19], [7], [12]], b, axis=1)
    method = methods.VarianceReducedEM(
        step_size=lambda k: 1.0 if k == 1 else 0.1, batch_size=b, epoch_length=99
    )
    compiled, plain = both(model, y, method, theta0=theta0, n_iter=len(draws), draws=draws)
    assert_same_to_rounding(compiled, plain)
    assert compiled.theta.means.max() > 40


@every_method
def test_densities_with_few_digits(name):
    """At 38 standard deviations densities are not yet zero, and lack digits that responsibilities need."""
    y = np.array([0.0, 38.0, 37.6, 38.3, 0.5])
    model = models.GaussianMixtureModel(2)
    theta0 = model.theta(means=[[-0.01], [0.01]])
    method = helpers.make_method(name, step_size=1e-9, batch_size=1, epoch_length=99)
    draws = np.array([1, 2, 3])
    compiled, plain = both(
        model,
        y,
        method,
        theta0=theta0,
        n_iter=3,
        draws=(draws, draws[::-1]) if name in helpers.IN_PAIRS else draws,
    )
    assert_same_to_rounding(compiled, plain)


@every_method
def test_a_run_that_met_a_far_sample_goes_on_to_the_same_bits(name):
    """From then on other loops compute, which round differently: the state says so."""
    rng = np.random.default_rng(0)
    y = np.append(rng.normal(size=60), 200.0)
    model = models.GaussianMixtureModel(3, epsilon=0.1)
    theta0 = model.theta(means=[[-1.0], [0.0], [1.0]])
    draws = np.append([60, 3], rng.integers(60, size=98))
    method = helpers.make_method(name, step_size=0.03, epoch_length=200)

    def run(begin, end, **start):
        part = draws[begin:end]
        drawn = (part, draws[::-1][begin:end]) if name in helpers.IN_PAIRS else part
        return swiftem.run(model, y, method, n_iter=end - begin, draws=drawn, **{"theta0": theta0} | start)

    whole, first = run(0, 100), run(0, 40)
    rest = run(40, 100, theta0=first.theta, s0=first.s, state=first.state)
    plain = first.state._replace(loop=None)
    other = run(40, 100, theta0=first.theta, s0=first.s, state=plain)
    assert not np.array_equal(other.s, whole.s)  # or it would not matter which loops compute
    helpers.assert_identical(
        (rest.theta, rest.s, rest.state.method), (whole.theta, whole.s, whole.state.method)
    )
