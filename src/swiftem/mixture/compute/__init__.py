"""The E-steps of mixtures in every technology, the fastest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swiftem.core.compute import Placement, Technology
from swiftem.core.source import Source
from swiftem.data.samples import is_served

if TYPE_CHECKING:
    from swiftem.core.model import BoundModel
    from swiftem.mixture.components import BoundComponents

__all__ = ["CHANNELS", "CODES", "COMPLETED", "LINEAR", "MIXTURE"]

LINEAR, CODES, CHANNELS, COMPLETED = -1, -2, -3, -4
"""How E-steps compute T(y), in addition to the kinds of covariance, which count from 0.

LINEAR: features as they are given. CODES: features, and codes of categories. CHANNELS: the family computes
its own E-steps. COMPLETED: rows with missing cells are completed."""


def _not_on_device(model: BoundModel, source: Source, placement: Placement) -> str | None:
    return "the device is the CPU" if placement.device == "cpu" else None


def _not_compiled(model: BoundModel, source: Source, placement: Placement) -> str | None:
    if placement.form != "auto":
        return "plain NumPy is asked for"
    return None if is_served(source) else "rows are neither in an array nor in a file"


def _not_small(model: BoundComponents, source: Source, placement: Placement) -> str | None:
    if placement.form != "numpy":
        return "there is a faster form or a plainer one"
    return "T(y) is no matrix" if model.code < LINEAR else None


MIXTURE = (
    Technology("PyTorch", _not_on_device, "swiftem.mixture.compute.torch:TorchCompute"),
    Technology("compiled passes", _not_compiled, "swiftem.mixture.compute.passes:passes"),
    Technology("NumPy", _not_small, "swiftem.mixture.compute.numpy:NumpyCompute"),
    Technology("NumPy, block by block", lambda *_: None, "swiftem.mixture.compute.numpy:MixtureCompute"),
)
