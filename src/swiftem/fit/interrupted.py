"""The warning of a fit that Ctrl-C ended."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = ["InterruptedWarning"]


class InterruptedWarning(ConvergenceWarning):  # type: ignore[misc]
    """Ctrl-C ended a fit; the estimator has what there was."""
