"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from swiftem.core.visible import visible

INSIDE = ("swiftem", "sklearn")
"""Packages between the user's call and a warning: validation and callbacks are decorators."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn, with the line that called swiftem or scikit-learn as its location."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(visible(message), category, stacklevel=level)
