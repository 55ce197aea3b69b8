"""All pairs: few cases in which every two values of every two factors meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

CANDIDATES = 10
"""Cases that are drawn for each one that is kept: the one with most new pairs."""

COMPLETIONS = 200
"""Draws of the other factors for a pair before it counts as forbidden."""


def installed(names: Iterable[Any]) -> list[Any]:
    """Return the names without tensors and devices if PyTorch, which is optional, is not installed."""
    has_torch = find_spec("torch") is not None
    return [name for name in names if has_torch or not any(word in str(name) for word in ("tensor", "torch"))]


def in_folders(
    cases: Iterable[Any], folder: Path, part: int = 0, parts: int = 1
) -> Iterator[tuple[int, Any, Path]]:
    """Yield the number, the case and a new folder of one part of the cases."""
    for number, case in list(enumerate(cases))[part::parts]:
        here = folder / str(number)
        here.mkdir(parents=True)
        yield number, case, here


def all_pairs(
    factors: dict[str, list[Any]],
    rng: np.random.Generator,
    *,
    allowed: Callable[[dict[str, Any]], bool] | None = None,
    most: int | None = None,
) -> list[dict[str, Any]]:
    """Return cases, one value per factor, in which every allowed pair of values of two factors occurs.

    ``allowed`` gets whole cases. A pair is given up as forbidden if no completion of it is found that is
    allowed. Equal seeds give equal cases; values may be any objects, also unhashable ones. With ``most``,
    there are no more cases: those with most pairs, more or less.
    """
    factor_of = np.repeat(np.arange(len(factors)), [len(values) for values in factors.values()])
    values = [value for values in factors.values() for value in values]
    missing = factor_of[:, None] != factor_of  # pairs of places in values
    cases = []
    while missing.any() and (most is None or len(cases) < most):
        pair = tuple(int(place) for place in rng.choice(np.argwhere(missing)))
        draws = [_complete(pair, factor_of, missing, rng) for _ in range(CANDIDATES)]
        draws.sort(key=lambda draw: -int(missing[np.ix_(draw, draw)].sum()))
        blind = (_complete(pair, factor_of, None, rng) for _ in range(COMPLETIONS))
        for draw in chain(draws, blind):
            case = {name: values[place] for name, place in zip(factors, draw, strict=True)}
            if allowed is None or allowed(case):
                missing[np.ix_(draw, draw)] = False
                cases.append(case)
                break
        else:
            missing[pair] = missing[pair[::-1]] = False
    return [cases[k] for k in rng.permutation(len(cases))]


def _complete(pair: Any, factor_of: Any, missing: Any, rng: np.random.Generator) -> list[int]:
    """Return a place per factor: in a random order, each takes its value with most missing pairs, or any."""
    draw = {int(factor_of[place]): int(place) for place in pair}
    for factor in rng.permutation(factor_of[-1] + 1).tolist():
        if factor not in draw:
            places = rng.permutation(np.flatnonzero(factor_of == factor))
            gains = 0 if missing is None else missing[places][:, list(draw.values())].sum(axis=1)
            draw[factor] = int(places[np.argmax(gains)])
    return [draw[factor] for factor in sorted(draw)]
