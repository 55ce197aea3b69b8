"""Checks that the content of a checkpoint matches the run to resume: compiled code trusts shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem._typing import Theta
from swiftem.checkpoints.run_checkpoint import Position
from swiftem.data.draws import Entropy
from swiftem.data.source import Source
from swiftem.data.units.unit_source import UnitSource
from swiftem.methods.method import Method
from swiftem.models.components import BoundComponents
from swiftem.models.gaussian_mixture import BoundGaussianMixture
from swiftem.models.model import BoundModel
from swiftem.models.plsa import BoundPLSA
from swiftem.result import State

__all__ = ["check_form", "check_position"]

OURS = ("swiftem.models.", "swiftem.methods.")
"""Modules whose types have fixed shapes; values of other types may vary."""


def check_position(
    at: Position, model: BoundModel, method: Method, source: Source, theta: Theta, entropy: Entropy
) -> None:
    """Raise ValueError or TypeError unless the run can resume from ``at``.

    Parameters
    ----------
    at : Position
        As read from the checkpoint.
    model, method, source, entropy
        Those of the run.
    theta : NamedTuple
        Parameters of the right form: given or drawn as the start of the run.
    """
    state = at.state
    if not isinstance(state, State) or (state.name, state.n) != (method.name, source.n):
        raise ValueError(f"it is not of {method.name} on {source.n} samples")
    if not np.array_equal(state.entropy, entropy):
        raise ValueError("its seed differs")
    numbers = (state.k, state.evaluations, state.rejected)
    if not all(type(number) is int and number >= 0 for number in numbers) or type(at.recorded) is not int:
        raise ValueError("its counts are invalid")
    check_form("theta", at.theta, theta)
    model.unpack(at.s)
    if at.s.dtype != np.float64 or at.s.ndim != 1:
        raise ValueError("s has a different form")
    memory: Any = getattr(state.method, "memory", None)
    if method.remembers:
        rows = None if isinstance(source, UnitSource) else _row_length(model)
        if np.shape(memory)[:1] != (source.n,) or rows not in (None, np.shape(memory)[-1]):
            raise ValueError("the memory has a different size")
    check_form("the method's state", state.method, method.init(theta, at.s, memory))


def _row_length(model: BoundModel) -> int | None:
    """Return how many numbers per sample a memory has, None if only an E-step can tell."""
    if isinstance(model, BoundComponents):
        return model.row_length
    if isinstance(model, BoundGaussianMixture):
        return model.model.n_components
    return model.model.n_topics if isinstance(model, BoundPLSA) else None


def check_form(name: str, value: Any, like: Any) -> None:
    """Raise TypeError unless two values have the same type, and their arrays the same shapes.

    >>> check_form("s", np.zeros(3), np.ones(2))
    Traceback (most recent call last):
    TypeError: s has a different form
    """
    same = type(value) is type(like)
    if isinstance(like, tuple) and type(like).__module__.startswith(OURS):
        same = same and len(value) == len(like)
        for part, other in zip(value if same else (), like, strict=False):
            check_form(name, part, other)
    elif isinstance(like, np.ndarray):
        same = same and value.shape == like.shape and value.dtype.kind in "biuf"
    elif isinstance(like, dict):
        same = same and value.keys() == like.keys()
        for key in like if same else ():
            check_form(name, value[key], like[key])
    elif not isinstance(like, tuple):  # a number may be Python's or NumPy's
        same = True
    if not same:
        raise TypeError(f"{name} has a different form")
