"""Mixtures: every parameter with every kind of input, and every call after the fit, give the array's results.

A finding is a result that is not that of the same rows in a float64 array, a number that is not finite, an
exception that is no ValueError or TypeError of one sentence, or a foreign warning.
"""

from functools import cache

import pytest
from combinations.inputs import KINDS
from combinations.mixtures import ALL_ROWS, DEVICE, FACTORS, MORE_ROWS, cases_of, described, findings
from combinations.pairs import in_folders

FEW_ROWS = [40, 300, 999, 1000, 1200]
QUICK = [
    case
    for name, most in (("gaussian", 45), ("family", 35), ("regression", 20), ("select", 8))
    for case in cases_of(name, 1, FEW_ROWS, most=most)
]
PARTS = 8


@pytest.mark.parametrize("case", QUICK, ids=[f"{case['estimator']}-{case['number']}" for case in QUICK])
def test_a_case(case, tmp_path):
    assert findings(case, tmp_path) == [], described(case)


ON_DEVICE = [
    case | {"device": DEVICE}
    for name, most in (("gaussian", 30), ("family", 20))
    for case in cases_of(name, 4, FEW_ROWS, most=most)
]


@pytest.mark.parametrize(
    "case", ON_DEVICE, ids=[f"{case['estimator']}-{case['number']}" for case in ON_DEVICE]
)
def test_a_case_on_a_device(case, tmp_path):
    """Fits are other ones; what a fitted model says of rows is the same."""
    pytest.importorskip("torch")
    assert findings(case, tmp_path) == [], described(case)


def wrong_cases(cases, folder):
    """Return the findings of the cases that have any."""
    found = {described(case): findings(case, here) for _, case, here in in_folders(cases, folder)}
    return {name: wrong for name, wrong in found.items() if wrong}


@cache
def all_cases(name, rows):
    return cases_of(name, 2, list(rows), list(KINDS))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("rows", [tuple(ALL_ROWS), tuple(MORE_ROWS)], ids=["few rows", "many rows"])
@pytest.mark.parametrize("name", list(FACTORS))
def test_all_cases(name, rows, part, tmp_path):
    """Thousands of cases: every pair of values occurs."""
    assert wrong_cases(all_cases(name, rows)[part::PARTS], tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "family"])
def test_cases_of_more_rows_than_starts_look_at(name, tmp_path):
    """Above 50,000 rows stored rows start from a sample, and above 100,000 k-means uses batches."""
    assert wrong_cases(cases_of(name, 3, [60_000, 110_000], list(KINDS), most=25), tmp_path) == {}
