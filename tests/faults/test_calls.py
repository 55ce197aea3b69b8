"""Calls with odd and bad arguments, in child processes: a sound result or one sentence, and no crash.

``SWIFTEM_FUZZ_SECONDS`` is for how long the slow test goes on, from a call that depends on the day.
"""

import itertools
import os
import time

import pytest
from faults.call_fuzzer import problem_of, problem_with
from faults.watched import campaign, for_a_while

FOUND = (1008186, 1017904, 1009075, 1018838, 1018794, 1019636, 1015694)
"""Calls of earlier campaigns that ended in a warning, a bare error or numbers that are not finite."""


def calls(numbers):
    """Do calls with these numbers: each has 8 GB, and hangs after 300 s."""
    return campaign("faults.call_fuzzer:judge_number", numbers, 8 << 30, 300.0)


def test_the_first_calls_and_what_campaigns_found():
    ends, found = calls([*range(120), *FOUND])
    assert not found, "\n".join(found)
    assert ends["returned"] > 25  # not everything is refused


@pytest.mark.slow
def test_calls_for_a_while():
    seconds = float(os.environ.get("SWIFTEM_FUZZ_SECONDS", "120"))
    ends, found = calls(for_a_while(itertools.count(int(time.time()) // 86_400 * 10**6), seconds))
    print(f"{dict(ends)}, {len(found)} classes of findings")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "error",
    [IndexError("out of range"), ValueError("nobody of the library raised this."), KeyError("a")],
    ids=repr,
)
def test_errors_that_are_no_refusal_are_noticed(error):
    with pytest.raises(type(error)) as raised:
        raise error
    assert problem_of(raised.value)


def test_results_that_are_not_finite_are_noticed():
    assert problem_with((1.0, [float("nan")]))
    assert not problem_with((1.0, "a", None))
