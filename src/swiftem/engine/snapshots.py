"""What lanes keep in addition to s and θ, so that a run continues with the same bits.

The types are apart from the lanes, which are imported when they are used: checkpoints have a table of them.
"""

from __future__ import annotations

from typing import NamedTuple

from swiftem._typing import Array

__all__ = ["Before", "DocumentSnapshot", "Far", "Followed", "PLSASnapshot", "Places", "Running"]


class Followed(NamedTuple):
    """``before`` (q,): the statistics whose θ̄ is the anchor, so that compiled code writes the same bits."""

    before: Array


class Far(NamedTuple):
    """Whether a sample was far from all means: the loop then rounds differently."""

    followed: Followed | None


class Before(NamedTuple):
    """θ of the previous iteration: ``documents`` (D, K), ``words`` (V, K), ``norm`` (K,), ``prior`` (2,)."""

    documents: Array
    words: Array
    norm: Array
    prior: Array


class PLSASnapshot(NamedTuple):
    """The form of the statistics in :mod:`swiftem.engine.numba.plsa`."""

    documents: Array
    words: Array
    totals: Array
    scale: float
    rates: Array | None
    before: Before | None


class Places(NamedTuple):
    """``begin`` (D, K): where E-steps begin, (0, K) if that is ``end``; ``end`` (D, K): where they ended."""

    begin: Array
    end: Array


class Running(NamedTuple):
    """Counts = centre + scale·u, both (V, K); a centre of no rows is zero. ``total`` (K,) is scale·Σ_v u."""

    u: Array
    scale: float
    centre: Array
    total: Array


class DocumentSnapshot(NamedTuple):
    """``running``: the lane's form of the statistics; ``places``: of documents."""

    running: Running
    places: Places
