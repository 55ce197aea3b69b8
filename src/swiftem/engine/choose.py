"""Which lane a run takes."""

from __future__ import annotations

from collections.abc import Callable

from swiftem.data.source import Source
from swiftem.engine.document_lane import CompiledDocuments, DocumentExpectation, document_lane
from swiftem.engine.expectation import Expectation
from swiftem.engine.functions import functions_lane
from swiftem.engine.gaussian_components import gaussian_components_lane
from swiftem.engine.gaussian_mixture import gaussian_mixture_lane
from swiftem.engine.lane import Lane, Task
from swiftem.engine.plsa import plsa_lane
from swiftem.models.documents import BoundDocuments
from swiftem.models.gaussian_components import BoundGaussians
from swiftem.models.gaussian_mixture import BoundGaussianMixture
from swiftem.models.model import BoundModel
from swiftem.models.plsa import BoundPLSA

__all__ = ["choose_expectation", "choose_lane"]


def choose_expectation(
    kernels: str, model: BoundModel, source: Source, between_blocks: Callable[[], None] = lambda: None
) -> Expectation:
    """Return E-steps with the fastest full passes there are for this model and source."""
    compiled: Expectation | None = None
    if kernels == "reference" and type(model) is BoundDocuments:
        return DocumentExpectation(model, source, between_blocks)
    if kernels != "reference" and type(model) is BoundGaussianMixture:
        from swiftem.engine.mixture_expectation import MixtureExpectation

        compiled = MixtureExpectation.of(model, source, between_blocks)
    elif kernels != "reference" and type(model) is BoundGaussians:
        from swiftem.engine.gaussian_expectation import GaussianExpectation

        compiled = GaussianExpectation.of(model, source, between_blocks)
    elif kernels != "reference" and type(model) is BoundPLSA:
        from swiftem.engine.plsa_expectation import PLSAExpectation

        compiled = PLSAExpectation.of(model, source, between_blocks)
    elif kernels != "reference" and type(model) is BoundDocuments:
        compiled = CompiledDocuments(model, source, between_blocks)
    if compiled is None:
        return Expectation(model, source, between_blocks)
    from swiftem.engine.numba.compile import say_when_compiling

    say_when_compiling()
    return compiled


def choose_lane(kernels: str, task: Task) -> Lane | None:
    """Return the fused lane for this model and method, or None: then iteration by iteration.

    Parameters
    ----------
    kernels : {"auto", "reference"}
        As the user said.
    task : Task
        Model, method and data.
    """
    if kernels == "reference":
        return None
    lanes = (gaussian_mixture_lane, gaussian_components_lane, plsa_lane, document_lane, functions_lane)
    for lane_for in lanes:
        lane = lane_for(task)
        if lane is not None:
            from swiftem.engine.numba.compile import say_when_compiling

            say_when_compiling()
            return lane
    return None
