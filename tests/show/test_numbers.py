"""Numbers as people write them, at the edges of rounding."""

import math

from swiftem.show.numbers import counted, signed


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
