"""All pairs: few cases in which every two values of every two factors meet."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np

Case = dict[str, Any]

CANDIDATES = 20
"""Cases that are drawn for each one that is kept: the one with most new pairs."""

COMPLETIONS = 200
"""Draws of the other factors for a pair before it counts as forbidden."""


def all_pairs(
    factors: dict[str, list[Any]], rng: np.random.Generator, *, allowed: Callable[[Case], bool] | None = None
) -> list[Case]:
    """Return cases, one value per factor, in which every allowed pair of values of two factors occurs.

    ``allowed`` gets whole cases. A pair is given up as forbidden if no completion of it is found that is
    allowed. Equal seeds give equal cases; values may be any objects, also unhashable ones.
    """
    names = list(factors)
    missing = {
        ((a, i), (b, j))
        for a, b in combinations(names, 2)
        for i, j in product(range(len(factors[a])), range(len(factors[b])))
    }
    cases = []
    while missing:
        target = min(missing)  # not an arbitrary one of the set: equal seeds give equal cases
        draws = [_complete(dict(target), factors, missing, rng) for _ in range(CANDIDATES)]
        found = [draw for draw in draws if _is_allowed(draw, factors, allowed)]
        if not found:
            blind = (_complete(dict(target), factors, set(), rng) for _ in range(COMPLETIONS))
            found = [draw for draw in blind if _is_allowed(draw, factors, allowed)][:1]
        if not found:
            missing.discard(target)
            continue
        best = max(found, key=lambda draw: len(missing & _pairs(draw)))
        missing -= _pairs(best)
        cases.append({name: factors[name][best[name]] for name in names})
    return [cases[k] for k in rng.permutation(len(cases))]


def _complete(
    draw: dict[str, int], factors: dict[str, list[Any]], missing: set[Any], rng: np.random.Generator
) -> dict[str, int]:
    """Return places for all factors: in a random order, each takes the value with most missing pairs."""
    for name in rng.permutation([name for name in factors if name not in draw]).tolist():
        places = rng.permutation(len(factors[name])).tolist()
        draw[name] = max(places, key=lambda i: len(missing & _pairs_with(draw, name, i, list(factors))))
    return {name: draw[name] for name in factors}


def _pairs_with(draw: dict[str, int], name: str, place: int, order: list[str]) -> set[Any]:
    one = (name, place)
    return {
        (other, one) if order.index(other[0]) < order.index(name) else (one, other) for other in draw.items()
    }


def _pairs(draw: dict[str, int]) -> set[Any]:
    return set(combinations(draw.items(), 2))


def _is_allowed(
    draw: dict[str, int], factors: dict[str, list[Any]], allowed: Callable[[Case], bool] | None
) -> bool:
    return allowed is None or allowed({name: factors[name][place] for name, place in draw.items()})
