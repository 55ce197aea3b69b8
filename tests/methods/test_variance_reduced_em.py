import helpers
import numpy as np
import pytest
from helpers import assert_close, assert_identical

from swiftem import methods


@pytest.mark.parametrize(
    ("epoch_length", "b", "m"), [(None, 1, 20), (None, 3, 7), (5, 1, 5), (1, 2, 1), (50, 1, 50)]
)
def test_anchor_is_renewed_at_multiples_of_the_epoch(epoch_length, b, m):
    """The anchor after k iterations is θ^(ℓ), ℓ the last multiple of m below k."""
    problem = helpers.mixture(20)
    method = methods.VarianceReducedEM(step_size=0.2, epoch_length=epoch_length, batch_size=b)
    path = problem.run(method, n_iter=45, seed=0, record_every=1).path
    for k in (1, 4, 5, 6, 7, 8, 20, 21, 41, 45):
        state = problem.run(method, n_iter=k, seed=0).state.method
        anchor = path[(k - 1) // m * m].theta
        assert_identical(state.anchor, anchor)
        assert_close(state.centre, problem.run(methods.EM(), theta0=anchor, n_iter=0).s)


@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_variance_vanishes(name):
    """With a constant step the error goes to zero, where that of sem stays."""
    problem = helpers.mixture(100, spread=3.0, seed=1)
    optimum = problem.run(methods.EM(), n_iter=500).s
    error = {
        kind: np.abs(
            problem.run(helpers.make_method(kind, step_size=0.05), n_iter=4000, seed=0).s - optimum
        ).max()
        for kind in (name, "sem")
    }
    assert error[name] < 1e-12
    assert error["sem"] > 1e-2
