"""Rows that come in batches: right from the first on, and of little order after some passes."""

import pickle

import numpy as np
import pytest
from mixture_data import KINDS

import swiftem
from swiftem import methods
from swiftem.mixture.online import Reservoir
from swiftem.models import NormalInverseWishart

RNG = np.random.default_rng(1)
LABELS = RNG.choice(3, 1500, p=[0.5, 0.3, 0.2])
X = 3.0 * RNG.normal(size=(3, 2))[LABELS] + RNG.normal(size=(1500, 2))


def streamed(rows, passes=10, **parameters):
    mixture = swiftem.GaussianMixture(3, random_state=0, **parameters)
    for _ in range(passes):
        for batch in np.array_split(rows, 10):
            mixture.partial_fit(batch)
    return mixture


@pytest.mark.parametrize(
    "order", [np.argsort(LABELS, kind="stable"), np.argsort(X[:, 0])], ids=["label", "column"]
)
def test_sorted_rows_do_as_well_as_shuffled_ones(order):
    assert abs(streamed(X[order]).score(X) - streamed(X).score(X)) < 0.01


def test_too_few_rows_at_first_and_few_later():
    mixture = swiftem.GaussianMixture(3, random_state=0)
    with pytest.raises(ValueError, match="Expected n_samples >= n_components"):
        mixture.partial_fit(X[:2])
    mixture.partial_fit(X[:300]).partial_fit(X[300:301])
    assert np.isfinite(mixture.means_).all()


def test_what_is_kept_does_not_grow():
    few, many = (len(pickle.dumps(streamed(np.tile(X, (times, 1)), passes=1))) for times in (4, 12))
    assert many < 1.1 * few


def test_fit_begins_anew():
    mixture = streamed(X[:500], passes=1)
    np.testing.assert_array_equal(
        mixture.fit(X).means_, swiftem.GaussianMixture(3, random_state=0).fit(X).means_
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_prior_counts_once_in_a_stream(kind):
    """Of one component every statistic is exact: batches that repeat must give the fit to all of them."""
    prior = NormalInverseWishart(6.0, 3.0, mean_precision=5.0, mean=[1.0, 2.0], concentration=3.0)
    parameters = dict(covariance_type=kind, prior=prior)
    batch, mixture = X[:40], swiftem.GaussianMixture(1, **parameters)
    for _ in range(3):
        mixture.partial_fit(batch)
    whole = swiftem.GaussianMixture(1, **parameters).fit(np.tile(batch, (3, 1)))
    np.testing.assert_allclose(mixture.covariances_, whole.covariances_, rtol=1e-12)
    np.testing.assert_allclose(mixture.means_, whole.means_, rtol=1e-12)


def test_the_weight_of_a_batch_counts():
    """Also where all rows of the batch have the same weight."""
    early, late = X[:200], X[200:300] + 50.0
    means = []
    for weight in (0.5, 1.5):  # more would bring a look at the sample
        mixture = swiftem.GaussianMixture(1).partial_fit(early)
        means.append(mixture.partial_fit(late, sample_weight=np.full(100, weight)).means_[0, 0])
        after_fit = swiftem.GaussianMixture(1).fit(early, sample_weight=np.full(200, 2.0))
        after_fit.partial_fit(late, sample_weight=np.full(100, 2.0 * weight))
        pooled = (200 * early.mean(axis=0) + 100 * weight * late.mean(axis=0)) / (200 + 100 * weight)
        np.testing.assert_allclose(after_fit.means_[0], pooled, rtol=1e-12)
    gamma = [1.0 - (1.0 - weight / (weight + 200.0)) ** 3 for weight in (50.0, 150.0)]
    here, there = early[:, 0].mean(), late[:, 0].mean()
    np.testing.assert_allclose(means, [here + step * (there - here) for step in gamma])


def test_a_better_place_is_looked_for_by_the_weights_of_the_rows():
    """Ten times as many rows lie at 40, but with hardly any weight: the components belong at 0 and 10."""
    rng = np.random.default_rng(0)
    places = {0.0: (200, 1.0), 10.0: (150, 1.0), 40.0: (1500, 1e-6)}
    rows = [rng.normal(place, 1.0, size=(count, 1)) for place, (count, _) in places.items()]
    weights = [np.full(count, weight) for count, weight in places.values()]
    mixture = swiftem.GaussianMixture(2, random_state=0).partial_fit(rows[0])
    mixture.partial_fit(np.concatenate(rows[1:]), sample_weight=np.concatenate(weights[1:]))
    away = np.abs(np.sort(mixture.means_.ravel()) - [0.0, 10.0]).max()
    assert away > 1.0  # at 200 + 150 there has been no look yet
    mixture.partial_fit(rows[0][:60])
    np.testing.assert_allclose(np.sort(mixture.means_.ravel()), [0.0, 10.0], atol=0.5)


def test_a_batch_without_an_m_step_leaves_the_statistics_as_they_were():
    """One row so far away that rounding leaves no covariance: the stream goes on without it."""
    first, later = X[:300], X[300:500]
    mixture = swiftem.GaussianMixture(2, reg_covar=0.0, random_state=0).partial_fit(first)
    before = mixture.means_.copy()
    mixture.partial_fit([[1e12, 1e12 + 3.0]])
    np.testing.assert_array_equal(mixture.means_, before)
    expected = swiftem.GaussianMixture(2, reg_covar=0.0, random_state=0).partial_fit(first)
    mixture.partial_fit(later)
    np.testing.assert_allclose(mixture.means_, expected.partial_fit(later).means_, atol=0.01)
    assert np.abs(mixture.means_ - before).max() > 0.01


def test_a_look_at_the_sample_does_not_move_by_noise():
    """The look comes at 600 rows: with a hair less weight there is none, and the same parameters."""
    found = []
    for last in (1.0, 1.0 - 1e-9):
        mixture = swiftem.GaussianMixture(3, random_state=0, tol=1e-6, max_iter=300).partial_fit(X[:300])
        mixture.partial_fit(X[300:600], sample_weight=np.append(np.ones(299), last))
        found.append(mixture.means_)
    np.testing.assert_allclose(*found, rtol=1e-8)


@pytest.mark.parametrize("heavy", [1.0, 30.0], ids=["equal weights", "a heavy tenth"])
def test_the_sample_of_a_stream_stands_for_all_rows(heavy):
    """Weights of kept rows are those of all rows in expectation, of the heavy ones and of the light ones."""
    weight = np.where(np.arange(100) < 10, heavy, 1.0)
    rows, sums = np.arange(100.0)[:, None], []
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        sample = Reservoir.empty(20, 1)
        for part in range(0, 100, 25):
            sample = sample.add(rows[part : part + 25], weight[part : part + 25], rng)
        kept = sample.weights()
        is_heavy = sample.rows[:, 0] < 10
        sums.append((kept[is_heavy].sum(), kept[~is_heavy].sum()))
    error = np.std(sums, axis=0) / np.sqrt(len(sums))
    away = np.mean(sums, axis=0) - [weight[:10].sum(), weight[10:].sum()]
    assert (np.abs(away) < 4.0 * error + 1e-9).all()
    assert (error < 0.03 * weight.sum()).all()


def test_rows_without_weight_add_nothing():
    rng = np.random.default_rng(0)
    Y = rng.poisson(3, (100, 2)) + np.repeat([0.0, 20.0], 50)[:, None]
    nothing = np.zeros(5)
    for make in (
        lambda: swiftem.GaussianMixture(2, random_state=0),
        lambda: swiftem.Mixture(2, family="poisson", random_state=0),
        lambda: swiftem.Mixture(2, family="categorical", random_state=0),
    ):
        mixture = make().partial_fit(Y)
        before = mixture.predict_proba(Y)
        assert np.array_equal(mixture.partial_fit(Y[:5], sample_weight=nothing).predict_proba(Y), before)
        blocks = [(Y[:5], nothing), (Y, np.ones(100)), (Y[:5], nothing)]
        assert np.array_equal(make().partial_fit(iter(blocks)).predict_proba(Y), before)
        for X, weight in ((Y[:5], nothing), (iter([(Y[:5], nothing)]), None)):
            with pytest.raises(ValueError, match=r"(?i)sample.weight"):
                make().partial_fit(X, sample_weight=weight)
    regression = swiftem.RegressionMixture(2, random_state=0).partial_fit(Y, Y[:, 0])
    before = regression.coef_.copy()
    regression.partial_fit(Y[:5], Y[:5, 0], sample_weight=nothing)
    assert np.array_equal(regression.coef_, before)
    topics = swiftem.PLSA(2, random_state=0).partial_fit(Y)
    before = topics.components_.copy()
    assert np.allclose(topics.partial_fit(Y[:5], sample_weight=nothing).components_, before)


def two(n, share, seed):
    """Return rows of two clusters, of which the second has a share."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < share, 4.0, 0.0)[:, None] + rng.normal(size=(n, 2))


@pytest.mark.parametrize("kind", ["gaussian", "family", "loaded"])
def test_every_row_counts_once_after_a_fit(kind, tmp_path):
    old, new = two(5000, 0.13, 0), two(500, 0.68, 1)

    def make():
        if kind == "family":
            return swiftem.Mixture(2, family="gaussian", random_state=0)
        return swiftem.GaussianMixture(2, random_state=0)

    mixture, pooled = make().fit(old), make().fit(np.concatenate([old, new]))
    for batch in np.array_split(new, 2):
        if kind == "loaded":  # after the fit, and within the stream
            mixture.save(tmp_path / "model")
            mixture = type(mixture).load(tmp_path / "model")
        mixture.partial_fit(batch)
    np.testing.assert_allclose(np.sort(mixture.weights_), np.sort(pooled.weights_), atol=0.005)


@pytest.mark.parametrize("fitted", [True, False])
def test_a_step_size_of_the_user_follows_rows_that_change(fitted):
    mixture, step = swiftem.GaussianMixture(2, random_state=0), {"method": methods.OnlineEM(step_size=0.05)}
    if fitted:
        mixture.fit(two(5000, 0.13, 0)).set_params(**step)
    else:
        mixture.set_params(**step).partial_fit(two(500, 0.13, 0))
    for seed in range(80):
        mixture.partial_fit(two(100, 0.68, seed))
    np.testing.assert_allclose(np.sort(mixture.weights_), [0.32, 0.68], atol=0.03)


def test_a_memory_map_with_a_limit_is_read_block_by_block(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    with swiftem.config_context(memory_limit="2GB"):
        mixture = swiftem.GaussianMixture(3, random_state=0).partial_fit(mapped)
    file = swiftem.GaussianMixture(3, random_state=0).partial_fit(tmp_path / "rows.npy")
    np.testing.assert_array_equal(mixture.means_, file.means_)
    assert np.isfinite(mixture.fit(mapped).partial_fit(mapped).means_).all()


@pytest.mark.parametrize(
    "start", [{}, {"weights_init": [0.3, 0.7]}, {"params_init": {"rates": [[1.0], [9.0]]}}]
)
def test_missing_cells_after_a_fit_without_a_pass(start):
    X = np.random.default_rng(0).poisson(np.repeat([1.0, 9.0], 100)).astype(float)[:, None]
    X = np.column_stack([X, X + 1.0])
    X[::7, 0] = np.nan
    if "params_init" in start:
        start = {"params_init": {"rates": np.repeat(start["params_init"]["rates"], 2, axis=1)}}
    mixture = swiftem.Mixture(2, family="poisson", max_iter=0, missing="ignore", random_state=0, **start)
    mixture.fit(X).partial_fit(X)
    again = swiftem.Mixture(2, family="poisson", missing="ignore", random_state=0).fit(X)
    assert mixture.score(X) == pytest.approx(again.score(X), abs=0.05)
