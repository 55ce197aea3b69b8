"""Kinds of counts of words: the kinds of tables in memory, sparse matrices, files and units of documents."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from combinations.inputs import KINDS as TABLES
from combinations.inputs import Input, Kind, array, columns, rounded, typed
from combinations.pairs import installed

from swiftem.data import CsrDocuments, open_documents

Make = Callable[[np.ndarray, Any, Path], Input]
whole, ones = rounded(np.int64), rounded(bool)


def quietly(change: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    """Return the function without warnings: of NumPy's matrix, diagonals, tensors that are beta."""

    def make(counts: np.ndarray) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return change(counts)

    return make


def disordered(counts: np.ndarray) -> Any:
    """Entries in any order, each in two parts, and stored zeros."""
    row, column = np.nonzero(np.ones_like(counts))
    order = np.random.default_rng(0).permutation(2 * len(row))
    values = np.tile(counts[row, column] / 2.0, 2)[order]
    return sp.coo_array((values, (np.tile(row, 2)[order], np.tile(column, 2)[order])), shape=counts.shape)


def with_zeros(counts: np.ndarray) -> Any:
    made = sp.csr_array(counts + 1.0)
    made.data -= 1.0
    return made


def wide_indices(counts: np.ndarray) -> Any:
    made = sp.csr_matrix(counts)
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


def pandas_sparse(counts: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(columns(counts)).astype(pd.SparseDtype(float, 0.0))


def sparse_tensor(layout: str) -> Make:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Input:
        import torch

        made = quietly(lambda counts: getattr(torch.tensor(counts), layout)())(counts)
        return Input(made, None if weight is None else torch.tensor(weight))

    return make


def units(block: Callable[[np.ndarray], Any]) -> Make:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Input:
        import dask

        def split(values: np.ndarray, change: Callable[[np.ndarray], Any]) -> list[Any]:
            return [dask.delayed(change)(part) for part in np.array_split(values, 3)]

        return Input(split(counts, block), None if weight is None else split(weight, np.asarray))

    return make


def npz(form: str) -> Make:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Input:
        sp.save_npz(folder / "counts.npz", sp.coo_array(counts).asformat(form))
        return Input(str(folder / "counts.npz"), weight)

    return make


def market(name: str, dense: bool = False) -> Make:
    def make(counts: np.ndarray, weight: Any, folder: Path) -> Input:
        with (folder / "plain.mtx").open("wb") as file:
            scipy.io.mmwrite(file, counts if dense else sp.coo_array(counts), precision=17)
        content = (folder / "plain.mtx").read_bytes()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return Input(folder / name, weight)

    return make


def write_words(file: Path, counts: np.ndarray) -> None:
    file.write_text("\n".join(f"word{v}" for v in range(counts.shape[1])) + "\n")


def uci(counts: np.ndarray, weight: Any, folder: Path) -> Input:
    lines = [f"{d + 1} {v + 1} {int(counts[d, v])}" for d, v in np.argwhere(counts)]
    head = map(str, (*counts.shape, len(lines)))
    (folder / "docword.toy.txt").write_text("\n".join([*head, *lines]) + "\n")
    write_words(folder / "vocab.toy.txt", counts)
    return Input(folder / "docword.toy.txt", weight)


def lda_c(counts: np.ndarray, weight: Any, folder: Path) -> Input:
    lines = []
    for row in counts:
        pairs = [f"{v}:{int(row[v])}" for v in np.flatnonzero(row)]
        lines.append(" ".join([str(len(pairs)), *pairs]))
    (folder / "toy.ldac").write_text("\n".join(lines) + "\n")
    write_words(folder / "toy.vocab", counts)
    return Input(folder / "toy.ldac", weight)


def opened(counts: np.ndarray, weight: Any, folder: Path) -> Input:
    return Input(open_documents(lda_c(counts, None, folder).X), weight)


NO_COUNTS = (
    "transposed", "has array", "sparse", "ArraySource", "float32 Fortran", "pandas Float64", "pandas float32",
)  # fmt: skip
"""Kinds of tables in memory of which no counts are given."""
DENSE = [name for name, kind in TABLES.items() if not kind.stored and name not in NO_COUNTS]
FILES: dict[str, Kind] = {
    "npz csr": Kind(npz("csr")),
    "npz csc": Kind(npz("csc")),
    "npz coo": Kind(npz("coo")),
    "mtx": Kind(market("counts.mtx")),
    "mtx.gz": Kind(market("counts.mtx.gz")),
    "mtx of an array": Kind(market("counts.mtx", dense=True)),
    "uci": Kind(uci, values=whole),
    "lda-c": Kind(lda_c, values=whole),
    "open_documents": Kind(opened, values=whole),
    "CsrDocuments": array(lambda counts: CsrDocuments(sp.csr_array(counts))),
}
UNITS: dict[str, Kind] = {
    **{name: TABLES[name] for name in ("Dask array", "Dask frame")},
    "delayed": Kind(units(sp.csr_array)),
    "delayed arrays": Kind(units(np.asarray)),
}
KINDS: dict[str, Kind] = {
    "csr_array": array(sp.csr_array),
    **{name: TABLES[name] for name in DENSE},
    "np.matrix": array(quietly(np.matrix)),
    "uint64": typed(np.uint64),
    "arrays in a list": array(list),
    "pandas sparse": array(pandas_sparse),
    "csr_matrix": array(sp.csr_matrix),
    "csc": array(sp.csc_array),
    "coo": array(disordered),
    "bsr": array(lambda counts: sp.bsr_array(counts, blocksize=(1, 5))),
    "lil": array(sp.lil_array),
    "dok": array(sp.dok_array),
    "dia": array(quietly(sp.dia_array)),
    "csr with zeros": array(with_zeros),
    "csr int64 indices": array(wide_indices),
    "csr float32": array(lambda counts: sp.csr_array(counts.astype(np.float32))),
    "csr int16": array(lambda counts: sp.csr_array(counts.astype(np.int16)), values=whole),
    "csr bool": array(lambda counts: sp.csr_array(counts.astype(bool)), values=ones),
    **{f"tensor {layout}": Kind(sparse_tensor(f"to_sparse_{layout}")) for layout in ("csr", "csc", "coo")},
    **FILES,
    **UNITS,
}
KINDS = {name: KINDS[name] for name in installed(KINDS)}


def is_whole(kind: str) -> bool:
    """Return whether a kind has whole numbers only."""
    return bool(KINDS[kind].values(np.full((2, 1), 0.25))[0, 0] != 0.25)
