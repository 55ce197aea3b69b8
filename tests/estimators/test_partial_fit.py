"""Rows that come in batches: right from the first on, and of little order after some passes."""

import pickle

import numpy as np
import pytest

import swiftem

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


def test_the_first_batch_is_a_fit_of_it():
    mixture = swiftem.GaussianMixture(3, random_state=0).partial_fit(X[:300])
    assert mixture.score(X) > swiftem.GaussianMixture(1).fit(X).score(X)


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
