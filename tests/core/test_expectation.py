import dense
import helpers
import numpy as np
import pytest
from helpers import assert_close

from swiftem.core.compute import Compute
from swiftem.data import as_source


@pytest.fixture
def case():
    """A weighted mixture: E-step, parameters, the statistics of every sample, and the weights' shares."""
    weight = np.random.default_rng(0).exponential(size=9)
    problem = helpers.mixture(9, d=2, sample_weight=weight)
    source = as_source(problem.data, weight)
    # From the dense run: iem's statistics after a batch of one sample, alone in the data.
    statistics = np.array(
        [
            dense.gmm_trajectory(
                "em",
                problem.data[[i]],
                *problem.theta0,
                delta=1e-3,
                epsilon=1e-3,
                draws=None,
                n_iter=0,
                gamma=None,
            ).s[0]
            for i in range(9)
        ]
    )
    return Compute(problem.model.bind(source), source), problem.theta0, statistics, weight / weight.sum()


INDEX = np.array([4, 1, 4, 4, 7])


def test_mean_counts_a_sample_as_often_as_drawn(case):
    e_step, theta, statistics, share = case
    batch = e_step.take(INDEX)
    expected = np.mean([9 * share[i] * statistics[i] for i in INDEX], axis=0)
    assert_close(e_step.mean(batch, e_step.rows(batch, theta)), expected)


def test_share_counts_a_sample_once(case):
    e_step, theta, statistics, share = case
    batch = e_step.take(INDEX)
    expected = sum(share[i] * statistics[i] for i in (1, 4, 7))
    assert_close(e_step.share(batch, e_step.rows(batch, theta)), expected)


def test_full_pass(case):
    e_step, theta, statistics, share = case
    assert_close(e_step.full(theta), share @ statistics)
    s, memory = e_step.remember(theta)
    assert_close(s, share @ statistics)
    batch = e_step.take(np.arange(9))
    np.testing.assert_allclose(memory, e_step.rows(batch, theta), rtol=1e-13)


def test_weights_of_the_batch_are_not_written_to(case):
    e_step, theta, _, _ = case
    batch = e_step.take(INDEX)
    before = batch.weight.copy()
    e_step.share(batch, e_step.rows(batch, theta))
    np.testing.assert_array_equal(batch.weight, before)


def test_evaluations_are_counted(case):
    e_step, theta, _, _ = case
    e_step.full(theta)
    assert e_step.evaluations == 9
    e_step.remember(theta)
    assert e_step.evaluations == 18
    batch = e_step.take(INDEX)
    assert e_step.evaluations == 18
    e_step.mean(batch, e_step.rows(batch, theta))
    assert e_step.evaluations == 23  # a repeated sample is evaluated as often
    e_step.objective(theta)
    assert e_step.evaluations == 23


def test_between_blocks_may_break_a_pass_off():
    problem = helpers.mixture(9_000)
    source = as_source(problem.data)
    calls = []

    def between_blocks():
        calls.append(len(calls))
        if len(calls) == 3:
            raise KeyboardInterrupt

    e_step = Compute(problem.model.bind(source), source)
    with pytest.raises(KeyboardInterrupt), e_step.checked_by(between_blocks):
        e_step.full(problem.theta0)
    assert 0 < e_step.evaluations < 9_000
