"""Every method on every kind of model gives what is stored, to 1e-12: see ``tests/gate.py``."""

import gate
import helpers
import numpy as np
import pytest

import swiftem


@pytest.fixture(scope="module")
def values():
    return gate.values()


def test_values_are_those_that_are_stored(values):
    with np.load(gate.VALUES) as stored:
        found = gate.differences(values, dict(stored))
    assert {name: size for name, size in found.items() if size > gate.TOLERANCE} == {}
    assert gate.VALUES.stat().st_size < 200_000


@pytest.mark.parametrize("name", gate.NAMES)
def test_what_is_stored_in_a_file_gives_what_an_array_gives(name, tmp_path):
    """Draws on files are by blocks: the array's run is given the same ones."""
    y, method = gate.rows(), gate.method(name, 7)
    file = tmp_path / "rows.npy"
    np.save(file, y)
    model = swiftem.models.GaussianMixtureModel(3, covariance="full")
    draws = helpers.random_draws(name, len(y), 300, b=7)
    options = {"n_iter": 300, "seed": 3} if name != "em" else {"n_iter": 30, "seed": 3}
    theta0 = swiftem.run(model, y, method, n_iter=0, seed=3).theta
    ours, theirs = (
        swiftem.run(model, data, method, theta0=theta0, draws=draws, **options) for data in (file, y)
    )
    for one, other in zip(
        gate._leaves((ours.theta, ours.s)), gate._leaves((theirs.theta, theirs.s)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())
