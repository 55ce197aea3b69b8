"""The user's data: of which kind they are, on which device, and their conversion to a source."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import check_not_lazy, in_numpy, is_tensor, shown, torch_of
from swiftem.core.model import Model
from swiftem.core.problem import Problem, check_model
from swiftem.core.source import Source
from swiftem.data.array import ArraySource
from swiftem.data.blocks import BlockSource, is_one_shot
from swiftem.data.documents.counts import is_sparse
from swiftem.data.documents.tokens import CountSource, TokenSource
from swiftem.data.tables import are_paths, open_source
from swiftem.data.tensor import TensorSource

if TYPE_CHECKING:
    from distributed import Client

CUDA = 2
"""DLPack's number of NVIDIA's GPUs."""
DEVICE_KERNELS = "torch:"
"""Kernels of a device are called this, and the name of the device: "torch:cuda:0"."""


def as_source(
    data: Any,
    sample_weight: ArrayLike | None = None,
    *,
    on_device: bool = False,
    allow_missing: bool = False,
    client: Client | None = None,
) -> Source:
    """Return ``data`` as a source.

    Parameters
    ----------
    data : array-like (n,) or (n, d), SciPy sparse matrix, tuple of two arrays, path, function, or Source
        Rows; document-word counts; (documents, words) of the tokens; a file, a folder or a list of files, as
        in :func:`swiftem.data.open_source`; a function that returns an iterator of blocks of rows, or another
        object that can be iterated repeatedly (:class:`swiftem.data.BlockSource`); or a source, which is
        returned unchanged.
    sample_weight : array-like, optional
        One weight per row, per document of a count matrix, or per token of a pair of arrays. Files and
        blocks contain their own weights.
    on_device : bool
        Whether the rows of a tensor stay on its device; by default they are copied to an array.
    allow_missing : bool
        Whether NaN in rows is a missing cell, instead of an error.
    client : distributed.Client, optional
        The client that computes the units of a Dask collection, or of files. By default collections use
        the current client, and files are read here.

    Examples
    --------
    >>> from swiftem.data import as_source
    >>> as_source([1.0, 2.5]).n
    2
    >>> as_source(([0, 0, 1], [3, 1, 3])).n_words
    4
    """
    if client is not None or is_planned(data):
        return _as_units(data, sample_weight, client, allow_missing)
    if type(data) is np.ndarray:
        return ArraySource(data, sample_weight, allow_missing=allow_missing)
    if on_device and is_tensor(data):
        return TensorSource(data, sample_weight)
    check_not_lazy("data", data)
    if isinstance(data, Source):
        no_weights_beside(sample_weight)
        return data
    if are_paths(data) or is_blocks(data):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight must be a column of the file, open_source(path, weight=...), or be given with "
                "each block as a pair (rows, weights)."
            )
        if are_paths(data):
            return open_source(data, allow_missing=allow_missing)
        return BlockSource(data, allow_missing=allow_missing)
    if is_sparse(data):
        return CountSource(data, sample_weight)
    if isinstance(data, tuple):
        if len(data) != 2 or not all(_is_one_dimensional(part) for part in data):
            raise ValueError(
                "data given as a tuple must be two one-dimensional arrays, (documents, words) of the tokens."
            )
        return TokenSource(*data, sample_weight=sample_weight)
    return ArraySource(data, sample_weight, allow_missing=allow_missing)


def no_weights_beside(sample_weight: ArrayLike | None) -> None:
    """Raise ValueError if weights are given for a source, which has its own."""
    if sample_weight is not None:
        raise ValueError("sample_weight must be given to the source, not as a separate argument.")


def read_problem(model: Model, data: Any, sample_weight: ArrayLike | None = None) -> Problem:
    """Return the problem of model and data as in :func:`swiftem.run`; data may already be one."""
    if isinstance(data, Problem):
        if data.model is not model or sample_weight is not None:
            raise ValueError(
                "model must be the problem's, and sample_weight left out, if data are a problem."
            )
        return data
    check_model(model)
    return Problem(model, as_source(data, sample_weight, allow_missing=model.missing == "ignore"))


def _as_units(
    data: Any, sample_weight: ArrayLike | None, client: Client | None, allow_missing: bool
) -> Source:
    """Return data as units, which a client computes if one is given."""
    from swiftem.data.units.source import UnitSource, open_units, units_of  # it imports this module

    if client is not None and not hasattr(client, "scheduler_info"):
        raise TypeError(f"client must be a distributed.Client or None, got {shown(client)}.")
    if is_planned(data):
        return units_of(data, sample_weight, client=client, allow_missing=allow_missing)
    if sample_weight is not None:
        raise ValueError("sample_weight must be chunked like the rows of a Dask collection, or be a column.")
    if isinstance(data, UnitSource):
        if data.units.client is not client:
            raise ValueError("client must be the client of the units: give it to open_units.")
        return data
    if are_paths(data):
        return open_units(data, client=client, allow_missing=allow_missing)
    raise ValueError(
        f"client must be None unless data are a Dask collection, units or files, got {type(data).__name__}."
    )


def is_planned(data: object) -> bool:
    """Return whether ``data`` is a Dask collection, or a list of Delayed objects.

    >>> import numpy as np
    >>> is_planned(np.zeros(3)), is_planned([])
    (False, False)
    """
    parts = data if isinstance(data, list | tuple) else [data]
    return len(parts) > 0 and all(hasattr(type(part), "__dask_graph__") for part in parts)


def is_blocks(data: object) -> bool:
    """Return whether ``data`` makes or holds blocks: functions, iterators, and iterables that are not arrays.

    >>> import numpy as np
    >>> is_blocks(lambda: iter([])), is_blocks(np.zeros(3)), is_blocks([[1.0]])
    (True, False, False)
    """
    if callable(data) or is_one_shot(data):
        return True
    # Arrays, tables and sparse matrices of every library can be converted, or have a length.
    is_array_like = any(hasattr(data, name) for name in ("__len__", "__array__", "tocsr"))
    return isinstance(data, Iterable) and not is_array_like


def _is_one_dimensional(values: ArrayLike) -> bool:
    try:
        return np.ndim(values) == 1
    except ValueError:  # rows of unequal length
        return False


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
        "cpu", "cuda", "cuda:1", or "auto": where ``data`` are if that is a GPU, else the CPU. "torch:cpu"
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
