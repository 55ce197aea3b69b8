"""Parquet files with columns of many types, whole or with missing values, and with odd metadata."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

METADATA = (
    b"{}", b"[]", b"3", b"{", b"\xff", b'{"index_columns": 3}', b'{"index_columns": null}',
    b'{"index_columns": [{"kind": "range"}]}', b'{"index_columns": ["a"]}', b"[" * 5000,
)  # fmt: skip


def _column(rng: random.Random, n: int) -> Any:
    values = np.random.default_rng(rng.randrange(50)).normal(size=n).round(2)
    kind = rng.randrange(9)
    if kind == 0:
        return pa.array([None if place % 7 == 3 else value for place, value in enumerate(values.tolist())])
    if kind == 1:
        return pa.array([f"ant bee {place}" for place in range(n)])
    if kind == 2:
        return pa.array(values.astype(int), pa.int32())
    if kind == 3:
        return pa.array((values * 100).astype(np.int32)).cast(pa.decimal128(20, 2))
    if kind == 4:
        return pa.array(values.astype(np.float32))
    if kind == 5:
        return pa.array(values > 0)
    if kind == 6:
        return pa.array([[value] for value in values.tolist()])
    if kind == 7:
        return pa.array(["ant", "bee"] * n).slice(0, n).dictionary_encode()
    return pa.array(values)


def forged_parquet(rng: random.Random) -> bytes:
    """Return a Parquet file that can be read; not all are tables of numbers."""
    n = rng.choice((0, 1, 5, 40, 300))
    names = ["a", "b", "text", "", "é", "a.b"][: rng.randrange(1, 7)]
    columns = [
        pa.array(np.arange(float(n))) if not place and rng.random() < 0.7 else _column(rng, n)
        for place in range(len(names))
    ]
    table = pa.Table.from_arrays(columns, names=names)
    if rng.random() < 0.2:
        table = table.replace_schema_metadata({b"pandas": rng.choice(METADATA)})
    stream = io.BytesIO()
    parquet.write_table(
        table, stream, row_group_size=rng.choice((7, 100, 1000)),
        compression=rng.choice(("none", "snappy", "gzip", "zstd")),
        use_dictionary=rng.random() < 0.5, data_page_version=rng.choice(("1.0", "2.0")),
    )  # fmt: skip
    return stream.getvalue()
