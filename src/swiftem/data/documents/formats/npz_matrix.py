"""Sparse matrices in archives of :func:`scipy.sparse.save_npz`, validated."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from swiftem.data.documents.formats.lines import existing_file
from swiftem.data.documents.sparse_structure import checked_sparse
from swiftem.data.rows.npy_header import read_npy_header
from swiftem.files.durable import damage_named

__all__ = ["NPZ", "read_npz_matrix"]

NPZ = "a sparse matrix of counts, as scipy.sparse.save_npz writes it"
PARTS = {
    "csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "bsr": ("indices", "indptr"),
    "coo": ("row", "col"), "dia": ("offsets",),
}  # fmt: skip
"""The arrays of each form, in addition to shape and data."""
UNPACKED, FREE = 50, 16 << 20
"""Limits of an unpacked archive: this factor, plus this number of bytes. Counts that are all ones grow a
thousand times, but not their positions."""
ENTRY = 16
"""Bytes of an entry and its position in memory, whatever they take in the file."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
LONGEST_NAME = 8
"""Maximum number of characters of the form's name."""


def read_npz_matrix(file: Path) -> Any:
    """Return the sparse matrix in an archive, its structure validated; nothing pickled is read.

    The sizes that the archive claims are compared with its own size, and its arrays with each other, before
    memory is allocated for them.
    """
    existing_file(file, NPZ)
    with damage_named(file, NPZ), zipfile.ZipFile(file) as archive:
        members = _Members(file, archive)
        form = members.text("format")
        if form not in PARTS:
            raise ValueError(f"the form {form!r} is not known")
        shape = members.array("shape")
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
            raise ValueError("its shape is not two whole numbers")
        parts = [members.array(name) for name in PARTS[form]]
        data = members.array("data")
        members.check_unpacked(ENTRY * data.size)
        if data.dtype.kind not in "biuf":
            raise ValueError(f"{file} must hold real numbers, got {data.dtype}.")
        if any(part.dtype.kind not in "iu" for part in parts):
            raise ValueError("its indices are not whole numbers")
        return checked_sparse(f"{file}", _matrix(form, data, parts, (int(shape[0]), int(shape[1]))))


class _Members:
    """The arrays of an archive, by name."""

    def __init__(self, file: Path, archive: zipfile.ZipFile) -> None:
        self._file, self._archive = file, archive
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            if self._infos.setdefault(info.filename, info) is not info:
                raise ValueError(f"{info.filename[:40]!r} is in it twice")
        size = file.stat().st_size
        # If entries share bytes, so that a small file becomes a large one, their sum exceeds the file.
        if sum(info.compress_size for info in self._infos.values()) > size:
            raise ValueError("its parts overlap")
        self.check_unpacked(sum(info.file_size for info in self._infos.values()))

    def check_unpacked(self, size: int) -> None:
        """Raise ValueError if that much memory is needed for a much smaller file."""
        if size > UNPACKED * self._file.stat().st_size + FREE:
            raise ValueError(
                f"{self._file} must be at most {UNPACKED} times as large when unpacked, got more: "
                "save it with compressed=False if this is intended."
            )

    def array(self, name: str) -> NDArray[Any]:
        """Return a member as an array that owns its data."""
        info = self._infos.get(f"{name}.npy")
        if info is None:
            raise ValueError(f"it has no {name}.npy")
        if info.compress_type not in METHODS:
            raise ValueError(f"{name}.npy is compressed in a way that NumPy does not use")
        with self._archive.open(info) as stream:
            header = read_npy_header(cast(BinaryIO, stream), self._file, NPZ)
            if header.offset + header.n_bytes != info.file_size:
                raise ValueError(f"{name}.npy has another size than it says")
            content = stream.read()
        if len(content) != header.n_bytes:
            raise ValueError(f"{name}.npy is cut off")
        found = np.frombuffer(content, header.dtype).reshape(
            header.shape, order="F" if header.fortran else "C"
        )
        return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))

    def text(self, name: str) -> str:
        """Return a member that is one short string."""
        found = self.array(name)
        if found.shape != () or found.dtype.kind not in "SU" or found.dtype.itemsize > 4 * LONGEST_NAME:
            raise ValueError(f"{name}.npy is not one name")
        value = found.item()
        return value.decode("ascii") if isinstance(value, bytes) else str(value)


def _matrix(form: str, data: NDArray[Any], parts: list[NDArray[Any]], shape: tuple[int, int]) -> Any:
    """Return the matrix of these parts; SciPy validates little of them."""
    import scipy.sparse as sp

    if form == "coo":
        return sp.coo_array((data, tuple(parts)), shape=shape)
    if form == "dia":
        return sp.dia_array((data, parts[0]), shape=shape)
    made = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[form]
    return made((data, *parts), shape=shape)
