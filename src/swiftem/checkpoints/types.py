"""The named tuples of checkpoints by the names that files have for them."""

from __future__ import annotations

from typing import Any

from swiftem.engine.snapshots import (
    Before,
    DocumentSnapshot,
    Far,
    Followed,
    Places,
    PLSASnapshot,
    Running,
)
from swiftem.methods.accelerated import AcceleratedState
from swiftem.methods.acceleration import SquaremState
from swiftem.methods.anderson import AndersonState
from swiftem.methods.em import EMState
from swiftem.methods.fast_incremental_em import FastIncrementalEMState
from swiftem.methods.incremental_em import IncrementalEMState
from swiftem.methods.online_em import AveragedState, GrowingState, OnlineEMState
from swiftem.methods.opt_fiem import OptFIEMState
from swiftem.methods.spider_em import SpiderEMState
from swiftem.methods.variance_reduced_em import VarianceReducedEMState
from swiftem.models.bound_mixture import MixtureStatistics, MixtureTheta
from swiftem.models.documents import DocumentTheta
from swiftem.models.gaussian_mixture import GaussianMixtureStatistics, GaussianMixtureTheta
from swiftem.models.gaussian_theta import GaussianStatistics, GaussianTheta
from swiftem.models.observed_gaussians import ObservedStatistics
from swiftem.models.plsa import PLSAStatistics, PLSATheta
from swiftem.result import State

__all__ = ["TYPES"]

TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        State,
        EMState, OnlineEMState, GrowingState, AveragedState, IncrementalEMState, FastIncrementalEMState,
        VarianceReducedEMState, OptFIEMState, SpiderEMState, AcceleratedState, SquaremState, AndersonState,
        GaussianMixtureTheta, GaussianTheta, MixtureTheta, PLSATheta, DocumentTheta,
        GaussianMixtureStatistics, GaussianStatistics, ObservedStatistics, MixtureStatistics, PLSAStatistics,
        Followed, Far, Before, PLSASnapshot, Places, Running, DocumentSnapshot,
    )
}  # fmt: skip
"""What runs keep. A process that reads a checkpoint has not yet imported the lane that wrote it."""
