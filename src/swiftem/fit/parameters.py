"""What the parameters of estimators may be, and the parts of scikit-learn that only some versions have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from swiftem.core.checks import either, shown

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Estimators have no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method itself."""
        return method


__all__ = [
    "ARRAY",
    "AT_LEAST_ONE",
    "BOOLEAN",
    "CALLABLE",
    "COMMON",
    "NONE",
    "NOT_NEGATIVE",
    "Allowed",
    "CallbackSupportMixin",
    "check_parameters",
    "instance_of",
    "integer",
    "number",
    "one_of",
    "with_callbacks",
]


MOST = float(np.finfo(np.float64).max)


class Allowed(NamedTuple):
    """Alternatives that a parameter may have, in words, and the test for them."""

    words: Iterable[str]
    has: Callable[[Any], bool]


def one_of(names: Collection[str]) -> Allowed:
    """Return what allows some texts.

    >>> one_of(["cpu", "cuda"]).words
    ["'cpu'", "'cuda'"]
    """
    return Allowed([repr(name) for name in names], lambda value: isinstance(value, str) and value in names)


def instance_of(*types: type) -> Allowed:
    """Return what allows objects of some types."""
    return Allowed([f"a {kind.__name__}" for kind in types], lambda value: isinstance(value, types))


def integer(least: int) -> Allowed:
    """Return what allows integers from ``least`` on.

    >>> [integer(1).has(value) for value in (1, 0, True, 2.0, "a")]
    [True, False, False, False, False]
    """

    def has(value: Any) -> bool:
        is_integer = isinstance(value, Integral) and not isinstance(value, bool)
        return is_integer and value >= least

    return Allowed([f"an integer of at least {least}"], has)


def number(least: float, most: float = MOST) -> Allowed:
    """Return what allows finite numbers from ``least`` to ``most``.

    >>> [number(0.0).has(value) for value in (0, 2.5, -1.0, float("nan"), "a")]
    [True, True, False, False, False]
    """

    def has(value: Any) -> bool:
        given = value.item() if isinstance(value, np.floating) else value  # NumPy would cast the limits
        return isinstance(given, Real) and least <= given <= most  # type: ignore[operator]

    return Allowed([f"a number of at least {least:g}{f' and at most {most:g}' if most < MOST else ''}"], has)


def _is_seed(value: object) -> bool:
    try:
        check_random_state(value)
    except ValueError:
        return False
    return True


def _is_array(value: object) -> bool:
    return not isinstance(value, str | Mapping) and any(
        hasattr(value, name) for name in ("__len__", "shape", "__array__")
    )


NONE = Allowed(["None"], lambda value: value is None)
BOOLEAN = Allowed(["True", "False"], lambda value: isinstance(value, bool | np.bool_))
CALLABLE = Allowed(["a function"], callable)
ARRAY = Allowed(["an array"], _is_array)
AT_LEAST_ONE = integer(1)
NOT_NEGATIVE = number(0.0)
COMMON: dict[str, Sequence[Allowed]] = {
    "n_components": [AT_LEAST_ONE],
    "tol": [NOT_NEGATIVE],
    "device": [instance_of(str)],
    "random_state": [Allowed(["an integer", "a RandomState", "None"], _is_seed)],
    "verbose": [BOOLEAN, integer(0)],
    "verbose_interval": [AT_LEAST_ONE],
    "warm_start": [BOOLEAN],
}
"""What all estimators accept."""


def check_parameters(values: Mapping[str, Any], allowed: Mapping[str, Sequence[Allowed]]) -> None:
    """Raise ValueError for the first parameter with a value that is not allowed.

    >>> check_parameters({"tol": -1.0}, {"tol": [NOT_NEGATIVE, NONE]})
    Traceback (most recent call last):
    ValueError: tol must be a number of at least 0 or None, got -1.0.
    """
    for name, value in values.items():
        choices = allowed.get(name, ())
        if choices and not any(choice.has(value) for choice in choices):
            words = either(word for choice in choices for word in choice.words)
            raise ValueError(f"{name} must be {words}, got {shown(value)}.")
