"""Tables in files: every format, every choice of columns, and a sentence for everything that is wrong."""

import contextlib
import csv
import os

import numpy as np
import pytest
from table_files import csv_file, sentence_of

from swiftem.data import UnknownColumnError, open_source, read_table

X = np.array([[1.0, 2.5], [3.0, -4.0], [0.1, 1e-300]])


def test_numbers_are_the_same_as_pythons(tmp_path):
    """Rows of odd pieces, by chance: as a table and in blocks, as Python's reader and float have them."""
    pieces = ["1", "-2.5", " 3", "4 ", '"5"', "1e5", ".5", "6.", "+7", "inf", "nan", "NA", "", "x", '"a""b"']
    rng = np.random.default_rng(1)
    accepted = 0
    for _ in range(300):
        share = rng.choice([0.55, 0.7, 1.0])
        pool = pieces[: int(len(pieces) * share)]
        rows = [",".join(rng.choice(pool, size=3)) + "," + rng.choice(pieces) for _ in range(4)]
        file = csv_file(tmp_path, "a,b,c,d\n" + rng.choice(["\n", "\r\n", "\n\n"]).join(rows))
        try:
            table = read_table(file, ["a", "b", "c"])
        except ValueError:
            continue
        accepted += 1
        expected = [[float(cell) for cell in row[:3]] for row in csv.reader(rows)]
        np.testing.assert_array_equal(table.values, expected)
        np.testing.assert_array_equal(next(open_source(file, ["a", "b", "c"]).blocks(9)).y, expected)
    assert accepted > 50


class TestNpy:
    def save(self, tmp_path, array, **options):
        np.save(tmp_path / "table.npy", array, **options)
        return tmp_path / "table.npy"

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_floats_stay_in_the_file(self, tmp_path, dtype, order):
        table = read_table(self.save(tmp_path, np.asarray(X, dtype=dtype, order=order)))
        np.testing.assert_array_equal(table.values, X.astype(dtype))
        assert table.values.dtype == dtype
        assert not table.values.flags.owndata
        assert not table.values.flags.writeable
        assert table.names == ()

    @pytest.mark.parametrize(
        ("dtype", "becomes"),
        [(">f8", "f8"), (">f4", "f4"), ("f2", "f4"), ("i4", "f8"), ("u1", "f8"), ("?", "f8")],
    )
    def test_other_numbers_become_floats(self, tmp_path, dtype, becomes):
        values = np.array([[0, 1], [1, 1]])
        table = read_table(self.save(tmp_path, values.astype(dtype)))
        np.testing.assert_array_equal(table.values, values)
        assert table.values.dtype == np.dtype(becomes)
        assert table.values.dtype.isnative

    def test_one_dimension_is_one_column(self, tmp_path):
        assert read_table(self.save(tmp_path, np.arange(3.0))).values.shape == (3, 1)

    def test_columns_and_weights_by_number(self, tmp_path):
        file = self.save(tmp_path, np.arange(12.0).reshape(4, 3))
        table = read_table(file, weights=1)
        np.testing.assert_array_equal(table.values, np.arange(12.0).reshape(4, 3)[:, [0, 2]])
        np.testing.assert_array_equal(table.weights, [1, 4, 7, 10])
        np.testing.assert_array_equal(
            read_table(file, columns=["2", 0]).values, np.arange(12.0).reshape(4, 3)[:, [2, 0]]
        )

    @pytest.mark.parametrize(
        ("array", "sentence"),
        [
            (np.zeros((0, 2)), "must have at least one row and one column, got shape (0, 2)."),
            (np.zeros((2, 0)), "must have at least one row and one column, got shape (2, 0)."),
            (np.zeros((2, 2, 2)), "must hold an array of shape (n,) or (n, d), got 3 axes."),
            (np.float64(1), "must hold an array of shape (n,) or (n, d), got 0 axes."),
            (np.array(["a"]), "must hold real numbers, got dtype <U1."),
            (np.array([1j]), "must hold real numbers, got dtype complex128."),
            (np.zeros(2, dtype=[("a", float)]), "must hold real numbers, got dtype [('a', '<f8')]."),
            (
                np.array([[0, 1], [2, np.nan]]),
                "must hold finite numbers, got a missing value in row 1, column 1 (both from 0): "
                "fill in such rows, or skip them (skip_missing=True, on the command line --missing skip).",
            ),
            (
                np.array([0, np.inf]),
                "must hold finite numbers, got an infinity in row 1, column 0 (both from 0): "
                "remove or replace such rows.",
            ),
        ],
    )  # fmt: skip
    def test_what_is_wrong(self, tmp_path, array, sentence):
        file = self.save(tmp_path, array)
        assert sentence_of(lambda: read_table(file)) == f"{file} {sentence}"

    def test_a_place_far_down(self, tmp_path):
        array = np.zeros((600_000, 3), dtype=np.float32)
        array[512_345, 2] = np.inf
        assert "in row 512345, column 2" in sentence_of(lambda: read_table(self.save(tmp_path, array)))
        assert "in row 512345, column 2" in sentence_of(
            lambda: read_table(self.save(tmp_path, array), weights=2)
        )

    def test_bad_weights(self, tmp_path):
        file = self.save(tmp_path, np.array([[1.0, 1.0], [1.0, -1.0]]))
        assert sentence_of(lambda: read_table(file, weights=1)) == (
            f"{file} must have weights that are not negative, got -1 in row 1 (from 0)."
        )

    def test_nothing_is_unpickled(self, tmp_path):
        file = self.save(tmp_path, np.array([{}], dtype=object), allow_pickle=True)
        assert "memory-mapped: Python objects in dtype)." in sentence_of(lambda: read_table(file))

    @pytest.mark.parametrize(
        "content", [b"", b"abc", b"\x93NUMPY\x09\x00", b"\x93NUMPY\x01\x00\x10\x00{'descr'"]
    )
    def test_other_files(self, tmp_path, content):
        file = tmp_path / "table.npy"
        file.write_bytes(content)
        assert "must be a file of numpy.save with numbers, got another or a damaged file (" in sentence_of(
            lambda: read_table(file)
        )

    def test_a_file_cut_off(self, tmp_path):
        file = self.save(tmp_path, np.zeros((100, 4)))
        os.truncate(file, 1000)
        assert "got another or a damaged file (mmap length is greater than file size)." in sentence_of(
            lambda: read_table(file)
        )

    def test_an_npz_by_another_name(self, tmp_path):
        np.savez(tmp_path / "table.npz", X)
        (tmp_path / "table.npz").rename(tmp_path / "table.npy")
        assert "must be a file of numpy.save" in sentence_of(lambda: read_table(tmp_path / "table.npy"))


class TestParquet:
    def save(self, tmp_path, **columns):
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table(columns), tmp_path / "table.parquet", row_group_size=2)
        return tmp_path / "table.parquet"

    def test_numeric_columns(self, tmp_path):
        import datetime
        import decimal

        import pyarrow as pa

        file = self.save(
            tmp_path,
            a=[1.5, 2.5, 3.5],
            kind=["x", "y", "z"],
            whole=[1, 2, 3],
            yes=[True, False, True],
            when=[datetime.date(2020, 1, 1)] * 3,
            money=[decimal.Decimal("1.25")] * 3,
            some=pa.array(["u", "v", "u"]).dictionary_encode(),
            rows=[[1.0], [2.0], [3.0]],
            nothing=pa.nulls(3),
        )
        table = read_table(file)
        np.testing.assert_array_equal(table.values, [[1.5, 1, 1], [2.5, 2, 0], [3.5, 3, 1]])
        assert table.names == ("a", "whole", "yes")
        assert table.values.dtype == np.float64
        assert table.left_out == {
            "kind": "text", "when": "dates", "money": "decimals", "some": "categories", "rows": "lists",
            "nothing": "no values",
        }  # fmt: skip

    def test_float32_stays(self, tmp_path):
        import pyarrow as pa

        small = pa.array([1, 2, 3], pa.float32())
        file = self.save(tmp_path, a=small, b=[1.0, 2.0, 3.0], w=[1, 0, 1])
        assert read_table(file, columns=["a"], weights="w").values.dtype == np.float32
        assert read_table(file, columns=["a"], weights="w").weights.tolist() == [1, 0, 1]
        assert read_table(file).values.dtype == np.float64

    def test_large_integers(self, tmp_path):
        assert read_table(self.save(tmp_path, a=[2**53 + 2, 1])).values.tolist() == [[2.0**53 + 2], [1.0]]

    def test_columns_by_name_and_number(self, tmp_path):
        file = self.save(tmp_path, **{"a": [1, 2], "a.b": [3, 4], "c": [5, 6]})
        np.testing.assert_array_equal(read_table(file, columns=["a"]).values, [[1], [2]])
        np.testing.assert_array_equal(read_table(file, columns=["c", "a.b"]).values, [[5, 3], [6, 4]])
        assert read_table(file, columns=[2, "0"]).names == ("c", "a")

    def test_an_index_of_pandas_is_left_out(self, tmp_path):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=pandas.Index([7, 8]))
        frame.to_parquet(tmp_path / "frame.parquet")
        table = read_table(tmp_path / "frame.parquet")
        assert table.names == ("a", "b")
        assert list(table.left_out.values()) == ["an index"]
        frame.index.name = "id"
        frame.to_parquet(tmp_path / "frame.parquet")
        assert read_table(tmp_path / "frame.parquet").left_out == {"id": "an index"}
        assert read_table(tmp_path / "frame.parquet", columns=["id"]).values.tolist() == [[7], [8]]

    def test_a_csv_of_pandas(self, tmp_path):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        frame = pandas.DataFrame({"a": [1.5, 2.0], "kind": ["x", "y"], "b": [3, 4]})
        frame.to_csv(tmp_path / "frame.csv")
        table = read_table(tmp_path / "frame.csv")
        np.testing.assert_array_equal(table.values, frame[["a", "b"]].to_numpy())
        assert table.left_out == {"column 0": "no name", "kind": "text"}

    @pytest.mark.parametrize(
        ("column", "sentence"),
        [
            ([1.0, 2.0, None], "must hold finite numbers, got a missing value in column 'a', row 2 (from 0)"),
            ([1, None, 2], "must hold finite numbers, got a missing value in column 'a', row 1 (from 0)"),
            ([1.0, np.nan], "must hold finite numbers, got a missing value in column 'a', row 1 (from 0)"),
            ([float("inf")], "must hold finite numbers, got an infinity in column 'a', row 0 (from 0)"),
            (["x"], "must have a numeric column, got a (text)."),
            ([], "must have at least one row and one column, got 0 rows of 1 columns."),
        ],
    )  # fmt: skip
    def test_what_is_wrong(self, tmp_path, column, sentence):
        file = self.save(tmp_path, a=column)
        assert sentence_of(lambda: read_table(file)).startswith(f"{file} {sentence}")

    def test_text_that_was_asked_for(self, tmp_path):
        file = self.save(tmp_path, a=["x"], b=[1])
        assert "must have numbers in column 'a', got text." in sentence_of(
            lambda: read_table(file, columns=["a"])
        )

    def test_other_and_damaged_files(self, tmp_path):
        file = tmp_path / "other.parquet"
        file.write_text("a,b\n1,2\n")
        assert "must be a Parquet file, got" in sentence_of(lambda: read_table(file))
        good = self.save(tmp_path, a=list(np.random.default_rng(0).normal(size=1000)))
        whole = good.read_bytes()
        for cut in (10, len(whole) // 2, len(whole) - 1):
            good.write_bytes(whole[:cut])
            sentence_of(lambda: read_table(good), (ValueError, OSError))
        middle = bytearray(whole)
        middle[len(whole) // 3 : len(whole) // 3 + 200] = b"\xff" * 200
        good.write_bytes(middle)
        with contextlib.suppress(ValueError, OSError):  # or numbers that no checksum protects
            read_table(good)


class TestPathsAndColumns:
    def test_bad_paths(self, tmp_path):
        endings = "(.csv, .tsv, .txt, .parquet, .npy)"
        assert sentence_of(lambda: read_table(tmp_path), IsADirectoryError) == (
            f"{tmp_path} must be a table {endings}, got a folder."
        )
        missing = tmp_path / "missing.csv"
        assert sentence_of(lambda: read_table(missing), FileNotFoundError) == (
            f"{missing} must be a table {endings}, but does not exist."
        )
        for name, got in (("table.xlsx", ".xlsx"), ("table", "no ending")):
            (tmp_path / name).touch()
            assert sentence_of(lambda name=name: read_table(tmp_path / name)) == (
                f"{tmp_path / name} must end in .csv, .tsv, .txt, .parquet or .npy, got {got}."
            )
        for path in (0, None, b"table.csv"):
            with pytest.raises(TypeError, match="path must be the name of a file, got "):
                read_table(path)

    def test_a_file_that_may_not_be_read(self, tmp_path, monkeypatch):
        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        file = csv_file(tmp_path, "a\n1\n")
        # Not by permissions of the file: those do not bind root, which tests may run as.
        monkeypatch.setattr("pathlib.Path.open", refuse)
        assert sentence_of(lambda: read_table(file), OSError) == f"{file} cannot be read (permission denied)."
        file = tmp_path / "rows.parquet"
        file.touch()
        monkeypatch.setattr("pyarrow.parquet.ParquetFile", refuse)
        assert sentence_of(lambda: read_table(file), OSError) == f"{file} cannot be read (permission denied)."

    def test_endings_in_capitals(self, tmp_path):
        assert read_table(csv_file(tmp_path, "a\n1\n", "TABLE.CSV")).names == ("a",)
        assert read_table(str(csv_file(tmp_path, "a\tb\n1\t2\n", "table.tsv"))).names == ("a", "b")

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"columns": ["Heigth"]}, "{file} has no column 'Heigth': did you mean 'height'?"),
            ({"columns": ["q"]}, "{file} has no column 'q': it has height, width, w."),
            ({"weights": "weight"}, "{file} has no column 'weight': did you mean 'height'?"),
            ({"columns": [3]}, "The number of a column of {file} must be from 0 to 2, got 3 in columns."),
            ({"weights": -1}, "The number of a column of {file} must be from 0 to 2, got -1 in weights."),
            ({"columns": []}, "columns must name at least one column, got none."),
            ({"columns": ["height", 0]}, "columns must be distinct, got 'height' twice."),
            ({"columns": ["w"], "weights": "w"}, "columns must not include the weights, got 'w'."),
        ],
    )
    def test_columns_that_are_not_there(self, tmp_path, options, sentence):
        file = csv_file(tmp_path, "height,width,w\n1,2,3\n")
        with pytest.raises(UnknownColumnError) as raised:
            read_table(file, **options)
        assert str(raised.value) == sentence.format(file=file)
        assert raised.value.argument == ("weights" if "columns" not in options else "columns")

    def test_one_column_by_number(self, tmp_path):
        file = csv_file(tmp_path, "1\n2\n")
        assert "must be 0, got 1" in sentence_of(lambda: read_table(file, columns=[1]))
        assert "choose by number, 0." in sentence_of(lambda: read_table(file, columns=["a"]))

    def test_a_name_that_is_there_twice(self, tmp_path):
        file = csv_file(tmp_path, "a,a,b\n1,2,3\n")
        assert "has 2 of name 'a'." in sentence_of(lambda: read_table(file, columns=["a"]))
        assert read_table(file, columns=["b", 1]).names == ("b", "a")

    def test_wrong_types(self, tmp_path):
        file = csv_file(tmp_path, "a,b\n1,2\n")
        with pytest.raises(TypeError, match="columns must be a sequence of names or numbers, got the string"):
            read_table(file, columns="a,b")
        for bad in (1.0, True, None):
            with pytest.raises(TypeError, match="columns must be names or numbers of columns, got"):
                read_table(file, columns=[bad])
