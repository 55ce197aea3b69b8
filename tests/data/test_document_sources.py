"""Documents in blocks: the counts of the readers that load them, and what is wrong, by file and line."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from anonymous_memory import peak
from table_files import sentence_of

from swiftem.data import (
    CsrDocuments,
    DocumentSource,
    open_documents,
    read_bag_of_words,
    read_lda_c,
)
from swiftem.data.documents import text_files

rng = np.random.default_rng(0)
COUNTS = sp.csr_array(rng.poisson(0.4, size=(57, 11)) * (rng.random((57, 1)) > 0.1))
WORDS = tuple(["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi"])


def write_uci(folder, counts=COUNTS, name="docword.toy.txt"):
    matrix = sp.coo_array(sp.csr_array(counts))
    lines = [f"{counts.shape[0]}", f"{counts.shape[1]}", f"{matrix.nnz}"]
    columns = (matrix.row + 1, matrix.col + 1, matrix.data)
    lines += map("{} {} {}".format, *(column.tolist() for column in columns))
    file = folder / name
    text = ("\n".join(lines) + "\n").encode()
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (folder / "vocab.toy.txt").write_text("\n".join(WORDS[: counts.shape[1]]) + "\n")
    return file


def write_lda_c(folder, counts=COUNTS):
    file = folder / "toy.ldac"
    rows = [counts[[d]].tocoo() for d in range(counts.shape[0])]
    lines = [
        " ".join([str(row.nnz), *(f"{w}:{c}" for w, c in zip(row.col, row.data, strict=True))])
        for row in rows
    ]
    file.write_text("\n".join(lines) + "\n")
    return file


def write_text(folder, counts=COUNTS):
    file = folder / "toy.txt"
    dense = counts.toarray()
    words = [
        " ".join(word for word, count in zip(WORDS, row, strict=True) for _ in range(count)) for row in dense
    ]
    file.write_text("\n".join(f"99 {line}" for line in words) + "\n")
    return file


def make(kind, folder):
    if kind == "memory":
        return CsrDocuments(COUNTS)
    if kind == "npz":
        sp.save_npz(folder / "toy.npz", COUNTS[np.diff(COUNTS.indptr) > 0])
        return open_documents(folder / "toy.npz")
    if kind == "matrixmarket":
        scipy.io.mmwrite(folder / "toy.mtx", COUNTS[np.diff(COUNTS.indptr) > 0])
        return open_documents(folder / "toy.mtx")
    if kind == "text":
        return open_documents(write_text(folder), WORDS)
    writers = {"uci": write_uci, "lda-c": write_lda_c}
    if kind == "uci.gz":
        return open_documents(write_uci(folder, name="docword.toy.txt.gz"))
    return open_documents(writers[kind](folder))


@pytest.mark.parametrize("kind", ["memory", "npz", "matrixmarket", "uci", "uci.gz", "lda-c", "text"])
@pytest.mark.parametrize("rows", [1, 7, 19, 57, 100])
def test_blocks_are_the_documents_in_order(kind, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "PIECE", 64)  # entries of a document in several pieces
    source = make(kind, tmp_path)
    assert isinstance(source, DocumentSource)
    expected = COUNTS.toarray()
    if kind in ("npz", "matrixmarket"):
        expected = expected[expected.any(axis=1)]
    assert source.n_words == 11
    for _ in range(2):
        start = 0
        for first, block in source.blocks(rows):
            assert first == start
            assert block.shape == (min(rows, len(expected) - start), 11)
            assert block.has_canonical_format
            assert (block.data > 0).all()
            np.testing.assert_array_equal(block.toarray(), expected[start : start + rows])
            start += block.shape[0]
        assert start == len(expected) == source.n_documents


def test_counts_are_those_of_the_readers(tmp_path):
    some = np.diff(COUNTS.indptr) > 0
    for source, corpus in (
        (open_documents(write_uci(tmp_path)), read_bag_of_words(tmp_path / "docword.toy.txt")),
        (open_documents(write_lda_c(tmp_path)), read_lda_c(tmp_path / "toy.ldac")),
    ):
        ((_, block),) = source.blocks(1000)
        np.testing.assert_array_equal(block[some].toarray(), corpus.counts.toarray())


@pytest.mark.parametrize("kind", ["memory", "uci", "lda-c", "text"])
def test_fingerprints(kind, tmp_path):
    first = make(kind, tmp_path).fingerprint()
    assert make(kind, tmp_path).fingerprint() == first
    global COUNTS
    before, other = COUNTS, COUNTS.copy()
    other.data[3] += 1
    try:
        COUNTS = other
        assert (CsrDocuments(other) if kind == "memory" else changed(kind, tmp_path)).fingerprint() != first
    finally:
        COUNTS = before


def changed(kind, folder):
    writers = {"uci": write_uci, "lda-c": write_lda_c, "text": write_text}
    return open_documents(writers[kind](folder, COUNTS), WORDS if kind == "text" else None)


HEAD = "3\n2\n4\n"
BAD_UCI = {
    "no head": ("many\n2\n3\n", "number of documents in line 1, got 'many'"),
    "empty": ("", "number of documents in line 1, got ''"),
    "a word": (HEAD + "1 1 1\n1 x 1\n2 1 1\n3 1 1\n", "got '1 x 1' in line 5"),
    "four numbers": (HEAD + "1 1 1\n1 2 1 9\n2 1 1\n3 1 1\n", "got '1 2 1 9' in line 5"),
    "a negative count": (HEAD + "1 1 1\n1 2 -1\n2 1 1\n3 1 1\n", "got '1 2 -1' in line 5"),
    "a document too many": (HEAD + "1 1 1\n1 2 1\n2 1 1\n4 1 1\n", "documents from 1 to 3, got 4 in line 7"),
    "word zero": (HEAD + "1 0 1\n1 2 1\n2 1 1\n3 1 1\n", "words from 1 to 2, got 0 in line 4"),
    "too few": (HEAD + "1 1 1\n", "must have 4 entries, as its line 3 says, got 1"),
    "disorder": (HEAD + "1 1 1\n\n3 1 1\n2 1 1\n3 2 1\n", "must be ordered by document, got another order"),
    "a huge count": (HEAD + "1 1 1\n1 2 9999999999999999999\n2 1 1\n3 1 1\n", "counts .* in line 5"),
}


@pytest.mark.parametrize("size", [8, 1 << 20])
@pytest.mark.parametrize("case", BAD_UCI)
def test_uci_files_that_are_wrong(case, size, tmp_path, monkeypatch):
    import re

    content, expected = BAD_UCI[case]
    file = tmp_path / "docword.bad.txt"
    file.write_text(content)
    (tmp_path / "vocab.bad.txt").write_text("fish\nrice\n")
    monkeypatch.setattr(text_files, "PIECE", max(size, 8))
    sentence = sentence_of(lambda: list(open_documents(file).blocks(2)))
    assert sentence.startswith(str(file))
    assert re.search(expected, sentence), sentence


def test_other_files_that_are_wrong(tmp_path):
    file = tmp_path / "toy.dat"
    for content, expected in (
        ("1 0:1\n2 0:1\n", "got 2 and 1 pairs in line 2"),
        ("1 0:1\n1 0:-2\n", "pairs such as 17:2, in each line, got '1 0:-2' in line 2"),
    ):
        file.write_text(content)
        assert expected in sentence_of(lambda: list(open_documents(file, format="lda-c").blocks(5)))
    file.write_text("1 0:1\n1 7:1\n")
    (tmp_path / "vocab.txt").write_text("fish\nrice\n")
    sentence = sentence_of(lambda: list(open_documents(file, format="lda-c").blocks(5)))
    assert "words from 0 to 1" in sentence
    assert "got 7 in line 2" in sentence
    (tmp_path / "empty.txt").write_text("\n")
    assert "at least one document" in sentence_of(
        lambda: list(open_documents(tmp_path / "empty.txt", WORDS, "text").blocks(1))
    )
    assert "give vocabulary" in sentence_of(lambda: open_documents(write_text(tmp_path)))
    assert "at least one word, got none" in sentence_of(
        lambda: open_documents(tmp_path / "toy.txt", [], "text")
    )
    assert "not read in blocks" in sentence_of(lambda: open_documents(write_text(tmp_path), WORDS, "csv"))
    assert "not exist" in sentence_of(lambda: open_documents(tmp_path / "nowhere"), FileNotFoundError)
    assert "got int" in sentence_of(lambda: open_documents(3), TypeError)
    assert "of at least 0, got -1 in row 0, column 0" in sentence_of(
        lambda: CsrDocuments(sp.csr_array([[-1]]))
    )
    assert "got shape (0, 3)" in sentence_of(lambda: CsrDocuments(sp.csr_array((0, 3))))
    assert "sparse" in sentence_of(lambda: CsrDocuments([[1]]), TypeError)


READ = """
from swiftem.data import open_documents
print(sum(block.sum() for _, block in open_documents(sys.argv[1]).blocks(1000)))
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    counts = sp.csr_array((rng.random((20_000, 11)) < 0.5).astype(int))
    grown = []
    for copies in (1, 8):
        file = write_uci(tmp_path, sp.vstack([counts] * copies, format="csr"))
        output, found = peak(READ, file)
        assert int(output) == copies * counts.nnz
        grown.append(found)
    # 770,000 entries more are 18 MB as numbers; what a process takes differs by several from time to time.
    assert grown[1] < grown[0] + 1e7
