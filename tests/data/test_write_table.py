"""Tables to files: what is read back is what was written, whole or not at all."""

import os
from itertools import pairwise

import numpy as np
import pytest
import typer

from swiftem.cli.out_file import (
    ROWS,
    WRITTEN,
    not_the_same,
    writable_folder,
    write_table,
    write_table_blocks,
)
from swiftem.data import read_table

COLUMNS = {
    "label": np.arange(25_000) % 7,
    "x": np.random.default_rng(0).normal(size=25_000) * 1e-200,
    "small": np.random.default_rng(1).normal(size=25_000).astype(np.float32),
}


@pytest.mark.parametrize("ending", WRITTEN)
def test_round_trip(ending, tmp_path):
    file = tmp_path / f"table{ending}"
    file.write_text("old")
    write_table(file, COLUMNS)
    table = read_table(file)
    np.testing.assert_array_equal(table.values, np.column_stack(list(COLUMNS.values())))
    assert table.names == (() if ending == ".npy" else tuple(COLUMNS))
    assert list(tmp_path.iterdir()) == [file]
    assert file.stat().st_mode & 0o777 == 0o644


def test_one_column_of_npy_keeps_its_type(tmp_path):
    write_table(tmp_path / "a.npy", {"label": COLUMNS["label"]})
    found = np.load(tmp_path / "a.npy")
    assert found.dtype == COLUMNS["label"].dtype
    assert found.ndim == 1


def test_no_rows(tmp_path):
    write_table(tmp_path / "a.csv", {"a": np.empty(0)})
    assert (tmp_path / "a.csv").read_text() == "a\n"


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .csv, .tsv, .parquet or .npy, got .xlsx\.$"):
        write_table(tmp_path / "a.xlsx", COLUMNS)
    assert not list(tmp_path.iterdir())


def test_an_error_leaves_what_was_there(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("old")
    with pytest.raises(ValueError, match="shorter"):
        write_table(file, {"a": np.arange(3), "b": np.arange(2)})
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("n", [1, ROWS, ROWS + 1])
def test_one_row_more_than_a_block(tmp_path, n):
    write_table(tmp_path / "a.csv", {"a": np.arange(n)})
    assert (tmp_path / "a.csv").read_text() == "a\n" + "".join(f"{number}\n" for number in range(n))


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_blocks_are_one_table(tmp_path, ending):
    edges = [0, 10_000, 10_001, 25_000]
    blocks = (
        {name: column[first:last] for name, column in COLUMNS.items()} for first, last in pairwise(edges)
    )
    write_table_blocks(tmp_path / f"a{ending}", blocks)
    table = read_table(tmp_path / f"a{ending}")
    assert table.names == tuple(COLUMNS)
    np.testing.assert_array_equal(table.values, np.column_stack(list(COLUMNS.values())))


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    """A new file has those that the user's mask leaves, and the mask stays as it is."""
    private, new = tmp_path / "private.csv", tmp_path / "new.csv"
    private.write_text("old")
    private.chmod(0o600)
    before = os.umask(0o027)
    try:
        for file in (private, new):
            write_table(file, {"a": np.arange(3)})
    finally:
        mask = os.umask(before)
    assert [file.stat().st_mode & 0o777 for file in (private, new)] == [0o600, 0o640]
    assert mask == 0o027


def test_another_name_of_what_is_read_is_refused(tmp_path):
    file, link = tmp_path / "a.csv", tmp_path / "b.csv"
    file.write_text("a\n1\n")
    link.symlink_to(file)
    for other in (file, link, tmp_path / "folder" / ".." / "a.csv"):
        with pytest.raises(typer.BadParameter, match=r"a\.csv is also an input file: choose another --out"):
            not_the_same(other, file)
    not_the_same(tmp_path / "c.csv", file)
    not_the_same(None, file)


def test_a_look_at_a_folder_leaves_nothing_behind(tmp_path):
    assert writable_folder(tmp_path / "new" / "folder") == tmp_path / "new" / "folder"
    assert not list(tmp_path.iterdir())
    (tmp_path / "there").mkdir()
    writable_folder(tmp_path / "there")
    assert (tmp_path / "there").is_dir()
