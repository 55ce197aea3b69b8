"""Mixtures with unit variances: samples at which densities vanish, and components of weight zero."""

import helpers
import numpy as np
import pytest
from helpers import assert_close

import swiftem
from swiftem import methods, models

every_method = pytest.mark.parametrize("name", helpers.STOCHASTIC)


def both(model, y, method, **options):
    return [swiftem.run(model, y, method, kernels=kernels, **options) for kernels in ("auto", "reference")]


def assert_same(compiled, plain):
    assert (compiled.rejected, compiled.passes) == (plain.rejected, plain.passes)
    assert_close(compiled.s, plain.s)
    assert_close(compiled.theta.means, plain.theta.means)
    assert_close(compiled.theta.weights, plain.theta.weights)


@every_method
@pytest.mark.parametrize("b", [1, 3])
def test_a_component_of_weight_zero_is_nearest_to_a_far_sample(name, b):
    y = np.array([0.0, 0.5, 1000.0, 1.0])
    model = models.GaussianMixtureModel(2)
    theta0 = model.theta(weights=[1.0, 0.0], means=[[0.0], [1000.0]])
    draws = np.full((1, b), 2)
    method = helpers.make_method(name, step_size=0.5, batch_size=b)
    compiled, plain = both(
        model, y, method, theta0=theta0, n_iter=1, draws=(draws, draws) if name == "fiem" else draws
    )
    assert_same(compiled, plain)
    assert compiled.theta.means[0] > 100


@pytest.mark.parametrize("centre", [0.0, 1e4], ids=["near", "far"])
def test_a_component_of_weight_zero_has_no_part_in_a_pass(centre):
    """Neither where squares are expanded nor where they are not."""
    y = centre * np.array([[-1.0], [1.0], [0.0]]) + np.array([[0.0], [0.0], [30.0]])
    model = models.GaussianMixtureModel(2, epsilon=0.0)
    theta = model.theta(weights=[1.0, 0.0], means=[[0.0], [30.0]])
    first = swiftem.run(model, y, methods.IncrementalEM(), theta0=theta, n_iter=0)
    np.testing.assert_array_equal(first.state.method.memory, [[1.0, 0.0]] * 3)
    expected = 0.5 * (y**2).mean() + 0.5 * np.log(2 * np.pi) + model.bind(first_source(y)).penalty(theta)
    assert swiftem.objective(model, y, theta) == pytest.approx(expected, rel=1e-12)


def first_source(y):
    from swiftem.data import ArraySource

    return ArraySource(y)


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
    assert_same(compiled, plain)
    assert compiled.theta.means.max() > 40
