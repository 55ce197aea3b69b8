"""Numbers as text in the report; more are in :mod:`swiftem.show.numbers`."""

from __future__ import annotations

from math import isfinite, log10

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_of_ten(value: float) -> str:
    """Return the label of a power of ten for a logarithmic axis; empty for other values.

    >>> power_of_ten(1e-12), power_of_ten(1000.0), power_of_ten(1.0), power_of_ten(2e5)
    ('10⁻¹²', '1,000', '1', '')
    """
    power = round(log10(value))
    if abs(log10(value) - power) > 1e-9:
        return ""
    return f"{10**power:,}" if 0 <= power <= 5 else "10" + str(power).translate(SUPERSCRIPT)


def short(value: float) -> str:
    """Return two digits of a positive number, in the paper's notation.

    >>> short(1.3e-20), short(0.0003), short(0.25), short(1234.0), short(0.0)
    ('1.3·10⁻²⁰', '3.0·10⁻⁴', '0.25', '1,200', '0')
    """
    if not isfinite(value) or value == 0.0:
        return "0" if value == 0.0 else "none"
    digits, power = f"{value:.1e}".split("e")  # rounded first: 9.96e-5 is 1.0·10⁻⁴
    if -2 <= int(power) <= 3:
        return f"{float(f'{value:.2g}'):,.10g}"
    return f"{digits}·10" + str(int(power)).translate(SUPERSCRIPT)
