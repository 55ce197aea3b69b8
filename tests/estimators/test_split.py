"""Which component is split, and that a split promises no more than it keeps."""

import numpy as np
import pytest
from swiftem.mixture.starts.split import double_component, split_component

import swiftem

KINDS = ("full", "tied", "diag", "spherical")


def made(parts, kind):
    return swiftem.GaussianMixture.from_parameters(*parts, covariance_type=kind)


def clusters(centres, n=400, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(centre, scale, size=(n, len(centre))) for centre in centres])


def fitted(X, kind, count, **parameters):
    return swiftem.GaussianMixture(
        count, covariance_type=kind, random_state=0, method="em", **parameters
    ).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_the_component_that_covers_two_clusters_is_split(kind):
    centres = [[0.0, 0.0], [20.0, 0.0], [20.0, 5.0]]
    X = clusters(centres)
    weights, means, _ = split_component(fitted(X, kind, 2), X)
    assert weights.sum() == pytest.approx(1)
    found = means[np.lexsort((means[:, 1], means[:, 0].round()))]
    np.testing.assert_allclose(found, centres, atol=0.5)
    np.testing.assert_allclose(weights, 1 / 3, atol=0.03)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 10])
def test_the_log_likelihood_rises_at_once(kind, d):
    rng = np.random.default_rng(d)
    X = clusters(4.0 * np.arange(6)[:, None] + rng.normal(size=(6, d)))
    mixture = fitted(X, kind, 1)
    for _ in range(4):  # the bound is that of a fit that has converged
        parts = made(split_component(mixture, X), kind)
        assert parts.score(X) > mixture.score(X)
        mixture = parts.set_params(warm_start=True, method="em", tol=1e-7, max_iter=3000).fit(X)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_heavy_tails_are_split_by_scale(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1)) * np.where(rng.random((3000, 1)) < 0.5, 0.3, 3.0)
    _, means, covariances = split_component(fitted(X, kind, 1), X)
    assert abs(means[0, 0] - means[1, 0]) < 0.5
    assert covariances.max() > 10 * covariances.min()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_count(kind):
    X = clusters([[0.0, 0.0], [20.0, 0.0], [20.0, 5.0], [0.0, 5.0]])
    weight = np.where(X[:, 0] < 10, 1.0, 0.01)  # the pair on the right hardly counts
    by_sides = (X[:, 0] > 10).astype(int)
    mixture = swiftem.GaussianMixture(2, covariance_type=kind, init_params=lambda *_: by_sides)
    mixture.fit(X, sample_weight=weight)
    _, means, _ = split_component(mixture, X, weight)
    left = means[means[:, 0] < 10]
    assert len(left) == 2
    assert np.ptp(left[:, 1]) == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_the_columns_do_not_matter_much(kind):
    if kind == "spherical":
        pytest.skip("round components are of one unit")
    X = clusters([[0.0, 0.0], [20.0, 0.0], [20.0, 5.0]])
    unit = np.array([1e-6, 1e6])
    one = split_component(fitted(X, kind, 2, reg_covar=0), X)
    other = split_component(
        fitted(X * unit, kind, 2, reg_covar=0, init_params=lambda *_: (X[:, 0] > 10).astype(int)), X * unit
    )
    np.testing.assert_allclose(
        np.sort(other[1] / unit, axis=0), np.sort(one[1], axis=0), rtol=1e-3, atol=1e-2
    )


@pytest.mark.filterwarnings("ignore:Components that sit on few")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "X", [np.repeat(np.eye(3), 20, axis=0), np.zeros((30, 2)), np.eye(2)], ids=["three", "one", "two rows"]
)
def test_rows_that_repeat_give_a_mixture(kind, X):
    mixture = fitted(X, kind, 1)
    parts = made(split_component(mixture, X), kind)  # from_parameters refuses what is not a mixture
    assert np.isfinite(parts.score(X))


@pytest.mark.parametrize("kind", KINDS)
def test_doubling_changes_no_density(kind):
    X = clusters([[0.0, 0.0], [3.0, 3.0]])
    mixture = fitted(X, kind, 2)
    np.testing.assert_allclose(
        made(double_component(mixture), kind).score_samples(X), mixture.score_samples(X), rtol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_tail_is_split_off_on_either_side(kind):
    """A few rows above the rest, and the same rows mirrored."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0.0, 1.0, size=(1800, 2)), rng.normal([6.0, 0.0], 1.0, size=(200, 2))])
    above, below = (split_component(fitted(rows, kind, 1), rows) for rows in (X, -X))
    np.testing.assert_allclose(above[0], below[0], rtol=1e-6)
    np.testing.assert_allclose(above[1], -below[1], rtol=1e-6, atol=1e-6)
    assert above[0].min() < 0.25


def test_round_components_count_all_columns():
    """Two clusters eight columns apart shrink the variance of all columns, which pays for the labels."""
    rng = np.random.default_rng(0)
    near, far = np.zeros(8), np.r_[100.0, np.zeros(7)]
    X = np.concatenate(
        [
            rng.normal(place, 1.0, size=(n, 8))
            for place, n in ((near, 900), (near + 6.0 * np.eye(8)[1], 900), (far, 200))
        ]
    )
    labels = (X[:, 0] > 50).astype(int)
    weights, means, _ = split_component(fitted(X, "spherical", 2, init_params=labels), X)
    np.testing.assert_allclose(np.sort(weights), [0.1, 0.45, 0.45], atol=0.03)
    np.testing.assert_allclose(np.sort(means[:, 1]), [0.0, 0.0, 6.0], atol=0.5)
