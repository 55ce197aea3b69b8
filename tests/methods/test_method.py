import helpers
import pytest
from helpers import NAMES

from swiftem import methods

every_method = pytest.mark.parametrize("name", NAMES)


@every_method
@pytest.mark.parametrize(("n", "b", "epoch"), [(10, 1, 10), (10, 4, 3), (10, 20, 1), (1, 1, 1)])
def test_epoch(name, n, b, epoch):
    assert helpers.make_method(name, batch_size=b).epoch(n) == (1 if name == "em" else epoch)


def test_a_method_without_an_update_draws_one_sample():
    class Own(methods.Method):
        name = "own"

        def proxy(self, k, theta, draws, state, e_step):
            return e_step.mean(theta, draws[0]), state

    assert (Own.index_streams, Own.access, Own.remembers) == (1, "sequential", False)
