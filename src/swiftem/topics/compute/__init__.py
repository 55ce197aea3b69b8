"""The E-steps of topics in every technology, the fastest first."""

from __future__ import annotations

from typing import Any

from swiftem.core.compute import Placement, Technology
from swiftem.core.source import Source
from swiftem.data.units.source import UnitSamples

__all__ = ["DOCUMENTS", "TOKENS"]


def _no_compiled_tokens(model: Any, source: Source, placement: Placement) -> str | None:
    if placement.form == "reference":
        return "plain NumPy is asked for"
    from swiftem.topics.compute.tokens import is_readable

    return None if is_readable(source) else "the counts are not of tokens in memory"


def _no_units(model: Any, source: Source, placement: Placement) -> str | None:
    return None if isinstance(source, UnitSamples) else "documents are in this process"


TOKENS = (Technology("compiled passes", _no_compiled_tokens, "swiftem.topics.compute.tokens:TokensCompute"),)
DOCUMENTS = (
    Technology("units", _no_units, "swiftem.topics.compute.units:UnitDocumentsCompute"),
    Technology("documents", lambda *_: None, "swiftem.topics.compute.documents:DocumentsCompute"),
)
