"""Checks and values of :func:`swiftem.run`'s arguments before the first iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem._checks import as_floats, check_choice, check_int, shown
from swiftem._typing import Array, Theta
from swiftem.data.draws import TERMINATION, Entropy, Seed, generator, read_seed
from swiftem.data.source import Source
from swiftem.files.scratch import is_scratch, scratch_array
from swiftem.methods.method import Method
from swiftem.models.model import BoundModel
from swiftem.result import State
from swiftem.schedules import Schedule
from swiftem.termination import RandomTermination

__all__ = [
    "KERNELS",
    "check_callable",
    "check_kernels",
    "check_method",
    "check_model",
    "check_state",
    "copy_arrays",
    "read_n_iter",
    "read_start",
]

KERNELS = ("auto", "reference")


def check_callable(name: str, value: Any) -> None:
    """Raise TypeError if the value is neither None nor a function."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function of an iterate, got {shown(value)}.")


def check_kernels(kernels: str) -> None:
    """Raise ValueError for an unknown name of kernels.

    >>> check_kernels("reference")
    """
    check_choice("kernels", kernels, KERNELS)


def check_model(model: Any) -> None:
    """Raise TypeError if the value is not a model, but a name or a class, for example."""
    if isinstance(model, type) or not hasattr(model, "bind"):
        raise TypeError(f"model must be an instance such as models.PLSAModel(10), got {shown(model)}.")


def check_method(method: Any) -> None:
    """Raise TypeError if the value is not a method, but a name or a class, for example."""
    if not isinstance(method, Method):
        raise TypeError(f"method must be an instance such as methods.EM(), got {shown(method)}.")


def check_state(
    state: State | None,
    method: Method,
    source: Source,
    seed: Seed,
    theta0: Theta | None,
    s0: ArrayLike | None,
) -> Entropy:
    """Return the seed's words: those of the state, if there is a valid one."""
    if state is None:
        return read_seed(seed)
    if not isinstance(state, State):
        raise TypeError(f"state must be the state of a result, got {type(state).__name__}.")
    if theta0 is None or s0 is None:
        raise ValueError("state needs theta0 and s0, the theta and s of the same result.")
    if seed is not None and not np.array_equal(read_seed(seed), state.entropy):
        raise ValueError("seed must be left out if state is given, or be that of the first run.")
    if (state.name, state.n) != (method.name, source.n):
        raise ValueError(
            f"state must come from a run of {method.name} on {source.n} samples, "
            f"got one of {state.name} on {state.n}."
        )
    return state.entropy


def read_n_iter(n_iter: Any, gamma: Schedule, entropy: Entropy, k0: int) -> int:
    """Return the number of iterations: as given, or drawn."""
    if isinstance(n_iter, RandomTermination):
        return n_iter.draw(gamma, generator(entropy, TERMINATION, k0), first=k0)
    return check_int("n_iter", n_iter, minimum=0)


def read_start(
    model: BoundModel, theta0: Theta | None, s0: ArrayLike | None, rng: np.random.Generator
) -> tuple[Theta, Any]:
    """Return θ^(0), given, drawn, or from ``s0``, and ``s0`` as an array or None."""
    s: Array | None = None
    if s0 is not None:
        s = as_floats("s0", s0, shape=(None,)).copy()
        try:
            model.unpack(s)
        except ValueError as error:
            raise ValueError(f"s0 does not fit model and data: {error}") from None
        if not model.in_domain(s):
            raise ValueError("s0 must lie in the model's domain, where the M-step exists.")
    if theta0 is not None:
        return model.check_theta(theta0), s
    return (model.initial_theta(rng) if s is None else model.m_step(s)), s


def copy_arrays(value: Any, scratch: Any = None) -> Any:
    """Return a copy of nested tuples of arrays, so that one state can be resumed twice.

    Arrays in a scratch file are copied to another file, in the folder ``scratch``.
    """
    if isinstance(value, np.ndarray):
        if is_scratch(value):  # it did not fit into memory
            copied = scratch_array(value.shape, value.dtype, scratch)
            copied[...] = value
            return copied
        return value.copy()
    if isinstance(value, tuple):
        parts = [copy_arrays(part, scratch) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
