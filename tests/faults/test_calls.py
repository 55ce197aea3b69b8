"""Calls with odd and bad arguments, in child processes: a sound result or one sentence, and no crash.

``SWIFTEM_FUZZ_SECONDS`` is for how long the slow test goes on, from a call that depends on the day.
"""

import os
import time

import pytest
from faults.call_fuzzer import GIVEN_UP, MEMORY, by_class, campaign, problem_of, problem_with
from faults.watched import run_cases


def test_the_first_calls():
    done, returned, found = campaign(0, 120, float("inf"))
    assert done == 120
    assert not found, by_class(found)
    assert returned > 25  # not everything is refused


FOUND = (1008186, 1017904, 1009075, 1018838, 1018794, 1019636, 1015694)
"""Calls of earlier campaigns that ended in a warning, a bare error or numbers that are not finite."""


def test_what_campaigns_found():
    for outcome in run_cases("faults.call_fuzzer:judge_number", FOUND, MEMORY, GIVEN_UP):
        assert outcome.kind == "returned"
        assert outcome.value[0] == ""


@pytest.mark.slow
def test_calls_for_a_while():
    seconds = float(os.environ.get("SWIFTEM_FUZZ_SECONDS", "120"))
    done, returned, found = campaign(int(time.time()) // 86_400 * 10**6, 10**9, seconds)
    print(f"{done} calls, {returned} results, {len(found)} findings.")
    assert not found, by_class(found)


def raised(error):
    """Return an error as one that was raised."""
    try:
        raise error
    except Exception as found:
        return found


def test_the_fuzzer_notices():
    """An error that is no sentence, one that nobody raised and a result that is not finite are findings."""
    for error in (
        IndexError("out of range"),
        ValueError("nobody of the library raised this."),
        KeyError("a"),
    ):
        assert problem_of(raised(error))
    assert problem_with((1.0, [float("nan")]))
    assert not problem_with((1.0, "a", None))
