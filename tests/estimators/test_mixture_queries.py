"""Marginals and conditionals against the joint density, and scikit-learn's form."""

import numpy as np
import pandas as pd
import pytest

import swiftem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)) @ RNG.normal(size=(3, 3)) + 3.0 * RNG.integers(2, size=(400, 1))


@pytest.fixture(scope="module", params=["full", "tied", "diag", "spherical"])
def mixture(request):
    return swiftem.GaussianMixture(2, covariance_type=request.param, random_state=0, tol=1e-2).fit(X)


def test_marginal_is_the_integral_of_the_joint(mixture):
    grid = np.linspace(-60.0, 60.0, 20_001)
    point = np.column_stack([np.full_like(grid, 0.3), np.full_like(grid, -0.4), grid])
    integral = np.exp(mixture.score_samples(point)).sum() * (grid[1] - grid[0])
    found = np.exp(mixture.marginal([0, 1]).score_samples([[0.3, -0.4]]))[0]
    assert found == pytest.approx(integral, rel=1e-6)


def test_conditional_is_joint_over_marginal(mixture):
    given = mixture.condition([2, 0], [0.5, -0.2])
    joint = mixture.score_samples([[-0.2, 1.1, 0.5]])[0]
    marginal = mixture.marginal([0, 2]).score_samples([[-0.2, 0.5]])[0]
    assert given.score_samples([[1.1]])[0] == pytest.approx(joint - marginal, rel=1e-9)


def test_scikit_learns_form_predicts_the_same(mixture):
    theirs = mixture.to_sklearn()
    np.testing.assert_allclose(theirs.score_samples(X), mixture.score_samples(X), rtol=1e-9)
    np.testing.assert_array_equal(theirs.predict(X), mixture.predict(X))


@pytest.mark.parametrize("columns", [[], [3], [0, 0], [0.5], "a"])
def test_columns_that_are_none(mixture, columns):
    with pytest.raises(ValueError, match="columns"):
        mixture.marginal(columns)


def test_columns_by_name_and_from_the_end(mixture):
    named = swiftem.GaussianMixture(2, covariance_type=mixture.covariance_type, random_state=0, tol=1e-2).fit(
        pd.DataFrame(X, columns=["a", "b", "c"])
    )
    for columns in (["c", "a"], [-1, -3], [2, -3]):
        marginal = named.marginal(columns)
        assert list(marginal.feature_names_in_) == ["c", "a"]
        assert np.array_equal(marginal.means_, named.means_[:, [2, 0]])
        given = named.condition(columns, [0.5, -0.2])
        assert list(given.feature_names_in_) == ["b"]
        assert np.array_equal(given.means_, named.condition([2, 0], [0.5, -0.2]).means_)
    for columns in (["a", "d"], [-4], [0, -3]):
        with pytest.raises(ValueError, match="columns must be"):
            named.marginal(columns)
        with pytest.raises(ValueError, match="columns must be"):
            named.condition(columns, np.zeros(len(columns)))
