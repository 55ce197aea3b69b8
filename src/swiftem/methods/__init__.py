"""How the proxy of the statistics is computed: one method per file."""

from typing import Any

from swiftem.core.method import EStep, Method, Update
from swiftem.methods.accelerated import Accelerated, Anderson, Squarem
from swiftem.methods.averaged import Averaged
from swiftem.methods.em import EM
from swiftem.methods.fast_incremental_em import FastIncrementalEM
from swiftem.methods.incremental_em import IncrementalEM
from swiftem.methods.online_em import OnlineEM
from swiftem.methods.opt_fiem import OptFIEM
from swiftem.methods.spider_em import SpiderEM
from swiftem.methods.variance_reduced_em import VarianceReducedEM

__all__ = [
    "EM",
    "METHODS",
    "Accelerated",
    "Anderson",
    "Averaged",
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


def make_method(name: str, **wanted: Any) -> Method:
    """Return a method by name, with the wanted fields that it has.

    >>> make_method("iem", step_size=0.1, batch_size=5)
    IncrementalEM(batch_size=5, memory_dtype='float64', order='iid')
    """
    kind = METHODS[name]
    return kind(**{field: value for field, value in wanted.items() if field in kind.field_names()})
