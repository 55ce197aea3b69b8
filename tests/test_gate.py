"""Methods, models, kinds of data and estimators give what is stored, to 1e-12: see ``tests/gate.py``."""

import gate
import gate_cases
import numpy as np
import pytest


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
