"""Methods, models, kinds of data and estimators give what is stored, to 1e-12: see ``tests/gate.py``."""

import gate
import gate_cases
import helpers
import numpy as np
import pytest

import swiftem


@pytest.fixture(scope="module")
def values():
    return {name: gate.condensed(vector) for name, vector in gate.values().items()}


def test_values_are_those_that_are_stored(values):
    stored = {name: vector for name, vector in gate.stored().items() if gate_cases.is_available(name)}
    found = gate.differences(values, stored)
    assert {name: size for name, size in found.items() if size > gate.TOLERANCE} == {}
    assert set(values) == set(stored)
    assert gate.VALUES.stat().st_size < 200_000


def test_a_change_of_one_entry_of_a_long_vector_is_seen():
    vector = np.random.default_rng(0).uniform(1.0, 2.0, size=1000)
    changed = vector.copy()
    changed[500] += 1e-9
    found = gate.differences({"": gate.condensed(changed)}, {"": gate.condensed(vector)})
    assert found[""] > gate.TOLERANCE


@pytest.mark.parametrize("name", gate_cases.NAMES)
def test_what_is_stored_in_a_file_gives_what_an_array_gives(name, tmp_path):
    """Draws on files are by blocks: the array's run is given the same ones."""
    y, method = gate_cases.rows(), gate_cases.method(name, 7)
    file = tmp_path / "rows.npy"
    np.save(file, y)
    model = swiftem.models.GaussianMixtureModel(3, covariance="full")
    draws = helpers.random_draws(name, len(y), 300, b=7)
    theta0 = swiftem.run(model, y, method, n_iter=0, seed=3).theta
    ours, theirs = (
        gate_cases.result_of(model, data, method, theta0=theta0, draws=draws) for data in (file, y)
    )
    for one, other in zip(
        gate_cases.leaves((ours.theta, ours.s)), gate_cases.leaves((theirs.theta, theirs.s)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())
