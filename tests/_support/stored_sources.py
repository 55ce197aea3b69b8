"""The same rows in every kind of source."""

import numpy as np

from swiftem.data import BlockSource, NpySource, open_source

KINDS = (
    "npy",
    "two npy files",
    "memory map",
    "parquet",
    "two parquet files",
    "csv",
    "two csv files",
    "blocks",
)
RANDOM = ("npy", "two npy files", "memory map", "parquet", "two parquet files")
SEQUENTIAL = ("csv", "two csv files", "blocks")


def write(folder, name, y, weight=None, group=100):
    """Write rows, and weights as the last column; return the file."""
    import pyarrow as pa
    from pyarrow import parquet

    file = folder / name
    whole = y if weight is None else np.column_stack([y, weight])
    names = [f"c{place}" for place in range(y.shape[1])] + ([] if weight is None else ["w"])
    if file.suffix == ".npy":
        np.save(file, whole)
    elif file.suffix == ".parquet":
        table = pa.table({column: whole[:, place] for place, column in enumerate(names)})
        parquet.write_table(table, file, row_group_size=group)
    else:
        np.savetxt(file, whole, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    return file


def make(kind, folder, y, weight=None, window=250, group=100):
    """Return rows (n, d) as a source of this kind."""
    cut = len(y) // 3
    weights = (None, None) if weight is None else (weight[:cut], weight[cut:])
    by = "w" if weight is not None else None
    if kind == "blocks":
        blocks = [y[:cut], y[cut : cut + 1], y[cut + 1 :]]
        if weight is not None:
            blocks = list(zip(blocks, [weight[:cut], weight[cut : cut + 1], weight[cut + 1 :]], strict=True))
        return BlockSource(blocks, window=window)
    if kind == "memory map":
        return NpySource(
            np.load(write(folder, "map.npy", y), mmap_mode="r"), sample_weight=weight, window=window
        )
    ending = kind.split()[-1] if kind in ("npy", "parquet", "csv") else kind.split()[1]
    if kind.startswith("two"):
        files = [
            write(folder, "a." + ending, y[:cut], weights[0], group),
            write(folder, "b." + ending, y[cut:], weights[1], group),
        ]
    else:
        files = write(folder, "all." + ending, y, weight, group)
    if ending == "npy" and weight is not None:
        by = y.shape[1]
    return open_source(files, weight=by, window=window)
