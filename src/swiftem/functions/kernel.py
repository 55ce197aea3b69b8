"""Compiled iterations of a user's model whose functions are compiled by Numba.

The functions are arguments of the loop, and their types are signatures: one compiled loop in the disk cache
serves every model with the same signatures, and never contains another model's code. No class of a user's may
be part of a signature, because Numba would import its module whenever it reads the cache: parameters that are
a NamedTuple are passed as a plain tuple.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np

from swiftem.core.types import Array, Index, Theta
from swiftem.kernels.compile import inlined, kernel
from swiftem.kernels.loop import Rule
from swiftem.kernels.vector import weighted

log = logging.getLogger("swiftem")
types: Any = numba.types  # only partly typed

Type = Any
"""A type of Numba."""
Functions = tuple[Any, Any, Any]
"""expected_statistics, m_step and in_domain, compiled by Numba."""
WRONG_SHAPE = "expected_statistics must return arrays of shape (b, q) and (b,) for b samples."


class Samples(NamedTuple):
    """All samples, and memory for the drawn ones.

    Attributes
    ----------
    y : ndarray, shape (n, d)
        The samples, in any layout.
    batch, rows : ndarray, shape (b,) or (b, d), and (b, d)
        The same memory twice, for drawn samples: in the shape for the user's functions, and as rows.
    weight, mean_weight : ndarray, shape (n,), or (0,) if all are one
        Sample weights in means over all samples, and in means over a batch.
    """

    y: np.ndarray
    batch: np.ndarray
    rows: np.ndarray
    weight: Array
    mean_weight: Array


class Steps(NamedTuple):
    """Step sizes (K,) and indices (K, b) of the samples that are drawn and of those that are renewed."""

    gamma: Array
    drawn: Index
    renewed: Index


@kernel
def is_finite(s):  # type: ignore[no-untyped-def]
    """Return whether no statistic is NaN or infinite."""
    finite = True
    for value in s:
        finite &= np.isfinite(value)
    return finite


@inlined
def _gather(samples, index):  # type: ignore[no-untyped-def]
    """Copy the drawn samples: users may write to their arguments."""
    for a in range(len(index)):
        for c in range(samples.y.shape[1]):
            samples.rows[a, c] = samples.y[index[a], c]
    return samples.batch


@inlined
def _check(rows, b, q):  # type: ignore[no-untyped-def]
    """Raise ValueError for statistics that the sums would read out of bounds."""
    if rows.shape[0] != b or rows.shape[1] != q:
        raise ValueError(WRONG_SHAPE)


@inlined
def _mean(rows, index, weight, correction, reference, places, proxy):  # type: ignore[no-untyped-def]
    """Write the weighted mean of ``rows`` minus ``correction`` times ``reference[places]`` to ``proxy``."""
    proxy[:] = 0.0
    for a in range(len(index)):
        w = weighted(weight[1], index[a], weight[0])
        for c in range(len(proxy)):
            taken = correction * np.float64(reference[places[a], c]) if correction > 0.0 else 0.0
            proxy[c] += w * (np.float64(rows[a, c]) - taken)


@inlined
def _renew(rows, index, weight, memory, change, centre):  # type: ignore[no-untyped-def]
    """Add the drawn samples' change of the memory's mean to ``centre``, and write them to the memory.

    A sample that is drawn again finds its new row: it adds no change.
    """
    change[:] = 0.0
    for a in range(len(index)):
        w = weighted(weight[1], index[a], weight[0])
        for c in range(len(centre)):
            old = np.float64(memory[index[a], c])
            memory[index[a], c] = rows[a, c]
            change[c] += w * (np.float64(memory[index[a], c]) - old)
    for c in range(len(centre)):
        centre[c] += change[c]


@kernel
def iterate(  # type: ignore[no-untyped-def]
    expected_statistics, m_step, in_domain, samples, rule, steps, s, theta, anchor, centre, memory
):
    """Do iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    expected_statistics, m_step, in_domain : functions
        (y, θ) → (rows (b, q), log-likelihood (b,)); s → θ; s → bool.
    samples, rule, steps : Samples, Rule and Steps
        Data and update.
    s, theta, anchor : ndarray of shape (q,), and parameters
        Initial values; not written to.
    centre, memory : ndarray, shapes (q,) and (n, q)
        As in the method's state; written to if the method renews them.

    Returns
    -------
    s, theta, anchor
        Their values after the iterations.
    before : ndarray, shape (q,)
        If the anchor follows: the ŝ of which it is θ̄.
    rejected, moved : int
        Number of rejected steps, and of accepted ones before the last iteration.

    Notes
    -----
    M-steps may return views of ``s``: the two buffers are swapped only if a step is accepted, so that θ is
    never overwritten, and the previous θ only after its last use.
    """
    b, q = steps.drawn.shape[1], len(s)
    s, new, proxy = s.copy(), np.empty(q), np.empty(q)
    before, order, rejected, moved = s, np.arange(b), 0, 0
    own, everyone = (rule.scale / b, samples.mean_weight), (rule.share, samples.weight)
    for k in range(len(steps.gamma)):
        moved = k - rejected
        for renews in (False, True):  # one call for both: it takes long to compile
            if not (rule.renews if renews else rule.reads):
                continue
            index = steps.renewed[k] if renews else steps.drawn[k]
            rows = expected_statistics(_gather(samples, index), theta)[0]
            _check(rows, b, q)
            if renews:
                _renew(rows, index, everyone, memory, new, centre)
                continue
            if rule.at_anchor:
                reference = expected_statistics(samples.batch, anchor)[0]
                _check(reference, b, q)
                _mean(rows, index, own, rule.correction, reference, order, proxy)
            elif rule.in_memory:
                _mean(rows, index, own, rule.correction, memory, index, proxy)
            else:
                _mean(rows, index, own, 0.0, rows, order, proxy)
            for c in range(q):
                proxy[c] += rule.correction * centre[c]
        for c in range(q):
            if not rule.reads:
                proxy[c] = centre[c]
            if rule.follows:
                centre[c] = proxy[c]
        if rule.follows:
            before, anchor = s, theta
        gamma = steps.gamma[k]
        for c in range(q):
            new[c] = s[c] + gamma * (proxy[c] - s[c]) if gamma < 1.0 else proxy[c]  # (sestep)
        if in_domain(new):
            s, new = new, s
            theta = m_step(s)  # (mstep)
        else:
            rejected += 1
    return s, theta, anchor, before, rejected, moved


class Compiled(NamedTuple):
    """The loop for a user's functions.

    Attributes
    ----------
    run : callable
        :func:`iterate`, which trusts the types of its arguments.
    functions : tuple
        Its first three arguments: the user's functions, with parameters of type ``theta``.
    theta : numba type
        Type of the parameters.
    names : type or None
        The NamedTuple class of the user's parameters, if they are one.
    """

    run: Callable[..., tuple[Array, Theta, Theta, Array, int, int]]
    functions: Functions
    theta: Type
    names: type | None


@lru_cache(maxsize=64)
def compiled(functions: Functions, dtype: np.dtype, ndim: int, memory_dtype: np.dtype) -> Compiled | None:
    """Compile the loop for (expected_statistics, m_step, in_domain), or return None if Numba cannot.

    Parameters
    ----------
    functions : tuple of numba functions
        The user's functions.
    dtype, ndim
        Of the data.
    memory_dtype
        Of the memory.
    """
    try:
        return _compile(functions, numba.from_dtype(dtype), ndim, numba.from_dtype(memory_dtype))
    except Exception as error:  # Numba fails in many ways; none of them may stop what NumPy can do
        log.debug("iterations are not compiled, as the model's functions do not compile: %s", error)
        return None


def _compile(functions: Functions, number: Type, ndim: int, remembered: Type) -> Compiled:
    expected_statistics, m_step, in_domain = functions
    vector, fixed = types.float64[::1], types.Array(types.float64, 1, "C", readonly=True)
    index, batch = types.Array(types.intp, 2, "C", readonly=True), types.Array(number, ndim, "C")
    theta, names = _signature(m_step, vector).return_type, None
    if isinstance(theta, types.BaseNamedTuple):
        names = theta.instance_class
        expected_statistics, m_step = _without_names(expected_statistics, m_step, names)
        theta = _signature(m_step, vector).return_type
    signatures = (
        _signature(expected_statistics, batch, theta),
        _signature(m_step, vector),
        _signature(in_domain, vector),
    )
    _check_types(theta, signatures[0].return_type, signatures[2].return_type)
    data = types.Array(number, 2, "A", readonly=True)
    samples = types.NamedTuple([data, batch, types.Array(number, 2, "C"), fixed, fixed], Samples)
    rule = types.NamedTuple([types.boolean] * 6 + [types.float64] * 3, Rule)
    steps = types.NamedTuple([fixed, index, index], Steps)
    state = (fixed, theta, theta, vector, types.Array(remembered, 2, "C"))
    run = iterate.compile((*map(types.FunctionType, signatures), samples, rule, steps, *state))
    return Compiled(run, (expected_statistics, m_step, in_domain), theta, names)


def _signature(function: Any, *arguments: Type) -> Type:
    """Compile a function for arguments of these types and return its signature."""
    if arguments not in function.signatures:
        function.compile(arguments)
    for signature in function.nopython_signatures:
        if signature.args == arguments:
            return types.unliteral(signature.return_type)(*arguments)
    raise TypeError(f"{function} needs the interpreter.")


@lru_cache(maxsize=64)
def _without_names(expected_statistics: Any, m_step: Any, names: type) -> tuple[Any, Any]:
    """Return the functions with the parameters as a plain tuple instead of a NamedTuple."""

    @numba.njit(nogil=True)
    def plain_expected_statistics(y, theta):  # type: ignore[no-untyped-def]
        return expected_statistics(y, names(*theta))

    @numba.njit(nogil=True)
    def plain_m_step(s):  # type: ignore[no-untyped-def]
        return m_step(s)[:]

    return plain_expected_statistics, plain_m_step


def _check_types(theta: Type, statistics: Type, domain: Type) -> None:
    """Raise TypeError for types that the loop cannot read; plain iterations then report the error."""
    if not _is_plain(theta):
        raise TypeError(f"parameters of type {theta}")
    is_pair = isinstance(statistics, types.BaseTuple) and _is_plain(statistics)
    if not is_pair or [getattr(part, "ndim", 0) for part in statistics] != [2, 1]:
        raise TypeError(f"expected_statistics returns {statistics}")
    if not isinstance(domain, types.Boolean | types.Integer):
        raise TypeError(f"in_domain returns {domain}")


def _is_plain(kind: Type) -> bool:
    """Return whether a type consists of arrays and numbers, so that it can be cached."""
    if isinstance(kind, types.BaseTuple):
        return not isinstance(kind, types.BaseNamedTuple) and all(map(_is_plain, kind.types))
    number = kind.dtype if isinstance(kind, types.Array) else kind
    return isinstance(number, types.Integer | types.Float | types.Boolean)


def converted(theta: Theta, kind: Type) -> Theta:
    """Return parameters as a value of a Numba type: the same numbers, in the layout of compiled code.

    >>> vector = types.float64[::1]
    >>> converted([1, np.zeros(2, dtype=np.float32)], types.Tuple([types.float64, vector]))
    (1.0, array([0., 0.]))
    """
    if isinstance(kind, types.BaseTuple):
        if not isinstance(theta, tuple | list) or len(theta) != len(kind.types):
            raise TypeError(f"parameters must be a tuple of {len(kind.types)}.")
        return tuple(map(converted, theta, kind.types))
    value = np.asarray(theta)
    dtype = np.dtype((kind.dtype if isinstance(kind, types.Array) else kind).name)
    if not np.can_cast(value.dtype, dtype, "safe") or value.ndim != getattr(kind, "ndim", 0):
        raise TypeError(f"parameters must be of type {kind}.")
    if isinstance(kind, types.Array):
        return np.require(value, dtype, ["W", "A", "F" if kind.layout == "F" else "C"])
    return value.astype(dtype).item()
