"""The E-steps of mixtures in every technology, the fastest first."""

from __future__ import annotations

from typing import Any

from swiftem.core.compute import Placement, Technology
from swiftem.core.source import Source
from swiftem.data.parts import is_served

__all__ = ["CHANNELS", "CODES", "COMPLETED", "LINEAR", "MIXTURE"]

LINEAR, CODES, CHANNELS, COMPLETED = -1, -2, -3, -4
"""How E-steps compute T(y), in addition to the kinds of covariance, which count from 0.

LINEAR: features as they are given. CODES: features, and codes of categories. CHANNELS: the family computes
its own E-steps. COMPLETED: rows with missing cells are completed."""


def _not_on_device(model: Any, source: Source, placement: Placement) -> str | None:
    return "the device is the CPU" if placement.device == "cpu" else None


def _not_compiled(source: Source, placement: Placement) -> str | None:
    if placement.form != "auto":
        return "plain NumPy is asked for"
    return None if is_served(source) else "rows are neither in an array nor in a file"


def _no_passes(model: Any, source: Source, placement: Placement) -> str | None:
    return "cells are missing" if model.code == COMPLETED else _not_compiled(source, placement)


def _no_patterns(model: Any, source: Source, placement: Placement) -> str | None:
    return "rows are not completed" if model.code != COMPLETED else _not_compiled(source, placement)


def _not_numpy(model: Any, source: Source, placement: Placement) -> str | None:
    return None if placement.form == "numpy" else "there is a faster form or a plainer one"


def _not_kept(model: Any, source: Source, placement: Placement) -> str | None:
    if model.code < LINEAR:
        return "T(y) is no matrix"
    return _not_numpy(model, source, placement)


MIXTURE = (
    Technology("PyTorch", _not_on_device, "swiftem.mixture.compute.torch:TorchCompute"),
    Technology("compiled passes", _no_passes, "swiftem.mixture.compute.passes:PassesCompute"),
    Technology(
        "compiled passes by patterns of missing cells",
        _no_patterns,
        "swiftem.mixture.compute.missing:CompletedCompute",
    ),
    Technology("NumPy", _not_kept, "swiftem.mixture.compute.numpy:NumpyCompute"),
    Technology("NumPy, block by block", _not_numpy, "swiftem.mixture.compute.numpy:PlainCompute"),
)
