"""What the tests of tables share."""

import socket
import tracemalloc

import numpy as np
import pytest


def write_file(folder, content, name="table.csv"):
    """Write bytes or text, and return the file."""
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def unreadable_file(folder, monkeypatch, name):
    """Return a socket: no permissions of a file bind root, which tests may run as."""
    monkeypatch.chdir(folder)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(name)
    return folder / name


def sentence_of(call, kind=ValueError):
    with pytest.raises(kind) as raised:
        call()
    sentence = str(raised.value)
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    return sentence


def refused(call, file, *expected):
    """Check that ``call`` is refused by one short sentence that begins with the file and has these words."""
    sentence = sentence_of(call)
    assert sentence.startswith(str(file)), sentence
    assert len(sentence) < len(str(file)) + 400
    for part in expected:
        assert part in sentence, sentence
    return sentence


def traced_peak(call):
    """Return how many bytes Python and NumPy had at most while ``call`` ran, and what it returned."""
    tracemalloc.start()
    try:
        found = call()
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


def npy_file(folder, values, name="table.npy"):
    """Write an array, and return the file."""
    np.save(folder / name, values)
    return folder / name


def parquet_file(folder, columns, name="table.parquet", **options):
    """Write columns, or a table of Arrow, and return the file."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(columns) if isinstance(columns, dict) else columns
    parquet.write_table(table, folder / name, **options)
    return folder / name
