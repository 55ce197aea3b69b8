"""Arrays of other libraries, recognised by DLPack, and their conversion to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["CPU", "in_numpy", "is_tensor", "torch_of"]

CPU = 1
"""DLPack's number of the CPU."""


def torch_of(why: str) -> Any:
    """Return PyTorch, or raise ImportError with a sentence that begins with ``why``."""
    try:
        import torch
    except ImportError:
        raise ImportError(f"{why} needs PyTorch: pip install 'swiftem[gpu]'.") from None
    return torch


def is_tensor(data: Any) -> bool:
    """Tell whether data are an array of another library: of PyTorch, CuPy, JAX, anything with DLPack.

    >>> is_tensor(np.zeros(3)), is_tensor([1.0])
    (False, False)
    """
    if isinstance(data, np.ndarray | np.generic) or type(data).__module__.startswith("pyarrow"):
        return False  # columns of pyarrow have DLPack, and names and missing values, which it lacks
    return hasattr(data, "__dlpack_device__")


def in_numpy(data: Any) -> Any:
    """Return a tensor as an array of NumPy; other data unchanged.

    >>> in_numpy([1.0])
    [1.0]
    """
    if not is_tensor(data):
        return data
    if hasattr(data, "detach"):  # of PyTorch, which may have a gradient
        return data.detach().cpu().numpy()
    if int(data.__dlpack_device__()[0]) == CPU:
        return np.from_dlpack(data)
    return torch_of("an array on a device").from_dlpack(data).cpu().numpy()
