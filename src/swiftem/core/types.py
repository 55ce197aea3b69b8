"""Names for the array types that appear in signatures, and walks over nested tuples of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""A float64 array."""

Index = NDArray[np.intp]
"""Sample indices."""

Rows = NDArray[Any]
"""Rows of data, or of numbers made of them, of any type."""

Theta = Any
"""Parameters: a NamedTuple of arrays, one type per model."""

Tree = Any
"""Nested tuples, lists and dicts of arrays, numbers and texts, such as the state of a method."""


def leaves(tree: Tree) -> Iterator[Any]:
    """Yield the arrays and numbers in nested tuples, lists and dicts.

    >>> list(leaves((1.0, [2, {"a": 3}])))
    [1.0, 2, 3]
    """
    if isinstance(tree, dict):
        tree = list(tree.values())
    if not isinstance(tree, tuple | list):
        yield tree
        return
    for part in tree:
        yield from leaves(part)


def map_arrays(function: Callable[[np.ndarray], np.ndarray], tree: Tree) -> Tree:
    """Return nested tuples and dicts with ``function`` applied to each array in them.

    >>> map_arrays(np.sum, (np.ones(3), "text", {"a": np.ones(2)}))
    (np.float64(3.0), 'text', {'a': np.float64(2.0)})
    """
    if isinstance(tree, np.ndarray):
        return function(tree)
    if isinstance(tree, dict):
        return {key: map_arrays(function, part) for key, part in tree.items()}
    if isinstance(tree, tuple):
        parts = [map_arrays(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree
