"""Numbers as people write them."""

from __future__ import annotations

from math import floor, isfinite, log10

__all__ = ["likelihood", "power_of_ten", "seconds_text", "short", "times"]

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_of_ten(value: float) -> str:
    """Return a value for a logarithmic axis, where only powers of ten have a label.

    >>> power_of_ten(1e-12), power_of_ten(1000.0), power_of_ten(1.0), power_of_ten(2e5)
    ('10⁻¹²', '1,000', '1', '')
    """
    power = round(log10(value))
    if abs(log10(value) - power) > 1e-9:
        return ""
    if 0 <= power <= 4:
        return f"{10**power:,}"
    return "10" + str(power).translate(SUPERSCRIPT)


def short(value: float) -> str:
    """Return two digits of a small positive number, in the paper's notation.

    >>> short(1.3e-20), short(0.0003), short(0.25), short(0.0)
    ('1.3·10⁻²⁰', '3.0·10⁻⁴', '0.25', '0')
    """
    if not isfinite(value) or value == 0.0:
        return "0" if value == 0.0 else "none"
    power = floor(log10(abs(value)))
    if -2 <= power <= 3:
        return f"{value:.2g}"
    return f"{value / 10.0**power:.1f}·10" + str(power).translate(SUPERSCRIPT)


def likelihood(value: float) -> str:
    """Return a log-likelihood with two digits and a true minus.

    >>> likelihood(-4.7123)
    '−4.71'
    """
    return f"{value:.2f}".replace("-", "−")


def seconds_text(seconds: float) -> str:
    """Return a duration with two digits.

    >>> seconds_text(0.0213), seconds_text(3.14), seconds_text(75.0)
    ('21 ms', '3.1 s', '75 s')
    """
    if seconds < 1:
        return f"{1000 * seconds:.2g} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def times(factor: float) -> str:
    """Return a factor with one digit, rounded down, as a power of ten where it is large: more would be noise.

    >>> times(347.0), times(2.5e20)
    ('300', '10²⁰')
    """
    if not isfinite(factor):
        return "infinitely many"
    power = floor(log10(factor) + 1e-9)
    if power >= 6:
        return "10" + str(power).translate(SUPERSCRIPT)
    return f"{floor(factor / 10.0**power * (1 + 1e-9)) * 10**power:,.10g}"
