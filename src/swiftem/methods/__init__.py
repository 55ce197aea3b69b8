"""How the proxy of the statistics is computed: one method per file."""

from swiftem.methods.accelerated import Accelerated
from swiftem.methods.anderson import Anderson
from swiftem.methods.em import EM
from swiftem.methods.fast_incremental_em import FastIncrementalEM
from swiftem.methods.incremental_em import IncrementalEM
from swiftem.methods.method import EStep, Method
from swiftem.methods.online_em import OnlineEM
from swiftem.methods.opt_fiem import OptFIEM
from swiftem.methods.spider_em import SpiderEM
from swiftem.methods.squarem import Squarem
from swiftem.methods.update import Update
from swiftem.methods.variance_reduced_em import VarianceReducedEM

__all__ = [
    "EM",
    "METHODS",
    "Accelerated",
    "Anderson",
    "EStep",
    "FastIncrementalEM",
    "IncrementalEM",
    "Method",
    "OnlineEM",
    "OptFIEM",
    "SpiderEM",
    "Squarem",
    "Update",
    "VarianceReducedEM",
]

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (EM, OnlineEM, IncrementalEM, VarianceReducedEM, FastIncrementalEM, OptFIEM, SpiderEM)
}
"""The library's methods by name; the contract tests run on all of them."""
