"""The certificate of convergence: the relative change of the statistics by one more E-step."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.models.components import BoundComponents
from swiftem.models.plsa import BoundPLSA
from swiftem.problem import Problem

__all__ = ["certificate", "certify", "relative_change"]


def relative_change(before: Array, after: Array, scale: Array | float = 1.0) -> float:
    r"""Return :math:`\|(a - b) \circ c\| / \|a \circ c\|` for a before, b after and factors c.

    Parameters
    ----------
    before, after : ndarray, of the same shape
        Statistics, and those of one more E-step.
    scale : ndarray, shape of the statistics, or float
        Factors that make the statistics free of units.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.certificate import relative_change
    >>> relative_change(np.array([3.0, 4.0]), np.array([3.0, 3.5]))
    0.1
    """
    size = before * scale
    largest = float(np.abs(size).max(initial=0.0))
    if not largest:  # all were zero: everything that is there now has changed
        return float(np.any(after != before))
    # Relative to the largest, as squares of large numbers overflow and those of small ones underflow.
    return float(np.linalg.norm((before - after) * scale / largest) / np.linalg.norm(size / largest))


def certificate(bound: Any, s: Array, after: Array) -> float:
    r"""Return :math:`\|s - \bar s(\bar\theta(s))\| / \|s\|`, with norms of unit-free statistics.

    If one more E-step changes nothing, θ is a stationary point (Lemma global). Statistics of mixtures with
    covariances are scaled as if rows had unit variance, those of other families as if features had a mean
    square of one. For pLSA only the statistics of the words are used, which determine the topics. Others are
    not scaled: a mixture of unit variances has the standard deviation as its unit.

    Parameters
    ----------
    bound : BoundModel
        The model bound to its data.
    s : ndarray, shape (q,)
        Statistics.
    after : ndarray, shape (q,)
        :math:`\bar s(\bar\theta(s))`.
    """
    scale: Array | float = 1.0
    if isinstance(bound, BoundComponents):
        scale = bound.without_unit(after)
    elif isinstance(bound, BoundPLSA):
        scale = np.ones_like(s)
        bound.unpack(scale).doc_topic[...] = 0.0
    return relative_change(s, after, scale)


def certify(problem: Problem, s: Array, theta: Theta) -> tuple[float, float]:
    r"""Return the objective at :math:`\theta = \bar\theta(s)` and the certificate of ``s``, by one pass."""
    after = problem.e_step.full(theta)
    return problem.e_step.objective(theta), certificate(problem.bound, s, after)
