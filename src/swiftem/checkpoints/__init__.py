"""Checkpoints: the state of a run in a folder, from which a killed run resumes exactly."""

from swiftem.checkpoints.run_checkpoint import NoCheckpoint, RunCheckpoint, kept_seed, open_checkpoint
from swiftem.checkpoints.store import Store

__all__ = ["NoCheckpoint", "RunCheckpoint", "Store", "kept_seed", "open_checkpoint"]
