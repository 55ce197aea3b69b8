import helpers
import numpy as np
import pytest
from helpers import assert_close

from swiftem import methods, schedules


def test_default_step_is_the_paper_s():
    assert methods.OnlineEM().step_size == schedules.inverse(3, 10)


@pytest.mark.parametrize("make", [helpers.mixture, helpers.topics])
def test_a_repeated_index_counts_as_often(make):
    problem = make(20)

    def step(draws, b):
        return problem.run(methods.OnlineEM(step_size=1.0, batch_size=b), n_iter=1, draws=draws).s

    assert_close(step([[3, 3, 4]], 3), (2 * step([3], 1) + step([4], 1)) / 3)


def test_everybody_drawn_with_full_steps_is_em():
    problem = helpers.mixture(20)
    method = methods.OnlineEM(step_size=1.0, batch_size=20)
    result = problem.run(method, n_iter=5, draws=[np.arange(20)] * 5)
    assert_close(result.s, problem.run(methods.EM(), n_iter=5).s)


def test_keeps_nothing():
    assert helpers.mixture().run(methods.OnlineEM(), n_iter=3, seed=0).state.method == ()
