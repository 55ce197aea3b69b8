"""CUDA graphs: what is started again and again, without the cost of starting it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from swiftem.data.foreign import torch_of

__all__ = ["graph_of"]


def graph_of(call: Callable[[], Any], pool: Any = None) -> tuple[Any, Any]:
    """Return a CUDA graph of what ``call`` starts, which is not done, and its result, which replays write.

    Graphs with the same ``pool`` share memory: one of them may run at a time, and results must be kept. An
    older graph must not be freed meanwhile, which the garbage collector may do at any time.
    """
    torch = torch_of("a graph")
    graph, is_enabled = torch.cuda.CUDAGraph(), gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            result = call()
    finally:
        if is_enabled:
            gc.enable()
    return graph, result
