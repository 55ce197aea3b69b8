"""Numbers as people write them, at the edges of rounding."""

import math

import pytest

from swiftem.show.numbers import counted, seconds_text, signed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"), (0.00031, "0.31 ms"), (0.0031, "3.1 ms"), (0.00996, "10 ms"), (0.0213, "21 ms"),
        (0.11, "110 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"), (9.94, "9.9 s"), (9.96, "10 s"),
        (600.0, "600 s"),
    ],
)  # fmt: skip
def test_seconds(seconds, text):
    assert seconds_text(seconds) == text


def test_a_minus_is_a_minus():
    assert signed(-0.256, 1) == "−0.3"
    assert signed(0.256, 3) == "0.256"
    assert signed(math.nan, 2) == "none"


def test_counted():
    assert [counted(number, "run") for number in (0, 1, 2, 5000)] == [
        "0 runs",
        "1 run",
        "2 runs",
        "5,000 runs",
    ]
