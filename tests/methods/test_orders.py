"""How samples are drawn: in shuffled passes, and in proportion to weights that are then divided out."""

import helpers
import numpy as np
import pytest
import scipy.stats
from helpers import STOCHASTIC, make_method

import swiftem
from swiftem import methods, models, schedules
from swiftem.core.draws import read_seed, seeded_draws


def weights(n, seed=0):
    return np.random.default_rng(seed).exponential(size=n) + 0.05


@pytest.mark.parametrize("b", [1, 3])
def test_weighted_draws(b):
    """They have the weights as frequencies, and do not depend on what was asked before."""
    weight = np.array([1.0, 5.0, 0.5, 3.5])
    stream = seeded_draws(read_seed(0), 4, b, ["weighted"], weight)
    n_iter = 70_000 // b  # more than are drawn at a time
    drawn = np.concatenate([stream.at(k)[0] for k in range(n_iter)])
    expected = len(drawn) * weight / weight.sum()
    assert scipy.stats.chisquare(np.bincount(drawn, minlength=4), expected).pvalue > 1e-3
    again = seeded_draws(read_seed(0), 4, b, ["weighted"], weight)
    (block,) = again.block(n_iter // 3, n_iter // 2)
    np.testing.assert_array_equal(block.ravel(), drawn[n_iter // 3 * b : n_iter // 2 * b])
    other = seeded_draws(read_seed(1), 4, b, ["weighted"], weight)
    assert (np.concatenate([other.at(k)[0] for k in range(n_iter)]) != drawn).any()


def test_weighted_draws_of_huge_weights():
    drawn = seeded_draws(read_seed(0), 3, 1000, ["weighted"], np.array([1e100, 3e100, 1e-100])).at(0)[0]
    assert sorted(set(drawn.tolist())) == [0, 1]


@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize("make", ["mixture", "topics"])
def test_weights_are_divided_out(make, name, b, kernels):
    """Against the dense implementation, whose means over batches have no weights."""
    gamma = schedules.power(0.5, 0.4)
    if make == "mixture":
        problem, given = helpers.mixture(30, M=3, sample_weight=weights(30)), None
    else:
        problem = helpers.topics(40)
        documents, _ = helpers.tokens_of(problem.data.toarray())
        problem, given = problem._replace(sample_weight=weights(4)), weights(4)[documents]
    options = {"divided": True} | ({} if given is None else {"sample_weight": given})
    helpers.assert_follows_dense(
        problem, name, n_iter=60, b=b, gamma=gamma, dense_options=options, kernels=kernels, order="weighted"
    )


@pytest.mark.parametrize("name", STOCHASTIC)
def test_a_shuffled_pass_has_each_sample_once(name):
    """With shuffled passes the batches of an epoch are a partition of the samples."""
    method = make_method(name, batch_size=4, order="shuffled")
    drawn = seeded_draws(read_seed(0), 20, 4, method.orders)
    seen = np.concatenate([drawn.at(k)[0] for k in range(5)])
    np.testing.assert_array_equal(np.sort(seen), np.arange(20))


def test_what_cannot_be_drawn_by_weight(tmp_path):
    y = np.random.default_rng(0).normal(size=(50, 2))
    np.save(tmp_path / "y.npy", y)
    model = models.GaussianMixtureModel(2)
    with pytest.raises(
        ValueError, match="order must be 'iid' or 'shuffled' for data that are read block by bl"
    ):
        swiftem.run(model, tmp_path / "y.npy", methods.OnlineEM(order="weighted"), n_iter=3)
    mixture = swiftem.GaussianMixture(2, method=methods.OnlineEM(order="weighted"))
    with (
        swiftem.config_context(memory_limit="500MB"),
        pytest.raises(
            ValueError,
            match=r"^order must .* for files and memory maps with memory_limit, .*use an array in memory\.$",
        ),
    ):
        mixture.fit(np.load(tmp_path / "y.npy", mmap_mode="r"))
    swiftem.run(model, tmp_path / "y.npy", methods.OnlineEM(order="shuffled"), n_iter=3, seed=0)
    with pytest.raises(ValueError, match="order must be 'iid', 'shuffled' or 'weighted', got 'cyclic'"):
        methods.OnlineEM(order="cyclic")
