"""A call goes through few modules: what a reader has to open to follow it."""

import pytest

from tests.paths import PATHS, walked

pytest.importorskip("pyarrow")

MOST = {
    "predict": 18,
    "run": 19,
    "iteration": 11,
    "fit": 40,
    "resume": 23,
    "topics": 44,
    "parquet": 45,
    "auto": 40,
    "sem-vr": 45,
}
"""Modules whose functions run; the goal is 14 to 25."""


@pytest.mark.parametrize("name", PATHS)
def test_a_call_goes_through_no_more_modules_than_before(name):
    found = walked(PATHS[name])
    assert len(found) <= MOST[name], sorted(found)


def test_modules_that_run_are_counted_and_those_that_do_not_are_not():
    found = walked(PATHS["predict"])
    assert found["mixture/estimator.py"] > 0
    assert "mixture/fit.py" not in found
