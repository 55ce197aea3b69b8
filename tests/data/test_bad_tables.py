"""Tables that are wrong, lie or are damaged: one sentence with the file's name and the right row.

Each is read as a table and in blocks.
"""

import contextlib
import os
import re

import numpy as np
import pyarrow as pa
import pytest
from table_files import npy_file, parquet_file, refused, sentence_of, write_file

import swiftem
from swiftem import GaussianMixture, methods, models
from swiftem.data import BlockSource, as_source, open_source, read_corpus, read_table

ROWS = np.arange(12.0).reshape(6, 2)
OMIT = "fill in such rows, or skip them (skip_missing=True, on the command line --missing skip)."


def pass_over(path, **options):
    """Read a file in blocks, and some of its rows by number."""
    source = open_source(path, **options)
    for _ in source.blocks(4096):
        pass
    source.take(np.array([0, source.n - 1]))


def nan_at(row, column):
    rows = ROWS.copy()
    rows[row, column] = np.nan
    return rows


def raw_npy(header):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)


CSV = [
    ("", "must have column names in its first line and rows below, got an empty file."),
    ("\n \n", "must have column names in its first line and rows below, got only empty lines."),
    ("a,b\n", "must have at least one row below its column names, got none."),
    ("a,b\n1,2\n3\n", "must have 2 cells in every row, got 1 cell in row 1 (from 0)."),
    ("a b c\n1 2 3\n4 5\n6 7 8\n", "must have 3 cells in every row"),
    ("a,b\n1,2\n\n3,4,5\n", "must have 2 cells in every row, got 3 cells in row 1 (from 0)."),
    ("a\n1,5\n", "must have 1 cell in every row, got 2 cells in row 0 (from 0)."),
    ("a,b\n1,2\n3,\n", "must hold finite numbers, got a missing value in column 'b', row 1 (from 0): "),
    ("a,b\n1,2\n\n3,NA\n", "must hold finite numbers, got a missing value in column 'b', row 1 (from 0): "),
    ("a,b\n1,NaN\n2,1\n", "must hold finite numbers, got a missing value in column 'b', row 0 (from 0): "),
    ("a,b\n1,2\n-inf,2\n", "must hold finite numbers, got an infinity in column 'a', row 1 (from 0): "),
    ("a,b\n1,2\n1e999,2\n", "must hold finite numbers, got an infinity in column 'a', row 1 (from 0): "),
    ("a,b\n1," + 5000 * "1" + "\n", "must hold finite numbers, got an infinity in column 'b', row 0"),
    ("a,b\n1,1\n2,1_0\n", "must have a number in every cell, got '1_0' in column 'b', row 1 (from 0)"),
    ("a,a\n1,2\n", "must have distinct names for its columns, got 'a' twice: rename one."),
    (b"a,b\n1,2\ncaf\xe9,3\n", "must be text in UTF-8, got the byte 0xe9: convert the file"),
    ("a,b\n1,2\n".encode("utf-16"), "must be text in UTF-8, got a NUL byte: it is a binary file, or UTF-16."),
]
NPY = [
    (np.zeros((0, 2)), "must have at least one row and one column, got shape (0, 2)."),
    (np.zeros((2, 0)), "must have at least one row and one column, got shape (2, 0)."),
    (np.zeros((2, 2, 2)), "must hold an array of shape (n,) or (n, d), got 3 axes."),
    (np.float64(1), "must hold an array of shape (n,) or (n, d), got 0 axes."),
    (np.array(["a"]), "must hold real numbers, got dtype <U1."),
    (np.array([1j]), "must hold real numbers, got dtype complex128."),
    (np.zeros(2, dtype=[("a", float)]), "must hold real numbers, got dtype [('a', '<f8')]."),
    (nan_at(4, 1), "must hold finite numbers, got a missing value in row 4, column 1 (both from 0): "),
    (np.array([0, np.inf]), "must hold finite numbers, got an infinity in row 1, column 0 (both from 0): "),
    (
        np.array([[1.0, 2.0], [1.0, np.longdouble("1e4000")]], dtype=np.longdouble),
        "must hold finite numbers, got an infinity in row 1, column 1",
    ),
    *(
        (content, "must be a file of numpy.save with numbers, got another or a damaged file (")
        for content in (
            b"",
            b"abc",
            b"\x93NUMPY\x09\x00",
            b"\x93NUMPY\x01\x00\x10\x00{'descr'",
        )
    ),
    *(
        (raw_npy(header), "")
        for header in (
            "(" * 9000,
            "'''",
            "\\",
            "[" * 4000 + "]" * 4000,
            "__import__('os')",
            "",
            "{'descr': 'x', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '(3,)f8', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'more': 1}",
            "{'descr': '<f8', 'shape': (2,), }",
            *(
                f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}"
                for shape in (
                    "1" * 5000 + ",",
                    "99999999999999999999,",
                    "4294967296, 4294967296",
                    "-1,",
                    "3,",
                    "2",
                    "1, " * 70,
                )
            ),
        )
    ),
]
PARQUET = [
    ([1.0, 2.0, None], "must hold finite numbers, got a missing value in column 'a', row 2 (from 0)"),
    ([1, None, 2], "must hold finite numbers, got a missing value in column 'a', row 1 (from 0)"),
    ([1.0, np.nan], "must hold finite numbers, got a missing value in column 'a', row 1 (from 0)"),
    ([float("inf")], "must hold finite numbers, got an infinity in column 'a', row 0 (from 0)"),
    (pa.array([], pa.float64()), "must have at least one row"),
    (b"a,b\n1,2\n", "must be a Parquet file, got"),
]


def written(folder, kind, content):
    if isinstance(content, bytes | str):
        return write_file(folder, content, f"table.{kind}")
    return npy_file(folder, content) if kind == "npy" else parquet_file(folder, {"a": content})


@pytest.mark.parametrize(
    ("kind", "content", "sentence"),
    [(kind, *case) for kind, cases in (("csv", CSV), ("npy", NPY), ("parquet", PARQUET)) for case in cases],
)
def test_files(tmp_path, kind, content, sentence):
    file = written(tmp_path, kind, content)
    for read in (read_table, pass_over):
        said = refused(lambda read=read: read(file), file, sentence)
        assert said.startswith(f"{file} {sentence}")
        assert ("missing value" in said) == (OMIT in said)


@pytest.mark.parametrize(
    ("kind", "content", "as_table", "in_blocks"),
    [
        ("csv", "a,b\nx,y\n", "a numeric column, got a (text), b (text).", "text in columns 'a', 'b'"),
        ("parquet", ["x"], "a numeric column, got a (text).", "every column, got text in column 'a'"),
    ],
)
def test_tables_of_text(tmp_path, kind, content, as_table, in_blocks):
    file = written(tmp_path, kind, content)
    refused(lambda: read_table(file), file, as_table)
    refused(lambda: pass_over(file), file, in_blocks)


def test_text_that_was_asked_for(tmp_path):
    file = write_file(tmp_path, "kind,a\nred,1\n")
    refused(lambda: read_table(file, columns=["kind"]), file, "got 'red' in column 'kind', row 0")
    refused(lambda: read_table(file, weights="kind"), file, "got 'red' in column 'kind', row 0")
    file = parquet_file(tmp_path, {"kind": ["red"], "a": [1]})
    refused(lambda: read_table(file, columns=["kind"]), file, "must have numbers in column 'kind', got text.")


def test_a_late_mistake(tmp_path):
    file = write_file(tmp_path, "a,b\n" + "1,2\n" * 100_000 + "1,x\n1,2")
    refused(lambda: read_table(file), file, "got 'x' in column 'b', row 100000")


def test_what_cannot_be_a_cell_is_shortened(tmp_path):
    file = write_file(tmp_path, f"a\n1\n{'x' * 500}\n")
    assert len(sentence_of(lambda: read_table(file))) < 200 + len(str(file))
    file = write_file(tmp_path, 'a,b\n1,"2\n' + "3,4\n" * 50_000)
    sentence = sentence_of(lambda: read_table(file))
    assert re.search("must be a table in CSV, got something else|must have", sentence)
    file = write_file(tmp_path, 'a,n,b\n1,"x\ny",2\n1,x,"two"\n')  # text of two lines is one row
    refused(lambda: read_table(file), file, "got 'two' in column 'b', row 1 (from 0): correct it, or omit")


WEIGHTS = [
    (lambda f: npy_file(f, ROWS - 3.0), 0, "weights that are not negative, got -3 in row 0"),
    (lambda f: parquet_file(f, {"a": [1.0, 2.0], "w": [1.0, -1.0]}), "w", "not negative, got -1 in row 1"),
    (lambda f: write_file(f, "a,w\n1,2\n\n3,-1\n"), "w", "not negative, got -1 in row 1"),
    (lambda f: npy_file(f, ROWS * 0), 0, "must have a positive weight, got only zeros"),
    (lambda f: parquet_file(f, {"a": [1.0], "w": [0.0]}), "w", "must have a positive weight, got only zeros"),
    (lambda f: write_file(f, "a,w\n1,0\n"), "w", "must have a positive weight, got only zeros"),
]


@pytest.mark.parametrize(("make", "weight", "expected"), WEIGHTS)
def test_weights(make, weight, expected, tmp_path):
    file = make(tmp_path)
    refused(lambda: read_table(file, weights=weight), file, expected)
    refused(lambda: pass_over(file, weight=weight), file, expected)


def test_nothing_but_weights(tmp_path):
    file = write_file(tmp_path, "w\n1\n")
    refused(lambda: read_table(file, weights="w"), file, "a numeric column, got none except the weights.")


SEVERAL = {
    "NaN in the second": (
        lambda f: [npy_file(f, ROWS, "a.npy"), npy_file(f, nan_at(2, 0), "b.npy")],
        r"b\.npy must .* in row 2, column 0",
    ),
    "another width": (
        lambda f: [npy_file(f, ROWS, "a.npy"), npy_file(f, ROWS[:, :1], "b.npy")],
        r"b\.npy must have rows of shape \(2,\), as .*a\.npy, got \(1,\)",
    ),
    "other columns, csv": (
        lambda f: [write_file(f, "a,b\n1,2\n", "1.csv"), write_file(f, "a,c\n1,2\n", "2.csv")],
        r"2\.csv must have the columns of .*1\.csv, a, b, got a, c",
    ),
    "other columns, parquet": (
        lambda f: [parquet_file(f, {"a": [1.0]}, "1.parquet"), parquet_file(f, {"b": [1.0]}, "2.parquet")],
        r"2\.parquet must have the columns of .*1\.parquet, a, got b",
    ),
    "other formats": (
        lambda f: [npy_file(f, ROWS), write_file(f, "a,b\n1,2\n")],
        r"table\.csv must have the format of",
    ),
    "an empty folder": (lambda f: f, "must have a file that ends in .* got a folder with none"),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_several_files(case, tmp_path):
    make, expected = SEVERAL[case]
    path = make(tmp_path)
    assert re.search(expected, sentence_of(lambda: pass_over(path)))


# Damage, and rows far down.


def test_files_cut_off(tmp_path):
    file = npy_file(tmp_path, np.zeros((100, 4)))
    os.truncate(file, 1000)
    refused(lambda: read_table(file), file, "a damaged file (mmap length is greater than file size).")
    np.savez(tmp_path / "a.npz", ROWS)
    (tmp_path / "a.npz").rename(file)
    refused(lambda: read_table(file), file, "must be a file of numpy.save")
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    refused(lambda: read_table(file), file, "memory-mapped: Python objects in dtype).")
    good = parquet_file(tmp_path, {"a": np.random.default_rng(0).normal(size=1000)})
    whole = good.read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 1):
        good.write_bytes(whole[:cut])
        sentence_of(lambda: read_table(good), (ValueError, OSError))
    good.write_bytes(whole[:300] + b"\xff" * 200 + whole[500:])
    with contextlib.suppress(ValueError, OSError):  # or numbers that no checksum protects
        read_table(good)


def large_parquet(folder, **options):
    rows = np.random.default_rng(0).normal(size=2000)
    return parquet_file(folder, {"a": rows, "b": rows + 1}, compression="none", **options)


def test_damage_while_rows_are_read(tmp_path):
    """Arrow's complaints do not know the file."""
    file = large_parquet(tmp_path, use_dictionary=False)
    content = bytearray(file.read_bytes())
    content[4:60] = bytes(56)  # the head of the first page
    file.write_bytes(content)
    assert open_source(file).n == 2000
    for read in (pass_over, read_table):
        refused(lambda read=read: read(file), file, "must be a Parquet file, got another or a damaged file (")
    file = parquet_file(tmp_path, {"text": ["fish and rice"] * 50})
    content = file.read_bytes()
    for place in (10, len(content) - 60):
        file.write_bytes(content[:place] + b"\xff" * 30 + content[place + 30 :])
        refused(lambda: read_corpus(file), file, "must be a Parquet file, got another or a damaged file (")


def test_rows_that_are_only_said(tmp_path):
    """The footer says 2,000 of the file, of its row group and of each column."""
    file = large_parquet(tmp_path)
    content = file.read_bytes()
    said, other = b"\x16\xa0\x1f", b"\x16\xa2\x1f"  # 2,000 and 2,001, as Parquet writes them
    places = [
        match.start() for match in re.finditer(re.escape(said), content) if match.start() > len(content) - 600
    ]
    assert len(places) == 4
    wrong = set()
    for place in places:
        file.write_bytes(content[:place] + other + content[place + 3 :])
        for read in (pass_over, read_table):
            with contextlib.suppress(pytest.fail.Exception):
                refused(lambda read=read: read(file), file)
                wrong.add(read)
    assert wrong == {pass_over, read_table}


def test_more_rows_than_there_can_be(tmp_path, monkeypatch):
    monkeypatch.setattr("swiftem.data.table_files.FREE", 1 << 20)
    file = parquet_file(tmp_path, {"a": np.zeros(10**6)}, row_group_size=10**5)
    assert file.stat().st_size < 6000
    said = "got 1,000,000: it is damaged, or "
    refused(lambda: read_table(file), file, f"{said}read it in pieces with open_source")
    pass_over(file)
    parquet_file(tmp_path, {"a": np.zeros(10**6)})
    refused(lambda: open_source(file), file, f"{said}write it with smaller row groups")


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
def test_row_90000(tmp_path, column, value, expected, group):
    """Rows are read 65,536 at a time; their numbers go on."""
    columns = {"a": np.ones(100_000), "w": np.ones(100_000)}
    columns[column][90_000] = value
    file = parquet_file(tmp_path, columns, row_group_size=group)
    refused(lambda: pass_over(file, weight="w"), file, expected)
    if column == "a":
        source = open_source(file)
        refused(
            lambda: source.take(np.array([source.n - 1, 85_000])) and source.take(np.array([90_000])),
            file,
            expected,
        )


def test_a_place_far_down(tmp_path):
    array = np.zeros((600_000, 3), dtype=np.float32)
    array[512_345, 2] = np.inf
    file = npy_file(tmp_path, array)
    for options in ({}, {"weights": 2}):
        refused(lambda options=options: read_table(file, **options), file, "in row 512345, column 2")


def test_rows_after_a_row_group_without_weight_keep_their_numbers(tmp_path):
    columns = {"a": [1.0, 2.0, 3.0, 4.0, 5.0, np.nan], "w": [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]}
    file = parquet_file(tmp_path, columns, row_group_size=2)
    assert open_source(file, weight="w").n == 4
    refused(lambda: pass_over(file, weight="w"), file, "got a missing value in column 'a', row 5")


def test_a_file_that_changes_between_passes(tmp_path):
    source = open_source(write_file(tmp_path, "a,b\n1,2\n3,4\n"))
    for content, expected in (
        ("a,b\n1,2\n3,x\n", "got 'x' in column 'b', row 1"),
        ("a,b\n1,2\n", "the same in every pass"),
    ):
        write_file(tmp_path, content)
        assert expected in sentence_of(lambda: list(source.blocks(4)))


# Blocks.


def changing():
    """Return blocks that are one fewer each time."""
    left = [3]

    def blocks():
        left[0] -= 1
        return iter([ROWS] * (left[0] + 1))

    return blocks


BLOCKS = {
    "nothing": (lambda: [], "one row of positive weight, got blocks with none"),
    "empty blocks": (lambda: [ROWS[:0]], "one row of positive weight, got blocks with none"),
    "another width": (lambda: [ROWS, ROWS[:, :1]], r"block 1 of data must have rows of shape \(2,\)"),
    "NaN": (lambda: [ROWS, nan_at(3, 1)], r"block 1 of data must be finite, got NaN at position \(3, 1\)"),
    "text": (lambda: [["a"]], "block 0 of data must hold real numbers"),
    "three axes": (lambda: [np.zeros((2, 2, 2))], r"block 0 of data must have shape \(b,\) or \(b, d\)"),
    "a triple": (lambda: [(ROWS, ROWS, ROWS)], "rows, or rows and weights, got a tuple of 3"),
    "weights now and then": (lambda: [(ROWS, np.ones(6)), ROWS], "must have weights if the first has"),
    "a negative weight": (lambda: [(ROWS, -np.ones(6))], "weights of block 0 of data must not be neg"),
    "too few weights": (lambda: [(ROWS, np.ones(2))], r"must have shape \(6,\), got \(2,\)"),
    "no weight": (lambda: [(ROWS, np.zeros(6))], "one row of positive weight, got blocks with none"),
    "a generator": (lambda: (block for block in [ROWS]), "a generator is exhausted after one pass"),
    "a function of no iterator": (lambda: lambda: 3, "must return an iterator of blocks, got int"),
    "a number": (lambda: 3, "must be a function or an iterable, got int"),
    "fewer each time": (changing, "the same in every pass"),
}


@pytest.mark.parametrize("case", BLOCKS)
def test_blocks(case):
    make, expected = BLOCKS[case]
    sentence = sentence_of(lambda: list(BlockSource(make()).blocks(4)), (TypeError, ValueError))
    assert re.search(expected, sentence)


@pytest.mark.parametrize("name", methods.METHODS)
def test_a_generator_is_refused_by_every_method(name):
    blocks, method = (block for block in [ROWS]), methods.METHODS[name]()
    with pytest.raises(ValueError, match=r"readable more than once: .*partial_fit takes a generator"):
        swiftem.run(models.GaussianMixtureModel(2), blocks, method, n_iter=1)


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        (lambda: open_source([]), TypeError, "or a list of them, got an empty one"),
        (lambda: open_source(3), TypeError, "got int"),
        (lambda: as_source("no-such.npy"), FileNotFoundError, "but does not exist"),
    ],
)
def test_what_is_no_path(call, kind, expected):
    assert expected in sentence_of(call, kind)


@pytest.mark.filterwarnings("ignore:Components that sit on few")
def test_weights_beside_a_file(tmp_path):
    file, ones = npy_file(tmp_path, ROWS), np.ones(6)
    with pytest.raises(ValueError, match="sample_weight must be a column of the file"):
        as_source(file, ones)
    with pytest.raises(ValueError, match="sample_weight must be a column of the file"):
        GaussianMixture(2).fit(file, sample_weight=ones)
    mixture = GaussianMixture(2, random_state=0).fit(file)
    for name in ("score", "bic", "aic", "icl"):
        with pytest.raises(ValueError, match="sample_weight must be a column of the file"):
            getattr(mixture, name)(file, sample_weight=ones)


@pytest.mark.parametrize("window", [0, -1, 2.5, "many"])
@pytest.mark.parametrize("kind", ["npy", "csv", "parquet"])
def test_a_wrong_window(tmp_path, kind, window):
    file = written(tmp_path, kind, {"npy": ROWS, "csv": "a,b\n1,2\n", "parquet": [1.0]}[kind])
    with pytest.raises((TypeError, ValueError), match="window must be"):
        open_source(file, window=window)
