"""The E-steps of hidden Markov models, the fastest first."""

from __future__ import annotations

from typing import Any

from swiftem.core.compute import Placement, Technology
from swiftem.core.source import Source

__all__ = ["HMM"]


def _not_compiled(model: Any, source: Source, placement: Placement) -> str | None:
    return "plain NumPy is asked for" if placement.form == "reference" else None


HMM = (Technology("compiled passes", _not_compiled, "swiftem.hmm.compute.passes:PassesCompute"),)
