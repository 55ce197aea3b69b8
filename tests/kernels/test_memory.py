"""Views and products of buffers in kernels."""

import itertools

import numba
import numpy as np

from swiftem.kernels import memory


def test_products_are_those_of_numpy():
    product = numba.njit(lambda x, y, out: memory.multiply(x, y, out))
    rng = np.random.default_rng(0)
    for m, k, n in itertools.product((0, 1, 2, 7), repeat=3):
        for x, y in (
            (rng.normal(size=(m, k)), rng.normal(size=(k, n))),
            (rng.normal(size=(k, m)).T, rng.normal(size=(n, k)).T),
        ):
            out = np.full((m, n), np.nan)
            product(x, y, out)
            np.testing.assert_allclose(out, x @ y, rtol=1e-14, atol=1e-14)


def test_views():
    values = np.arange(12.0)
    assert numba.njit(lambda x: memory.matrix(x, 2, 5))(values).tolist() == values[:10].reshape(2, 5).tolist()
    assert numba.njit(lambda x: memory.vector(x))(values.reshape(3, 4)).tolist() == values.tolist()
    assert numba.njit(lambda x: memory.piece(x, 1, 1, 3))(values.reshape(3, 4)).tolist() == [5.0, 6.0]
    shared = numba.njit(lambda x: memory.matrix(x, 3, 4))(values)
    shared[1, 1] = 50.0
    assert values[5] == 50.0
