"""Draws by blocks: each sample once an epoch, neighbours together, a function of seed and place."""

import numpy as np
import pytest

import swiftem
from swiftem.core.draws import block_draws, read_seed, spread_rows
from swiftem.data import BlockSource

EDGES = np.array([0, 10, 13, 33, 40, 60, 61])


def draws(batch_size=7, per_window=2, in_order=False, seed=0, streams=1):
    return block_draws(read_seed(seed), EDGES, per_window, in_order, batch_size=batch_size, streams=streams)


def epochs(made, count, batch_size=7):
    n_iter = -(-61 * count // batch_size)
    return made.block(0, n_iter)[0].ravel()[: 61 * count].reshape(count, 61)


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("per_window", [1, 2, 4, 6, 9])
def test_an_epoch_has_each_sample_once(per_window, in_order):
    for epoch in epochs(draws(per_window=per_window, in_order=in_order), 5):
        assert np.array_equal(np.sort(epoch), np.arange(61))


def blocks_of(samples):
    """Return which whole blocks these samples are, or None."""
    found = set(samples)
    inside = [b for b in range(6) if set(range(EDGES[b], EDGES[b + 1])) <= found]
    return inside if sum(EDGES[b + 1] - EDGES[b] for b in inside) == len(found) else None


def test_windows_in_order_are_blocks_in_a_row_shuffled():
    for epoch in epochs(draws(in_order=True), 5):
        for first, last in ((0, 13), (13, 40), (40, 61)):
            assert np.array_equal(np.sort(epoch[first:last]), np.arange(first, last))
            assert not np.array_equal(epoch[first:last], np.arange(first, last))


def test_windows_are_blocks_in_random_order_shuffled():
    firsts = set()
    for epoch in epochs(draws(per_window=3), 30):
        cuts = [cut for cut in range(1, 61) if len(blocks_of(epoch[:cut]) or ()) == 3]
        assert cuts, "the first window has to be three whole blocks"
        assert len(blocks_of(epoch[cuts[0] :])) == 3
        assert not np.array_equal(np.sort(epoch[: cuts[0]]), epoch[: cuts[0]])
        firsts.add(tuple(blocks_of(epoch[: cuts[0]])))
    assert len(firsts) > 5


def test_windows_of_an_epoch_are_shuffled_each_in_its_own_way():
    edges = np.arange(0, 61, 20)
    made = block_draws(read_seed(0), edges, 1, True, batch_size=20, streams=1)
    assert len({tuple(made.at(k)[0] - 20 * k) for k in range(3)}) == 3


def test_any_place_can_be_asked_for_first():
    whole = draws(batch_size=3).block(0, 200)[0]
    for k in (0, 20, 21, 199):
        assert np.array_equal(draws(batch_size=3).at(k)[0], whole[k])
    assert np.array_equal(draws(batch_size=3).block(77, 133)[0], whole[77:133])


def test_seeds_and_streams_differ():
    i, j = draws(streams=2).block(0, 9)
    assert not np.array_equal(i, j)
    assert not np.array_equal(draws(seed=1).block(0, 9)[0], i)
    assert np.array_equal(draws().block(0, 9)[0], i)


@pytest.mark.parametrize(("n", "count"), [(10, 3), (10, 10), (10, 20), (10**12, 5)])
def test_spread_rows_are_different_and_one_of_each_part(n, count):
    found = spread_rows(n, count, np.random.default_rng(0))
    assert len(found) == min(n, count)
    assert (np.diff(found) > 0).all()
    assert found[0] >= 0
    assert found[-1] < n
    if count < n:
        assert np.array_equal(np.searchsorted(n * np.arange(count + 1) // count, found, side="right") - 1,
                              np.arange(count))  # fmt: skip


WHOLE = len(EDGES) - 1
ORDERS = {"in order": (2, True), "one window": (WHOLE, False), "one window, in order": (WHOLE, True)}


@pytest.mark.parametrize("case", ORDERS)
def test_no_epoch_is_like_another(case):
    """Where blocks come in order, or all make one window, only the shuffling within makes a difference."""
    per_window, in_order = ORDERS[case]
    found = epochs(draws(per_window=per_window, in_order=in_order), 6)
    first = 13 if per_window == 2 else 61  # samples of the first window
    assert len({tuple(epoch[:first]) for epoch in found}) == 6
    assert len({tuple(epoch[first - 61 :]) for epoch in found}) == 6


@pytest.mark.parametrize("case", ORDERS)
def test_any_place_is_what_the_whole_has(case):
    per_window, in_order = ORDERS[case]
    made = draws(61, per_window, in_order)  # an epoch an iteration; 64 of them are drawn at once
    whole = made.block(0, 150)[0]
    for k in (149, 0, 63, 64, 100):
        assert np.array_equal(made.at(k)[0], whole[k])
        assert np.array_equal(draws(61, per_window, in_order).at(k)[0], whole[k])


def test_blocks_have_no_missing_cells_unless_they_may():
    blocks = [np.array([[1.0], [2.0]]), np.array([[np.nan], [3.0]])]
    model = swiftem.models.GaussianMixtureModel(1)
    with pytest.raises(ValueError, match="NaN"):
        swiftem.run(model, BlockSource(blocks), swiftem.methods.EM(), n_iter=1)
    model = swiftem.models.GaussianMixtureModel(1, covariance="diag", missing="ignore")
    found = swiftem.run(model, BlockSource(blocks, allow_missing=True), swiftem.methods.EM(), n_iter=20)
    assert found.theta.means[0, 0] == pytest.approx(2.0, abs=1e-3)
