"""Where default fits of small data end: the same model and seed end in the same place, and stay there."""

import numpy as np
import pytest

import swiftem


def skewed(n, seed=0):
    """Return rows with long tails and a rare component, of which one column often has its least value."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, 4)) * [0.3, 0.8, 1.2, 0.5])
    X[rng.random(n) < 0.03] += 5.0
    X[rng.random(n) < 0.3, 2] = 0.0
    return (X - X.mean(axis=0)) / X.std(axis=0)


def classes(family, n, seed):
    """Return rows of four classes."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(0.7, 0.7, size=(4, 5))[rng.integers(4, size=n)]
    return rng.binomial(1 if family == "bernoulli" else 3, chances).astype(float)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n", [500, 2500])
def test_columns_of_numbers_end_no_lower_than_a_diagonal_gaussian_mixture(n):
    X = skewed(n)
    gaps = []
    for seed in range(3):
        theirs = swiftem.GaussianMixture(3, covariance_type="diag", random_state=seed).fit(X)
        start = {"means": theirs.means_, "variances": theirs.covariances_}
        options = {"family": "gaussian", "random_state": seed}
        from_theirs = swiftem.Mixture(
            3, weights_init=theirs.weights_ / theirs.weights_.sum(), params_init=start, **options
        )
        gaps.append(swiftem.Mixture(3, **options).fit(X).lower_bound_ - from_theirs.fit(X).lower_bound_)
    assert np.mean(gaps) > -8e-3


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("family", ["bernoulli", "categorical"])
def test_a_converged_fit_of_few_answers_gains_little_by_further_passes(family):
    for seed in range(4):
        X = classes(family, 200 + 100 * seed, seed)
        mixture = swiftem.Mixture(4, family=family, random_state=seed).fit(X)
        assert mixture.converged_
        before = mixture.log_likelihood_
        mixture.set_params(warm_start=True, method="em", tol=0.0, max_iter=1000).fit(X)
        assert mixture.log_likelihood_ - before <= 8 * 1e-3


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("family", ["full", "poisson"])
def test_a_selection_ends_no_lower_than_the_fit_of_the_same_seed(family):
    X = np.round(4.0 * np.abs(skewed(400)))
    for seed in range(3):
        if family == "full":
            fit = swiftem.GaussianMixture(3, random_state=seed).fit(X)
            found = swiftem.select(X, 3, "full", random_state=seed)
        else:
            fit = swiftem.Mixture(3, family=family, random_state=seed).fit(X)
            found = swiftem.select(X, 3, family=family, random_state=seed)
        assert found.best.score(X) >= fit.score(X) - 1e-4


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("start", ["k-means++", "random_from_data"])
def test_stochastic_methods_end_where_em_does_from_components_of_one_row(start):
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=4000)
    X = 2.0 * rng.normal(size=(6, 3))[labels] + rng.normal(size=(4000, 3))

    def scores(method):
        options = {"init_params": start, "method": method, "covariance_type": "diag"}
        return [swiftem.GaussianMixture(6, random_state=seed, **options).fit(X).score(X) for seed in range(4)]

    assert np.mean(scores("sem-vr")) > np.mean(scores("em")) - 0.02
