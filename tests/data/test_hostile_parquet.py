"""Parquet files that lie or are damaged: one sentence with the file's name, and the right row."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from table_files import refused

from swiftem.data import open_source, read_corpus, read_table


class TestParquet:
    def save(self, folder, **options):
        file = folder / "toy.parquet"
        rows = np.random.default_rng(0).normal(size=2000)
        parquet.write_table(pa.table({"a": rows, "b": rows + 1}), file, compression="none", **options)
        return file

    def read(self, file):
        source = open_source(file)
        for _ in source.chunks(500):
            pass
        source.take(np.array([0, source.n - 1]))

    def test_damage_while_rows_are_read(self, tmp_path):
        """Arrow's complaints do not know the file."""
        file = self.save(tmp_path, use_dictionary=False)
        content = bytearray(file.read_bytes())
        content[4:60] = bytes(56)  # the head of the first page
        file.write_bytes(content)
        assert open_source(file).n == 2000
        refused(lambda: self.read(file), file, "must be a Parquet file, got another or a damaged file (")
        refused(lambda: read_table(file), file, "must be a Parquet file, got another or a damaged file (")

    def test_rows_that_are_only_said(self, tmp_path):
        """The footer says 2,000 of the file, of its row group and of each column."""
        file = self.save(tmp_path)
        content = file.read_bytes()
        said, other = b"\x16\xa0\x1f", b"\x16\xa2\x1f"  # 2,000 and 2,001, as Parquet writes them
        places = [
            place for place in range(len(content) - 600, len(content)) if content.startswith(said, place)
        ]
        assert len(places) == 4
        wrong = set()
        for place in places:
            file.write_bytes(content[:place] + other + content[place + 3 :])
            for reader in (self.read, read_table):
                try:
                    reader(file)
                except ValueError:
                    refused(lambda reader=reader: reader(file), file)
                    wrong.add(reader)
        assert wrong == {self.read, read_table}

    def test_more_rows_than_there_can_be(self, tmp_path, monkeypatch):
        monkeypatch.setattr("swiftem.data.parquet.FREE", 1 << 20)
        file = tmp_path / "toy.parquet"
        parquet.write_table(pa.table({"a": np.zeros(10**6)}), file, row_group_size=10**5)
        assert file.stat().st_size < 6000
        refused(
            lambda: read_table(file),
            file,
            "got 1,000,000: it is damaged, or read it in pieces with open_source",
        )
        self.read(file)
        parquet.write_table(pa.table({"a": np.zeros(10**6)}), file)
        refused(
            lambda: open_source(file),
            file,
            "got 1,000,000: it is damaged, or write it with smaller row groups",
        )

    @pytest.mark.parametrize(
        "note", [b"{", b"[]", b"3", b"\xff", b'{"index_columns": 3}', b'{"index_columns": null}'],
        ids=["no JSON", "a list", "a number", "no text", "no list", "null"],
    )  # fmt: skip
    def test_notes_of_pandas_that_are_none(self, tmp_path, note):
        file = tmp_path / "toy.parquet"
        parquet.write_table(pa.table({"a": [1.0, 2.0]}).replace_schema_metadata({b"pandas": note}), file)
        assert read_table(file).values.tolist() == [[1.0], [2.0]]
        self.read(file)

    def test_a_damaged_table_of_texts(self, tmp_path):
        file = tmp_path / "toy.parquet"
        parquet.write_table(pa.table({"text": ["fish and rice"] * 50}), file)
        content = file.read_bytes()
        for place in (10, len(content) - 60):
            file.write_bytes(content[:place] + b"\xff" * 30 + content[place + 30 :])
            refused(
                lambda: read_corpus(file), file, "must be a Parquet file, got another or a damaged file ("
            )


class TestTheRightRow:
    """Rows are read 65,536 at a time; their numbers go on."""

    N, BAD = 100_000, 90_000

    def save(self, folder, column, value, **options):
        columns = {"a": np.ones(self.N), "w": np.ones(self.N)}
        columns[column][self.BAD] = value
        parquet.write_table(pa.table(columns), folder / "toy.parquet", **options)
        return folder / "toy.parquet"

    @pytest.mark.parametrize("group", [1 << 20, 40_000], ids=["one group", "three groups"])
    @pytest.mark.parametrize(
        ("column", "value", "expected"),
        [
            ("a", np.nan, "got a missing value in column 'a', row 90000 (from 0)"),
            ("w", np.nan, "got a missing value in column 'w', row 90000 (from 0)"),
            ("w", -2.0, "weights that are not negative, got -2 in row 90000 (from 0)"),
        ],
        ids=["a cell", "a weight", "a negative weight"],
    )
    def test_row_90000(self, tmp_path, column, value, expected, group):
        file = self.save(tmp_path, column, value, row_group_size=group)
        refused(lambda: [*open_source(file, weight="w").chunks(4096)], file, expected)
        if column == "a":
            refused(lambda: [*open_source(file).chunks(4096)], file, expected)
            source = open_source(file)
            refused(
                lambda: source.take(np.array([source.n - 1])) and source.take(np.array([85_000])),
                file,
                expected,
            )


def test_each_files_own_notes(tmp_path):
    tables = {
        "1.parquet": {"a": [1.0], "kind": ["x"]},
        "2.parquet": {"a": [2.0]},
        "3.parquet": {"a": [3.0], "at": ["y"]},
    }
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), tmp_path / name)
    one, two, three = (tmp_path / name for name in tables)
    notes = (f"Left out of {one}: kind (text).", f"Left out of {three}: at (text).")
    assert open_source([one, two, three], leave_out=True).notes == notes
    assert open_source([one, two], leave_out=True).notes == notes[:1]
    assert open_source([two, one], leave_out=True).notes == notes[:1]
    assert open_source([two], leave_out=True).notes == ()
    parquet.write_table(pa.table(tables["1.parquet"]), tmp_path / "4.parquet")
    assert open_source([one, tmp_path / "4.parquet"], leave_out=True).notes == notes[:1]
