"""What a comparison of methods shows, in words that come from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf, log10

from swiftem.report.method_names import style_of

__all__ = ["conclusion", "headline"]

VARIANCE_REDUCED = ("sem-vr", "fiem")

Errors = Mapping[str, Sequence[float]]


def conclusion(errors: Errors) -> str:
    r"""Say in one sentence how close each method came, at the last epoch that all of them reached.

    Parameters
    ----------
    errors : mapping of str to sequence of float
        Method's name to its :math:`|\mu - \mu^\star|^2` after epochs 0, 1, ...

    Returns
    -------
    str

    Examples
    --------
    >>> from swiftem.report.conclusion import conclusion
    >>> errors = {"em": [0.5, 1e-2], "sem-vr": [0.5, 3e-5], "fiem": [0.5, 1e-5]}
    >>> print(conclusion(errors))  # doctest: +NORMALIZE_WHITESPACE
    After 1 epoch the squared error is 1e-05 (fiEM), 3e-05 (sEM-VR), 1e-02 (EM):
    with variance reduction at least 300 times smaller than without.
    >>> print(conclusion({"em": [0.5, 1e-2]}))
    After 1 epoch the squared error is 1e-02 (EM).
    """
    epoch, ranked = _ranked(errors)
    values = ", ".join(f"{errors[name][epoch]:.0e} ({style_of(name).label})" for name in ranked)
    sentence = f"After {_epochs(epoch)} the squared error is {values}"
    if len(ranked) == 1:
        return f"{sentence}."
    gain = _gain(errors, epoch, ranked)
    if gain >= 2:
        return f"{sentence}: with variance reduction at least {_times(gain)} times smaller than without."
    return f"{sentence}: {style_of(ranked[0]).label} is closest."


def headline(errors: Errors) -> str:
    """Say in a few words, for the title of a figure, what :func:`conclusion` says in a sentence.

    >>> headline({"em": [0.5, 1e-2], "sem-vr": [0.5, 3e-5], "fiem": [0.5, 1e-5]})
    'After 1 epoch variance reduction makes the error 300 times smaller'
    >>> headline({"em": [0.5, 0.2], "fiem": [0.5, 0.3]})
    'After 1 epoch EM is closest'
    """
    epoch, ranked = _ranked(errors)
    gain = _gain(errors, epoch, ranked)
    if gain >= 2:
        return f"After {_epochs(epoch)} variance reduction makes the error {_times(gain)} times smaller"
    return f"After {_epochs(epoch)} {style_of(ranked[0]).label} is closest"


def _ranked(errors: Errors) -> tuple[int, list[str]]:
    """Return the last epoch that all methods reached, and the methods by their error there."""
    # A method that was stopped before its first epoch says nothing, and would hide what the others say.
    begun = [name for name in errors if len(errors[name]) > 1] or list(errors)
    epoch = min(len(errors[name]) for name in begun) - 1
    return epoch, sorted(begun, key=lambda name: errors[name][epoch])


def _gain(errors: Errors, epoch: int, ranked: list[str]) -> float:
    """Return the best error without variance reduction over the worst with it; 0 where a kind is missing."""
    without = [errors[name][epoch] for name in ranked if name not in VARIANCE_REDUCED]
    reduced = [errors[name][epoch] for name in ranked if name in VARIANCE_REDUCED]
    if not without or not reduced:
        return 0.0
    return min(without) / max(reduced) if max(reduced) > 0 else inf


def _epochs(epoch: int) -> str:
    return f"{epoch} epoch" if epoch == 1 else f"{epoch} epochs"


def _times(factor: float) -> str:
    """Return a factor with one digit, rounded down, as a power of ten where it is large: more would be noise.

    >>> _times(347.0), _times(2.5e20)
    ('300', '10²⁰')
    """
    if factor == inf:
        return "infinitely many"
    power = floor(log10(factor) + 1e-9)
    if power >= 6:
        return "10" + str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{floor(factor / 10**power * (1 + 1e-9)) * 10**power:,}"
