"""The steps of a block's E-step by themselves."""

import itertools

import numba
import numpy as np

from swiftem.mixture.compute import loops


def call(helper, *arguments):
    """Call a helper as kernels do: by itself it is not compiled to the end."""
    numba.njit(lambda *given: helper(*given))(*arguments)


def test_exponentials_over_their_whole_range():
    x = np.concatenate([-np.geomspace(1e-300, 100, 5000), np.linspace(-100, 0, 5001), [0.0, -0.0]])
    for size in (1, 7, 512, 513, len(x)):
        values = x[:size].copy()
        call(loops.exponentiate, values)
        np.testing.assert_allclose(values, np.exp(x[:size]), rtol=5e-16)


def test_products_are_those_of_numpy():
    product = numba.njit(lambda x, y, out: loops.multiply(x, y, out))
    rng = np.random.default_rng(0)
    for m, k, n in itertools.product((0, 1, 2, 7), repeat=3):
        for x, y in (
            (rng.normal(size=(m, k)), rng.normal(size=(k, n))),
            (rng.normal(size=(k, m)).T, rng.normal(size=(n, k)).T),
        ):
            out = np.full((m, n), np.nan)
            product(x, y, out)
            np.testing.assert_allclose(out, x @ y, rtol=1e-14, atol=1e-14)
