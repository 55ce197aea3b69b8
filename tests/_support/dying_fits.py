"""What stands for the end of a process in the middle of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


class Death(Exception):
    """Stands for what ends a process."""


@contextmanager
def dying(saves: int) -> Iterator[None]:
    """Let runs and fits end after so many checkpoints, the last of which is complete."""
    from swiftem.core.checkpoint import Store

    save, left = Store.save, [saves]

    def save_and_die(store: Any, tree: Any, **parts: Any) -> None:
        save(store, tree, **parts)
        left[0] -= "state" in tree
        if not left[0]:
            raise Death

    with patch.object(Store, "save", save_and_die):
        yield
