"""Numbers of the report, at the edges of rounding."""

import math

import pytest

from paper.reports.numbers import power_of_ten, short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1"), (0.5, "0.5"), (0.015, "0.015"), (0.00996, "0.01"), (0.0099, "9.9·10⁻³"),
        (9.96e-5, "1.0·10⁻⁴"), (9.94e-5, "9.9·10⁻⁵"), (123.0, "120"), (9960.0, "1.0·10⁴"), (1234.0, "1,200"),
        (2e20, "2.0·10²⁰"), (5e-324, "4.9·10⁻³²⁴"), (math.nan, "none"), (math.inf, "none"),
    ],
)  # fmt: skip
def test_short(value, text):
    assert short(value) == text


def test_powers_of_ten():
    assert [power_of_ten(10.0**power) for power in (-12, -1, 0, 3, 5, 6)] == [
        "10⁻¹²", "10⁻¹", "1", "1,000", "100,000", "10⁶",
    ]  # fmt: skip
    assert power_of_ten(3.0) == power_of_ten(2e-7) == ""
