"""The device of a computation, by the name that a user gives."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any

from swiftem._checks import shown
from swiftem.data.rows.tensor_source import is_tensor, torch_of

__all__ = ["DEVICE_KERNELS", "graph_of", "kernels_of"]

DEVICE_KERNELS = "torch:"
"""Kernels of a device are called this, and the name of the device: "torch:cuda:0"."""
CUDA = 2
"""DLPack's number of CUDA devices."""


def kernels_of(device: str, data: Any = None) -> str | None:
    """Return the kernels of a device, or None for the CPU's.

    Parameters
    ----------
    device : str
        "cpu", "cuda", "cuda:1", or "auto": that of ``data`` if they are on a GPU, else the CPU.
    data : object
        The user's data.

    Examples
    --------
    >>> kernels_of("auto", [[1.0]]) is None
    True
    """
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got {shown(device)}.")
    if device == "auto":
        kind, number = data.__dlpack_device__() if is_tensor(data) else (0, 0)
        if int(kind) != CUDA:
            return None
        device = f"cuda:{number}"
    if device == "cpu":
        return None
    torch = torch_of(f"device={device!r}")
    if not torch.cuda.is_available():
        raise ValueError(f"device must be 'cpu' here, got {device!r}: PyTorch finds no CUDA device.")
    number = int(device.partition(":")[2] or torch.cuda.current_device())
    if number >= torch.cuda.device_count():
        last = torch.cuda.device_count() - 1
        raise ValueError(f"device must be at most 'cuda:{last}' on this machine, got {device!r}.")
    return f"{DEVICE_KERNELS}cuda:{number}"


def graph_of(call: Callable[[], Any]) -> tuple[Any, Any]:
    """Return a CUDA graph of what ``call`` starts, which is not done, and its result, which replays write.

    An older graph must not be freed meanwhile, which the garbage collector may do at any time.
    """
    torch = torch_of("a graph")
    graph, is_enabled = torch.cuda.CUDAGraph(), gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            result = call()
    finally:
        if is_enabled:
            gc.enable()
    return graph, result
