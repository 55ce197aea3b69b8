import helpers
import numpy as np
import pytest
from helpers import assert_close, assert_identical

from swiftem import methods
from swiftem.core.compute import Compute
from swiftem.data import as_source

both_models = pytest.mark.parametrize("make", [helpers.mixture, helpers.topics])


def mean_of_memory(problem, memory, sample_weight=None):
    source = as_source(problem.data, sample_weight)
    e_step = Compute(problem.model.bind(source), source)
    return e_step.share(e_step.take(np.arange(source.n)), memory)


@both_models
@pytest.mark.parametrize("kind", [methods.IncrementalEM, methods.FastIncrementalEM])
def test_centre_is_the_mean_of_the_memory(make, kind):
    """Also where batches repeat an index."""
    problem = make(20)
    name = kind.name
    draws = helpers.random_draws(name, 20, 50, b=4)
    state = problem.run(kind(batch_size=4), n_iter=50, draws=draws).state.method
    assert_close(state.centre, mean_of_memory(problem, state.memory))


@both_models
def test_s_is_the_centre(make):
    result = make(20).run(methods.IncrementalEM(batch_size=2), n_iter=30, seed=0)
    assert_identical(result.s, result.state.method.centre)
    assert result.rejected == 0
