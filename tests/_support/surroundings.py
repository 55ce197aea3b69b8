"""Limits and checkpoints of fits, which are contexts, as options beside the parameters of estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import swiftem

AROUND = ("memory_limit", "scratch", "device_memory_limit", "checkpoint", "checkpoint_every", "resume")
"""The options, named as the arguments of ``swiftem.run``."""


@contextmanager
def within(
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    resume: Any = False,
    **limits: Any,
) -> Iterator[None]:
    """Set limits, and keep checkpoints of the fit in the block if there is a folder."""
    with ExitStack() as stack:
        stack.enter_context(swiftem.config_context(**limits))
        if checkpoint is not None:
            stack.enter_context(swiftem.checkpoint(checkpoint, every=checkpoint_every, resume=resume))
        yield


def fit_within(make: Callable[..., Any], *data: Any, sample_weight: Any = None, **options: Any) -> Any:
    """Return ``make(**parameters)`` fitted to data, within the surroundings that are among the options."""
    around = {name: options.pop(name) for name in AROUND if name in options}
    with within(**around):
        return make(**options).fit(*data, sample_weight=sample_weight)
