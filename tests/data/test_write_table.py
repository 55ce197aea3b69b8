"""Tables to files: what is read back is what was written, whole or not at all."""

import sys

import numpy as np
import pytest

from swiftem.cli.out_file import WRITTEN, write_table
from swiftem.data import read_table

COLUMNS = {
    "label": np.arange(25_000) % 7,
    "x": np.random.default_rng(0).normal(size=25_000) * 1e-200,
    "small": np.random.default_rng(1).normal(size=25_000).astype(np.float32),
}


@pytest.mark.parametrize("ending", WRITTEN)
def test_round_trip(ending, tmp_path):
    if ending == ".parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'swiftem[io]'")
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


def test_what_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"must end in .csv, .tsv, .parquet or .npy, got .xlsx\.$"):
        write_table(tmp_path / "a.xlsx", COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install 'swiftem\\[io\\]'"):
        write_table(tmp_path / "a.parquet", COLUMNS)
    assert not list(tmp_path.iterdir())


def test_an_error_leaves_what_was_there(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("old")
    with pytest.raises(ValueError, match="shorter"):
        write_table(file, {"a": np.arange(3), "b": np.arange(2)})
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
