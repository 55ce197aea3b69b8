"""Samples that are lines of CSV files, read in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from swiftem._checks import check_int
from swiftem._typing import Array
from swiftem.data.rows.csv_layout import Layout, layout_of
from swiftem.data.rows.csv_table import StumbledError, stream_by_pyarrow, stream_by_python
from swiftem.data.rows.stored_source import WINDOW_BYTES, Chunk, StoredSource
from swiftem.data.rows.table_columns import Column, Columns, choose_columns, label, left_out_of, shortened
from swiftem.data.source import Access
from swiftem.files.file_hash import file_hash

__all__ = ["CsvSource"]


class CsvSource(StoredSource):
    r"""The rows of one or several CSV files, read in order as they are needed.

    Lines have no fixed length, so that row i is not found without reading those before it: em, sem and
    sem-vr work, the latter two in the order of the files, shuffled within a window. Making the source reads
    the files once, to count and check the rows.

    Parameters
    ----------
    files : path or sequence of paths
        With the same columns; their layout is found as in :func:`swiftem.data.read_table`.
    columns : sequence of names or numbers, optional
        Columns to take; by default all that are numeric.
    weight : name or number, optional
        The column of weights; rows of weight zero are as if absent.
    window : int, optional
        Rows within which draws are shuffled; by default as many as 16 MiB hold.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import CsvSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "fish.csv")
    ...     _ = file.write_text("kind,length,width\nperch,20.5,3\nbream,31,4.5\n")
    ...     source = CsvSource(file)
    ...     source.n, source.names, next(source.blocks(10)).y.tolist()
    (2, ('length', 'width'), [[20.5, 3.0], [31.0, 4.5]])
    """

    access: ClassVar[Access] = "sequential"
    reading: ClassVar[int] = 32 * 10**6

    def __init__(
        self,
        files: Any,
        columns: Sequence[Column] | None = None,
        weight: Column | None = None,
        *,
        window: int | None = None,
    ) -> None:
        super().__init__()
        if window is not None:
            check_int("window", window, minimum=1)
        self._files = [Path(file) for file in (files if isinstance(files, list | tuple) else [files])]
        self._layouts: list[tuple[Layout, Columns]] = []
        for number, file in enumerate(self._files):
            layout = layout_of(file)
            chosen = choose_columns(file, layout.names, layout.unfit, columns, weight)
            if number:
                first, of_first = self._layouts[0]
                one = tuple(label(first.names, place) for place in of_first.data)
                two = tuple(label(layout.names, place) for place in chosen.data)
                if one != two:
                    raise ValueError(
                        f"{file} must have the columns of {self._files[0]}, {shortened(one)}, "
                        f"got {shortened(two)}."
                    )
            self._layouts.append((layout, chosen))
        first, of_first = self._layouts[0]
        self.names = of_first.names
        self.notes = left_out_of(self._files, [chosen for _, chosen in self._layouts])
        self.dtype, self.tail = np.dtype(np.float64), (len(of_first.data),)
        self.is_weighted = of_first.weights is not None
        self._by_python: set[int] = set()
        self.n, self.total_weight = self._survey()
        rows = window or max(1, WINDOW_BYTES // self.row_bytes)
        whole, rest = divmod(self.n, rows)
        self._lay_out([rows] * whole + ([rest] if rest else []), rows, in_order=True)

    def _survey(self) -> tuple[int, float]:
        """Return the number of rows and the sum of weights; find the files that pyarrow cannot read."""
        n, total = 0, 0.0
        for number in range(len(self._files)):
            try:
                found = self._count(number)
            except StumbledError:
                self._by_python.add(number)
                found = self._count(number)
            n, total = n + found[0], total + found[1]
        if not n:
            what = "a positive weight, got only zeros" if self.is_weighted else "at least one row, got none"
            raise ValueError(f"{self._files[0]} must have {what}.")
        return n, total

    def _count(self, number: int) -> tuple[int, float]:
        n, total = 0, 0.0
        for found in self._pieces(number):
            if self.is_weighted:
                n += int(np.count_nonzero(found[:, -1]))
                total += float(found[:, -1].sum())
            else:
                n, total = n + len(found), total + len(found)
        return n, total

    def _pieces(self, number: int) -> Iterator[Array]:
        file, (layout, chosen) = self._files[number], self._layouts[number]
        found = None if number in self._by_python else stream_by_pyarrow(file, layout, chosen)
        return stream_by_python(file, layout, chosen) if found is None else found

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all rows in order."""
        for number, file in enumerate(self._files):
            try:
                for found in self._pieces(number):
                    if not self.is_weighted:
                        yield Chunk(found, None)
                        continue
                    kept = found if found[:, -1].all() else found[found[:, -1] > 0]
                    if len(kept):
                        yield Chunk(np.ascontiguousarray(kept[:, :-1]), kept[:, -1].copy())
            except StumbledError:
                raise ValueError(f"{file} must be the same in every pass, but has changed.") from None

    def fingerprint(self) -> str:
        """Return a hash of the files, the choice of columns and the window; it reads all of them."""
        _, chosen = self._layouts[0]
        return file_hash(f"csv{chosen.data, chosen.weights, int(self.layout.edges[1])}", self._files)
