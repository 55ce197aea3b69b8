import itertools

import helpers
import pytest
from helpers import assert_close, assert_same_result

from swiftem import methods


@pytest.mark.parametrize("make", [helpers.mixture, helpers.topics])
def test_does_not_depend_on_the_seed(make):
    first, second = (make(20).run(methods.EM(), n_iter=5, seed=0) for _ in range(2))
    assert_same_result(first, second)


@pytest.mark.parametrize("make", [helpers.mixture, helpers.topics])
def test_s_is_that_of_the_parameters_before(make):
    """ŝ^(k+1) = s̄(θ^(k)), and θ^(k+1) is its M-step."""
    problem = make(20)
    path = problem.run(methods.EM(), n_iter=5, record_every=1).path
    for before, after in itertools.pairwise(path):
        assert_close(after.s, problem.run(methods.EM(), theta0=before.theta, n_iter=0).s)


def test_takes_no_step_size():
    with pytest.raises(TypeError):
        methods.EM(step_size=0.5)


def test_keeps_nothing():
    assert helpers.mixture().run(methods.EM(), n_iter=3).state.method == ()
