"""Views of buffers in kernels."""

import numba
import numpy as np

from swiftem.kernels import vector


def test_views():
    values = np.arange(12.0)
    assert numba.njit(lambda x: vector.matrix(x, 2, 5))(values).tolist() == values[:10].reshape(2, 5).tolist()
    assert numba.njit(lambda x: vector.vector(x))(values.reshape(3, 4)).tolist() == values.tolist()
    assert numba.njit(lambda x: vector.piece(x, 1, 1, 3))(values.reshape(3, 4)).tolist() == [5.0, 6.0]
    shared = numba.njit(lambda x: vector.matrix(x, 3, 4))(values)
    shared[1, 1] = 50.0
    assert values[5] == 50.0
