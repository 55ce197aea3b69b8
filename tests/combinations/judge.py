"""Outcomes of calls: a value, a refusal in one sentence, or a finding; and how far two of them differ."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from faults.call_fuzzer import is_own, problem_of


class Outcome(NamedTuple):
    """What a call did: its value, the sentence that refused it, or what is wrong; and its warnings."""

    value: Any = None
    refusal: str = ""
    finding: str = ""
    warned: frozenset[str] = frozenset()


def attempt(do: Callable[[], Any]) -> Outcome:
    """Call a function; other exceptions than a sentence, and foreign warnings, are findings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            value = in_arrays(do())
        except Exception as error:
            wrong = problem_of(error)
            return Outcome(finding=wrong) if wrong else Outcome(refusal=f"{type(error).__name__}: {error}")
    foreign = [str(each.message)[:120] for each in heard if not is_own(each)]
    if foreign:
        return Outcome(finding=f"warns {foreign[0]!r}")
    return Outcome(value=value, warned=frozenset(each.category.__name__ for each in heard))


def in_arrays(value: Any) -> Any:
    """Return arrays of NumPy in place of tensors, tables and Dask collections; dicts and tuples of such."""
    if isinstance(value, Mapping):
        return {str(name): in_arrays(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [in_arrays(part) for part in value]
    if hasattr(type(value), "__dask_graph__"):
        return in_arrays(value.compute())
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    return value


def difference(one: Any, other: Any, precision: float) -> str:
    """Return in what two results differ by more than the precision; nothing if they agree."""
    if isinstance(one, dict) and isinstance(other, dict):
        if set(one) != set(other):
            return f"has {sorted(set(one) ^ set(other))} in one only"
        found = ((name, difference(one[name], other[name], precision)) for name in one)
        return next((f"{name} {what}" for name, what in found if what), "")
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"has {len(one)} and {len(other)} parts"
        return next(filter(None, map(difference, one, other, [precision] * len(one))), "")
    if isinstance(one, str | None) or isinstance(other, str | None):
        return "" if one == other else f"is {one!r} and {other!r}"
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape:
        return f"has shapes {a.shape} and {b.shape}"
    if a.dtype.kind not in "biuf":
        return "" if np.array_equal(a, b) else f"is {a.ravel()[:3]} and {b.ravel()[:3]}"
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "is finite in one only"
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    scale = float(np.abs(a).max(initial=1.0))
    error = float(np.abs(a - b).max(initial=0.0))
    return f"differs by {error / scale:.1e}" if error > precision * scale else ""


def unequal_labels(one: Any, other: Any, precision: float) -> str:
    """Return how many labels differ; in float32 a row between two components may go either way."""
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape:
        return f"has shapes {a.shape} and {b.shape}"
    share = float((a != b).mean())
    return f"differs in {share:.1%} of the labels" if share > (0.0 if precision < 1e-6 else 0.01) else ""
