"""Data of other libraries, tensors and Dask collections, and the device that tensors are on."""

from __future__ import annotations

import re
import sys
from typing import Any

from swiftem.core.checks import in_numpy, is_tensor, shown, torch_of

__all__ = [
    "DEVICE_KERNELS",
    "counts_of_tensor",
    "in_numpy",
    "is_planned",
    "is_tensor",
    "kernels_of",
    "like",
    "torch_of",
]

CUDA = 2
"""DLPack's number of NVIDIA's GPUs."""
DEVICE_KERNELS = "torch:"
"""Kernels of a device are called this, and the name of the device: "torch:cuda:0"."""


def is_planned(data: object) -> bool:
    """Return whether ``data`` is a Dask collection, or a list of Delayed objects.

    >>> import numpy as np
    >>> is_planned(np.zeros(3)), is_planned([])
    (False, False)
    """
    parts = data if isinstance(data, list | tuple) else [data]
    return len(parts) > 0 and all(hasattr(type(part), "__dask_graph__") for part in parts)


def counts_of_tensor(data: Any) -> Any:
    """Return a tensor as an array of NumPy, or of SciPy if it is sparse (CSR, CSC or COO of PyTorch).

    >>> counts_of_tensor([[1.0]])
    [[1.0]]
    """
    if not str(getattr(data, "layout", "")).startswith("torch.sparse_"):
        return in_numpy(data)
    from scipy.sparse import coo_array

    entries = data.detach().to_sparse_coo().coalesce().cpu()
    return coo_array(
        (entries.values().numpy(), entries.indices().numpy()), shape=tuple(entries.shape)
    ).tocsr()


def like(data: Any, result: Any) -> Any:
    """Return an array or a tensor in the library and on the device of ``data``, if these are a tensor.

    >>> import numpy as np
    >>> like([[1.0]], np.zeros(2))
    array([0., 0.])
    """
    if not is_tensor(data):
        return result
    if hasattr(data, "detach"):  # of PyTorch
        tensor = result if is_tensor(result) else torch_of("a tensor").from_numpy(result)
        return tensor.to(data.device)
    library = sys.modules[type(data).__module__.partition(".")[0]]  # CuPy's arrays do not name theirs
    namespace = getattr(data, "__array_namespace__", lambda: library)()
    return namespace.from_dlpack(result) if is_tensor(result) else namespace.asarray(result)


def kernels_of(device: str, data: Any = None) -> str | None:
    """Return the kernels of a device, or None for the CPU's.

    Parameters
    ----------
    device : str
        "cpu", "cuda", "cuda:1", or "auto": that of ``data`` if they are on a GPU, else the CPU. "torch:cpu"
        is PyTorch's CPU device as if it were a GPU: for tests on machines without one.
    data : object
        The user's data.

    Examples
    --------
    >>> kernels_of("auto", [[1.0]]) is None
    True
    """
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|torch:cpu|cuda(:\d+)?", device):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got {shown(device)}.")
    if device == "auto":
        device_type, number = data.__dlpack_device__() if is_tensor(data) else (0, 0)
        if int(device_type) != CUDA:
            return None
        device = f"cuda:{number}"
    if device == "cpu":
        return None
    torch = torch_of(f"device={device!r}")
    if device.startswith(DEVICE_KERNELS):
        return device
    if not torch.cuda.is_available():
        raise ValueError(f"device must be 'cpu' here, got {device!r}: PyTorch finds no CUDA device.")
    number = int(device.partition(":")[2] or torch.cuda.current_device())
    if number >= torch.cuda.device_count():
        last = torch.cuda.device_count() - 1
        raise ValueError(f"device must be at most 'cuda:{last}' on this machine, got {device!r}.")
    return f"{DEVICE_KERNELS}cuda:{number}"
