"""Runs that survive: where a run stands, kept in a folder, so that a killed one goes on exactly there."""

from swiftem.checkpoints.run_checkpoint import NoCheckpoint, RunCheckpoint, kept_seed, open_checkpoint
from swiftem.checkpoints.store import Store

__all__ = ["NoCheckpoint", "RunCheckpoint", "Store", "kept_seed", "open_checkpoint"]
