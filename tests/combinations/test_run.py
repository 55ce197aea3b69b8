"""Combinations of what ``swiftem.run`` takes: models, methods, orders, schedules, sources and checkpoints."""

import numpy as np
import pytest
from combinations.pairs import all_pairs, in_folders
from combinations.runs import FACTORS, allowed, finding


def words(case):
    return ", ".join(f"{name}={value!r}" for name, value in case.items())


def check(cases, tmp_path):
    found = []
    for _, case, folder in in_folders(cases, tmp_path):
        wrong = finding(case, folder)
        if wrong:
            found.append(f"{wrong}\n    {words(case)}")
    assert not found, f"{len(found)} of {len(cases)}:\n" + "\n".join(found)


@pytest.mark.parametrize("seed", range(4))
def test_some_pairs(seed, tmp_path):
    check(all_pairs(FACTORS, np.random.default_rng(seed), allowed=allowed, most=15), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("n", [90, 6000])
@pytest.mark.parametrize("seed", range(10, 16))
def test_all_pairs(seed, n, tmp_path):
    cases = all_pairs(FACTORS | {"n": [n]}, np.random.default_rng(seed), allowed=allowed)
    check(cases, tmp_path)
