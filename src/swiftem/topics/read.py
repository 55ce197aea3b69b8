"""Counts as documents: in memory, on a device, read in blocks, or with the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import (
    MemoryLimitError,
    check_not_lazy,
    in_numpy,
    is_tensor,
    read_sample_weight,
)
from swiftem.core.files import in_words, scratch_array
from swiftem.core.problem import BASE, Budget
from swiftem.core.types import Array, Index
from swiftem.data.as_source import DEVICE_KERNELS, counts_of_tensor, is_planned, kernels_of
from swiftem.data.documents.corpus import open_documents
from swiftem.data.documents.counts import DocumentSource, checked_sparse, is_sparse, stacked
from swiftem.data.units.source import current_client, parts_of, token_of
from swiftem.fit.config import budget, device_memory_limit
from swiftem.methods import VarianceReducedEM
from swiftem.topics.compute.corpus import (
    BLOCK,
    PIECES,
    DeviceDocuments,
    Documents,
    SmallDocuments,
    StreamedDocuments,
)
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.resolve import Facts, Place, TopicSpec

if TYPE_CHECKING:
    from swiftem.data.documents.counts import Counts

AnyDocuments = Documents | StreamedDocuments | UnitDocuments

FEW_ENTRIES = 1 << 19
"""Entries times topics up to which nothing is compiled, so that a first fit does not wait. It is a rule of
sizes, not of what was compiled before: the same data give the same bits."""
FEW_DOCUMENTS = 5_000
"""Passes by NumPy take three times as long: half a second in a fit of 1,000 documents, and not of more."""
BLOCKS = 8
"""Blocks of documents in memory: read ahead, in use, kept for batches, and parts copied out of them."""
TABLES = PIECES + 8
"""Arrays (V, K) in memory: partial sums, counts, topics and their transposes."""
MOST_WORDS = 2**31 - 1
"""Word indices are int32 in the loops over documents."""
START = 60 * 10**6
"""For the documents that are clustered or evaluated, and for k-means."""


def is_read(X: Any) -> bool:
    """Return whether documents are in a file or a source, which are read in blocks."""
    return isinstance(X, str | os.PathLike | DocumentSource)


def is_elsewhere(X: Any) -> bool:
    """Return whether documents are in a file, a source or a Dask collection."""
    return is_planned(X) or is_read(X)


def documents_elsewhere(
    X: Any, sample_weight: ArrayLike | None, n_components: int, device: str
) -> tuple[StreamedDocuments | UnitDocuments, Sequence[str]]:
    """Return the documents of a file, a source or a Dask collection, and the names of words, if there are."""
    if kernels_of(device) is not None:
        where = "documents read in blocks" if is_read(X) else "a Dask collection"
        raise ValueError(
            f"device must be 'cpu' for {where}, got {device!r}: on a GPU counts must be in memory "
            "(read_corpus loads them)."
        )
    if is_read(X):
        return StreamedDocuments(open_documents(X), in_numpy(sample_weight), budget().scratch), ()
    units = UnitDocuments(
        parts_of("X", X),
        None if sample_weight is None else parts_of("sample_weight", sample_weight),
        client=current_client(),
        token=token_of(X, sample_weight),
        is_small=lambda entries, documents: is_small(entries, documents, n_components),
    )
    return units, units.names


def counts_in_memory(X: Any) -> Any:
    """Return counts as an array or a sparse matrix, not validated; a file or a source is loaded."""
    if is_read(X):
        return stacked(block for _, block in open_documents(X).blocks(BLOCK))
    if not hasattr(X, "dtype") and isinstance(X, Sequence) and len(X) and isinstance(X[0], str):
        raise ValueError("X must be counts of words, got texts: count them with CountVectorizer first.")
    check_not_lazy("X", X)
    if is_planned(X):
        import dask

        X = X.compute() if hasattr(X, "compute") else stacked(dask.compute(*X))
    X = counts_of_tensor(X) if is_tensor(X) else X
    if isinstance(X, np.matrix):
        X = np.asarray(X)
    if is_sparse(X) and len(X.shape) == 2:
        X = checked_sparse("X", X)  # scikit-learn's conversion of an invalid matrix may crash
        if X.shape[1] > MOST_WORDS:
            raise ValueError(f"X must have at most {MOST_WORDS:,} words, got {X.shape[1]:,}.")
    return X


def weights_of(sample_weight: ArrayLike | None, X: Any, *, may_be_zero: bool = False) -> Array | None:
    """Return the validated weights of documents in memory, or None."""
    if is_planned(sample_weight):
        import dask

        parts = parts_of("sample_weight", sample_weight)
        sample_weight = np.concatenate([np.asarray(part) for part in dask.compute(*parts)])
    return read_sample_weight(sample_weight, X.shape[0], may_be_zero=may_be_zero)


def documents_in_memory(
    counts: Counts, weight: Array | None, n_components: int, device: str, X: Any
) -> Documents:
    """Return counts as documents, on the device that is given or that X is on."""
    kernels = kernels_of(device, X)
    if kernels is None:
        return documents_for(counts, weight, n_components)
    name = kernels.removeprefix(DEVICE_KERNELS)
    return DeviceDocuments(counts, weight, device=name, limit=device_memory_limit())


def documents_for(counts: Counts, weight: Array | None, n_components: int) -> Documents:
    """Return counts (D, V) as documents: a small corpus without compiled code.

    >>> from scipy.sparse import csr_array
    >>> type(documents_for(csr_array([[1.0, 2.0]]), None, 5)).__name__
    'SmallDocuments'
    """
    small = is_small(counts.nnz, counts.shape[0], n_components)
    return (SmallDocuments if small else Documents)(counts, weight)


def is_small(entries: int, documents: int, n_components: int) -> bool:
    """Return whether a corpus is fitted without compiled code."""
    return entries * n_components <= FEW_ENTRIES and documents <= FEW_DOCUMENTS


def of_positive_weight(documents: AnyDocuments) -> tuple[AnyDocuments, Index | None]:
    """Return documents of positive weight, and their indices if others were left out, in memory only."""
    if not isinstance(documents, Documents) or (documents.weight > 0).all():
        return documents, None
    numbers = np.flatnonzero(documents.weight > 0)
    return documents.some(numbers), numbers


def facts_of(documents: AnyDocuments) -> Facts:
    """Return what a fit depends on of its documents."""
    if isinstance(documents, UnitDocuments):
        return Facts("units", documents.n, documents.few.with_words, documents.n_words)
    place: Place = "memory"
    if isinstance(documents, DeviceDocuments):
        place = "device"
    elif isinstance(documents, StreamedDocuments):
        place = "blocks"
    return Facts(place, documents.n, documents.with_words, documents.n_words, documents.extent)


def prepare(documents: AnyDocuments, spec: TopicSpec, limits: Budget) -> None:
    """Choose what passes compute in, and a scratch file for topics of documents that do not fit.

    Raises
    ------
    MemoryLimitError
        If the rest does not fit, either.
    """
    if isinstance(documents, UnitDocuments):
        return
    documents.dtype = spec.dtype
    limit, scratch, _ = limits
    if limit is None or not isinstance(documents, StreamedDocuments):
        return
    n_components, n_words = len(spec.alpha), documents.n_words
    tables = TABLES * 8 * n_words * n_components
    needed = BASE + START + tables + BLOCKS * documents.largest + 6 * 8 * documents.n
    if needed > limit:
        raise MemoryLimitError(
            f"memory_limit must be at least {in_words(needed)} for {n_components} topics of "
            f"{n_words:,} words, got {in_words(limit)}."
        )
    copies = 3 if isinstance(spec.method, VarianceReducedEM) else 2
    if needed + copies * 8 * documents.n * n_components > limit:
        documents.allocate = lambda shape: scratch_array(shape, np.float64, scratch)
