"""A call goes through few modules: what a reader has to open to follow it."""

import pytest

from tests.paths import PATHS, walked

pytest.importorskip("pyarrow")

MOST = {
    "predict": 20, "run": 22, "fit": 34, "resume": 25, "topics": 45, "parquet": 42, "auto": 38, "sem-vr": 50,
}  # fmt: skip
"""Modules whose functions run; the goal is 25 for each."""


@pytest.mark.parametrize("name", PATHS)
def test_a_call_goes_through_no_more_modules_than_before(name):
    found = walked(PATHS[name])
    assert len(found) <= MOST[name], sorted(found)


def test_modules_that_run_are_counted_and_those_that_do_not_are_not():
    found = walked(PATHS["predict"])
    assert found["estimators/mixture/scores.py"] > 0
    assert "estimators/mixture/fit.py" not in found
