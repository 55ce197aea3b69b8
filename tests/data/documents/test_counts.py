"""Sparse matrices whose arrays do not fit each other: a sentence wherever one is given, never a crash."""

import numpy as np
import pytest
import scipy.sparse as sp
from table_files import sentence_of

import swiftem
from swiftem import PLSA, methods, models
from swiftem.data import CountSource, CsrDocuments, open_documents

COUNTS = np.array([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]])


def changed(form, **parts):
    """Return a matrix of this form, some of its arrays replaced."""
    matrix = sp.csr_array(COUNTS).asformat(form)
    for name, part in parts.items():
        setattr(matrix, name, np.asarray(part))
    return matrix


def with_index(form, place, value, name="indices"):
    matrix = sp.csr_array(COUNTS).asformat(form)
    getattr(matrix, name)[place] = value
    return matrix


def lil(rows=None, data=None):
    matrix = sp.lil_array(COUNTS)
    if rows is not None:
        matrix.rows[1] = rows
    if data is not None:
        matrix.data[1] = data
    return matrix


def dok(row, column):
    matrix = sp.dok_array(COUNTS)
    matrix._dict[row, column] = 1
    return matrix


CASES = {
    "csr, a column too large": lambda: with_index("csr", 2, 4),
    "csr, a column below 0": lambda: with_index("csr", 2, -1),
    "csr, indptr decreases": lambda: changed("csr", indptr=[0, 4, 2, 6, 8]),
    "csc, indptr ends far below 0": lambda: changed("csc", indptr=[0, 2, 4, 6, -(2**31)]),
    "csr, indptr begins late": lambda: changed("csr", indptr=[1, 2, 4, 6, 8]),
    "csr, indptr too large": lambda: changed("csr", indptr=[0, 2, 4, 6, 10**8]),
    "csr, indptr too short": lambda: changed("csr", indptr=[0, 2, 4, 8]),
    "csr, indptr too long": lambda: changed("csr", indptr=[0, 2, 4, 6, 8, 8]),
    "csr, indices too short": lambda: changed("csr", indices=[0, 1]),
    "csr, data too short": lambda: changed("csr", data=[1.0, 2.0]),
    "csr, indices of floats": lambda: changed("csr", indices=np.zeros(8)),
    "csr, two axes": lambda: changed("csr", indices=np.zeros((8, 1), np.int32)),
    "csc, a row too large": lambda: with_index("csc", 0, 9),
    "bsr, a column too large": lambda: with_index("bsr", 0, 7),
    "bsr, no blocks": lambda: changed("bsr", data=np.zeros((2, 0, 2))),
    "bsr, other blocks": lambda: changed("bsr", data=np.zeros((2, 3, 3))),
    "coo, a column below 0": lambda: with_index("coo", 0, -5, "col"),
    "coo, data too short": lambda: changed("coo", data=[1.0]),
    "dia, too many offsets": lambda: changed("dia", offsets=np.arange(99)),
    "dia, offsets of floats": lambda: changed("dia", offsets=[0.5] * 5),
    "lil, a column too large": lambda: lil(rows=[0, 9]),
    "lil, more values": lambda: lil(data=[1] * 1000),
    "dok, a column too large": lambda: dok(0, 11),
}


@pytest.fixture(scope="module")
def fitted():
    return PLSA(2, random_state=0, max_iter=5, tol=0.1).fit(sp.csr_array(COUNTS))


def ways(fitted):
    """Return every way into the library for a sparse matrix."""
    model = PLSA(2, random_state=0)
    run = lambda X: swiftem.run(models.PLSAModel(2), X, methods.EM(), n_iter=1)  # noqa: E731
    return [
        model.fit, model.fit_transform, model.partial_fit, fitted.transform, fitted.score, fitted.perplexity,
        fitted.coherence, fitted.to_pyldavis, CountSource, CsrDocuments, open_documents, run,
        lambda X: model.fit(_Documents(X)),
    ]  # fmt: skip


class _Documents:
    """A source of documents that somebody wrote."""

    n_documents, n_words = 4, 4

    def __init__(self, block):
        self.block = block

    def blocks(self, rows):
        yield 0, self.block

    def fingerprint(self):
        return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_what_is_no_matrix(case, fitted):
    for way in ways(fitted):
        sentence = sentence_of(lambda way=way: way(CASES[case]()))
        assert "must be a valid sparse matrix, got an invalid one (" in sentence, f"{way}: {sentence}"


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_every_form_is_the_same_matrix(form, fitted):
    matrix = sp.csr_array(COUNTS).asformat(form)
    np.testing.assert_array_equal(fitted.transform(matrix), fitted.transform(COUNTS))
    ((_, block),) = CsrDocuments(matrix).blocks(9)
    np.testing.assert_array_equal(block.toarray(), COUNTS)
    assert CountSource(matrix).fingerprint() == CountSource(sp.csr_array(COUNTS)).fingerprint()


def test_spare_entries_do_not_count(fitted):
    """SciPy lets arrays be longer than ``indptr`` says; the sum over the last row went to their end."""
    matrix = sp.csr_array(COUNTS)
    matrix.indices = np.append(matrix.indices, [99, -7]).astype(matrix.indices.dtype)
    matrix.data = np.append(matrix.data, [1000, 1000])
    assert fitted.score(matrix) == fitted.score(COUNTS)
    assert CountSource(matrix).n == COUNTS.sum()


def test_blocks_with_other_words():
    block = sp.csr_array(np.ones((4, 7)))
    assert "from document 0 on must have 4 words" in sentence_of(lambda: PLSA(2).fit(_Documents(block)))


def test_more_words_than_there_are_numbers_for(fitted):
    wide = sp.coo_array(([1.0], ([0], [2**33])), shape=(2, 2**33 + 1))
    assert "X must have at most 2,147,483,647 words" in sentence_of(lambda: PLSA(2).fit(wide))


class Like:
    """What another library's matrix has."""

    shape, nnz, dtype = (4, 4), 8, np.dtype(int)

    def tocsr(self):
        return with_index("csr", 2, 4)

    def astype(self, dtype):
        return self


def test_another_librarys():
    for way in (CountSource, CsrDocuments):
        assert "must be a valid sparse matrix" in sentence_of(lambda way=way: way(Like()))
