"""Matrices in files: MatrixMarket and ``.npz``."""

import gzip
import io
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from swiftem.data import read_count_matrix

COUNTS = [[1, 0, 2], [0, 3, 0]]
HEAD = "%%MatrixMarket matrix coordinate integer general\n"


def market(matrix, **options):
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, matrix, **options)
    return buffer.getvalue()


def write(folder, content, name="toy.mtx"):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize("dense", [False, True])
def test_matrix_market(tmp_path, dense):
    matrix = np.array(COUNTS) if dense else sp.coo_array(COUNTS)
    corpus = read_count_matrix(write(tmp_path, market(matrix)))
    np.testing.assert_array_equal(corpus.counts.toarray(), COUNTS)
    assert corpus.counts.dtype.kind == "i"
    assert corpus.names == ("row 0", "row 1")
    assert (corpus.words, corpus.format) == (None, "matrixmarket")


def test_compressed_matrix_market(tmp_path):
    file = write(tmp_path, gzip.compress(market(sp.coo_array(COUNTS))), "toy.mtx.gz")
    assert len(read_count_matrix(file)) == 2


def test_a_pattern_is_ones(tmp_path):
    file = write(tmp_path, "%%MatrixMarket matrix coordinate pattern general\n1 2 1\n1 2\n")
    assert read_count_matrix(file).counts.toarray().tolist() == [[0, 1]]


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.bool_])
def test_npz(tmp_path, kind, dtype):
    sp.save_npz(tmp_path / "toy.npz", kind(np.array(COUNTS, dtype=dtype)))
    corpus = read_count_matrix(tmp_path / "toy.npz")
    np.testing.assert_array_equal(corpus.counts.toarray(), np.array(COUNTS, dtype=dtype).astype(float))
    assert isinstance(corpus.counts, sp.csr_array)
    assert corpus.format == "npz"


def test_fractions_stay(tmp_path):
    sp.save_npz(tmp_path / "toy.npz", sp.csr_array([[0.5, 1.5]]))
    assert read_count_matrix(tmp_path / "toy.npz").counts.toarray().tolist() == [[0.5, 1.5]]


def test_the_vocabulary_beside_it_only_if_it_fits(tmp_path):
    file = write(tmp_path, market(sp.coo_array(COUNTS)))
    (tmp_path / "vocab.txt").write_text("fish\nrice\n")
    assert read_count_matrix(file).words is None
    with pytest.raises(ValueError, match=r"must have the 3 words of .*, got 2"):
        read_count_matrix(file, tmp_path / "vocab.txt")
    (tmp_path / "toy.vocab").write_text("fish\nrice\nrye\n")
    assert read_count_matrix(file).words == ("fish", "rice", "rye")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("hello", "got something else in line 1"),
        ("", "got something else in line 1"),
        (HEAD + "2 3 2\n1 1 4\n2 4 1\n", "columns from 1 to 3, got 4 in line 4"),
        (
            HEAD + "2 3 2\n1 1 4\n2 x 1\n",
            "row, column, count (whole numbers from 0) in each line, got '2 x 1' in line 4",
        ),
        (HEAD + "2 3 2\n1 1 4\n", "2 entries, as its line 2 says, got 1"),
        (HEAD + "2 3 1\n1 1 4\n2 2 2\n", "1 entries, as its line 2 says, got 2"),
        (
            HEAD + "% 0.5\n2 3 2\n1 1 4\n2 2 2.5\n",
            "(whole numbers from 0) in each line, got '2 2 2.5' in line 5",
        ),
        (HEAD + "2 3 2\n1 1 4\n2 2 -2\n", "got '2 2 -2' in line 4"),
        (
            "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 nan\n",
            "got nan in row 0, column 0",
        ),
        (
            "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 2\n",
            "got something else in line 1 ('%%MatrixMarket matrix coordinate complex general')",
        ),
        (HEAD + "2 3 0\n", "at least one document with a word"),
    ],
)
def test_what_is_wrong_in_matrix_market(tmp_path, content, sentence):
    file = write(tmp_path, content)
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        read_count_matrix(file)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)


def test_what_is_wrong_in_npz(tmp_path):
    np.savez(tmp_path / "dense.npz", a=np.eye(2))
    with pytest.raises(
        ValueError, match=r"must be a sparse matrix of counts, as scipy\.sparse\.save_npz writes it"
    ):
        read_count_matrix(tmp_path / "dense.npz")
    np.savez(tmp_path / "pickled.npz", a=np.array([{}], dtype=object), format=b"csr")
    with pytest.raises(ValueError, match="got another or a damaged file"):
        read_count_matrix(tmp_path / "pickled.npz")
    with pytest.raises(ValueError, match="got another or a damaged file"):
        read_count_matrix(write(tmp_path, b"PK nothing", "damaged.npz"))
    sp.save_npz(tmp_path / "negative.npz", sp.csr_array([[0, -1]]))
    with pytest.raises(ValueError, match="got -1 in row 0, column 1"):
        read_count_matrix(tmp_path / "negative.npz")
    sp.save_npz(tmp_path / "complex.npz", sp.csr_array([[1j]]))
    with pytest.raises(ValueError, match="it is a csr matrix of complex128"):
        read_count_matrix(tmp_path / "complex.npz")
    for name in ("nowhere.npz", "nowhere.mtx"):
        with pytest.raises(FileNotFoundError, match=r"must be a .*matrix of counts.*, but does not exist"):
            read_count_matrix(tmp_path / name)
