"""What is wrong with files and blocks, in one sentence each."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from table_files import csv_file, sentence_of

import swiftem
from swiftem import GaussianMixture, methods, models
from swiftem.data import BlockSource, as_source, open_source

ROWS = np.arange(12.0).reshape(6, 2)


def npy(folder, values, name="rows.npy"):
    np.save(folder / name, values)
    return folder / name


def pq(folder, columns, name="rows.parquet"):
    parquet.write_table(pa.table(columns), folder / name)
    return folder / name


def pass_over(source):
    return list(source.blocks(4))


def nan_at(row, column):
    rows = ROWS.copy()
    rows[row, column] = np.nan
    return rows


FILES = {
    "empty csv": (lambda f: csv_file(f, ""), r"table\.csv must have column names .* got an empty file"),
    "csv without rows": (lambda f: csv_file(f, "a,b\n"), "at least one row below"),
    "csv of text": (lambda f: csv_file(f, "a,b\nx,y\n"), "every column, got text in columns 'a', 'b'"),
    "csv with NaN": (lambda f: csv_file(f, "a,b\n1,2\n3,nan\n"), "missing value in column 'b', row 1"),
    "csv with inf": (lambda f: csv_file(f, "a,b\n1,2\n3,inf\n"), "an infinity in column 'b', row 1"),
    "csv of unequal lines": (lambda f: csv_file(f, "a,b\n1,2\n3\n"), "2 cells in every .* 1 cell in row 1"),
    "csv with text below": (lambda f: csv_file(f, "a,b\n1,2\n3,x\n"), "got 'x' in column 'b', row 1"),
    "empty npy": (lambda f: npy(f, np.empty((0, 2))), r"at least one row and one column, got shape \(0, 2\)"),
    "npy of text": (lambda f: npy(f, np.array(["a"])), "must hold real numbers"),
    "npy with three axes": (lambda f: npy(f, np.zeros((2, 2, 2))), r"shape \(n,\) or \(n, d\)"),
    "npy with NaN": (lambda f: npy(f, nan_at(4, 1)), "missing value in row 4, column 1"),
    "no npy": (lambda f: csv_file(f, "1,2", "rows.npy"), "must be a file of numpy.save"),
    "parquet with NaN": (lambda f: pq(f, {"a": [1.0, np.nan]}), "got a missing value in column 'a', row 1"),
    "parquet with null": (lambda f: pq(f, {"a": [1.0, None]}), "got a missing value in column 'a', row 1"),
    "parquet without rows": (lambda f: pq(f, {"a": pa.array([], pa.float64())}), "at least one row"),
    "parquet of text": (lambda f: pq(f, {"a": ["x"]}), "numbers in every column, got text in column 'a'"),
    "no parquet": (lambda f: csv_file(f, "1,2", "rows.parquet"), "must be a Parquet file"),
    "several files, NaN in the second": (
        lambda f: [npy(f, ROWS, "a.npy"), npy(f, nan_at(2, 0), "b.npy")], r"b\.npy must .* in row 2, column 0"
    ),
    "another width, npy": (
        lambda f: [npy(f, ROWS, "a.npy"), npy(f, ROWS[:, :1], "b.npy")],
        r"b\.npy must have rows of shape \(2,\), as .*a\.npy, got \(1,\)",
    ),
    "other columns, csv": (
        lambda f: [csv_file(f, "a,b\n1,2\n", "1.csv"), csv_file(f, "a,c\n1,2\n", "2.csv")],
        r"2\.csv must have the columns of .*1\.csv, a, b, got a, c",
    ),
    "other columns, parquet": (
        lambda f: [pq(f, {"a": [1.0]}, "1.parquet"), pq(f, {"b": [1.0]}, "2.parquet")],
        r"2\.parquet must have the columns of .*1\.parquet, a, got b",
    ),
    "other formats": (
        lambda f: [npy(f, ROWS), csv_file(f, "a,b\n1,2\n")], r"table\.csv must have the format of"
    ),
    "an empty folder": (lambda f: f, "must have a file that ends in .* got a folder with none"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_files(case, tmp_path):
    make, expected = FILES[case]
    path = make(tmp_path)
    assert_matches(expected, sentence_of(lambda: pass_over(open_source(path))))


def assert_matches(expected, sentence):
    import re

    assert re.search(expected, sentence), sentence


WEIGHTS = {
    "npy": (lambda f: npy(f, ROWS - 3.0), 0, "weights that are not negative, got -3 in row 0"),
    "parquet": (lambda f: pq(f, {"a": [1.0, 2.0], "w": [1.0, -1.0]}), "w", "not negative, got -1 in row 1"),
    "csv": (lambda f: csv_file(f, "a,w\n1,2\n3,-1\n"), "w", "not negative, got -1 in row 1"),
    "zeros, npy": (lambda f: npy(f, ROWS * 0), 0, "positive weight, got only zeros"),
    "zeros, parquet": (lambda f: pq(f, {"a": [1.0], "w": [0.0]}), "w", "positive weight, got only zeros"),
    "zeros, csv": (lambda f: csv_file(f, "a,w\n1,0\n"), "w", "positive weight, got only zeros"),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights(case, tmp_path):
    make, weight, expected = WEIGHTS[case]
    path = make(tmp_path)
    assert_matches(expected, sentence_of(lambda: pass_over(open_source(path, weight=weight))))


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
}  # fmt: skip


@pytest.mark.parametrize("case", BLOCKS)
def test_blocks(case):
    make, expected = BLOCKS[case]
    assert_matches(expected, sentence_of(lambda: BlockSource(make()), (TypeError, ValueError)))


def test_blocks_that_change():
    source = BlockSource(changing())
    assert_matches("the same in every pass", sentence_of(lambda: pass_over(source)))


@pytest.mark.parametrize("name", methods.METHODS)
def test_a_generator_is_refused_by_every_method(name):
    blocks = (block for block in [ROWS])
    call = lambda: swiftem.run(models.GaussianMixtureModel(2), blocks, methods.METHODS[name](), n_iter=1)  # noqa: E731
    assert_matches("readable more than once: .*partial_fit takes a generator", sentence_of(call))


def test_what_is_no_path():
    assert_matches("or a list of them, got an empty one", sentence_of(lambda: open_source([]), TypeError))
    assert_matches("got int", sentence_of(lambda: open_source(3), TypeError))
    sentence = sentence_of(lambda: open_source("rows.npy", columns="ab"), TypeError)
    assert_matches("columns must be a sequence", sentence)
    assert_matches("but does not exist", sentence_of(lambda: as_source("no-such.npy"), FileNotFoundError))


@pytest.mark.filterwarnings("ignore:Components that sit on few")
def test_weights_beside_a_file(tmp_path):
    file = npy(tmp_path, ROWS)
    for call in (
        lambda: as_source(file, np.ones(6)),
        lambda: GaussianMixture(2).fit(file, sample_weight=np.ones(6)),
    ):
        assert_matches("sample_weight must be a column of the file", sentence_of(call))
    mixture = GaussianMixture(2, random_state=0).fit(file)
    for name in ("score", "bic", "aic", "icl"):
        call = getattr(mixture, name)
        assert_matches(
            "to the source, not as a separate argument",
            sentence_of(lambda call=call: call(file, sample_weight=[1] * 6)),
        )


@pytest.mark.parametrize("window", [0, -1, 2.5, "many"])
def test_a_wrong_window(tmp_path, window):
    files = [npy(tmp_path, ROWS), csv_file(tmp_path, "a,b\n1,2\n"), pq(tmp_path, {"a": [1.0]})]
    for file in files:
        call = lambda file=file: open_source(file, window=window)  # noqa: E731
        assert_matches("window must be", sentence_of(call, (TypeError, ValueError)))


def test_a_file_that_changes_between_passes(tmp_path):
    file = csv_file(tmp_path, "a,b\n1,2\n3,4\n")
    source = open_source(file)
    csv_file(tmp_path, "a,b\n1,2\n3,x\n")
    assert_matches("got 'x' in column 'b', row 1", sentence_of(lambda: pass_over(source)))
    csv_file(tmp_path, "a,b\n1,2\n")
    assert_matches("the same in every pass", sentence_of(lambda: pass_over(source)))


def test_rows_after_a_row_group_without_weight_keep_their_numbers(tmp_path):
    columns = {"a": [1.0, 2.0, 3.0, 4.0, 5.0, np.nan], "w": [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=2)
    source = open_source(tmp_path / "rows.parquet", weight="w")
    assert source.n == 4
    assert_matches("got a missing value in column 'a', row 5", sentence_of(lambda: pass_over(source)))
