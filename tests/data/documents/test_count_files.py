"""Counts of words in files: UCI, lda-c, MatrixMarket and ``.npz``, loaded and in blocks."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from anonymous_memory import peak
from combinations.counts import FILES as FILE_KINDS
from table_files import refused, sentence_of, traced_peak, write_file

from swiftem.data import (
    CsrDocuments,
    DocumentSource,
    open_documents,
    read_bag_of_words,
    read_corpus,
    read_count_matrix,
    read_lda_c,
)

UCI = b"3\n2\n4\n1 1 1\n1 2 1\n2 2 2\n3 1 5\n"
LDA_C = b"2 0:1 1:1\n1 1:2\n1 0:5\n"
HEAD = b"%%MatrixMarket matrix coordinate integer general\n"
MARKET = HEAD + UCI.replace(b"\n", b" ", 2)
COUNTS = [[1, 1], [0, 2], [5, 0]]
FILES = {"docword.toy.txt": UCI, "toy.ldac": LDA_C, "toy.mtx": MARKET}
READERS = {"docword.toy.txt": read_bag_of_words, "toy.ldac": read_lda_c, "toy.mtx": read_count_matrix}
LONG = b"1" * 5000


def write(folder, content, name):
    """Write a file, and the vocabulary of a bag of words."""
    if name.startswith("docword."):
        write_file(folder, "fish\nrice\n", "vocab.toy.txt")
    return write_file(folder, content, name)


def blocks(path, rows=100):
    return [block.toarray().tolist() for _, block in open_documents(path).blocks(rows)]


def refused_by_all(file, *expected):
    """Check that both ways to read a file refuse it by the same words."""
    refused(lambda: read_corpus(file), file, *expected)
    refused(lambda: blocks(file), file, *expected)


# What is read.

LAYOUTS = {
    "as it is": lambda content: content,
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "no last line end": lambda content: content.rstrip(b"\n"),
    "empty lines": lambda content: content.replace(b"1 1\n", b"1 1\n\n") + b"\n\n",
    "tabs": lambda content: content.replace(b" 2\n", b"\t2 \n"),
    **{  # white space without a newline, on which SciPy's reader ends the process
        f"ends in {end!r}": lambda content, end=end: content.rstrip(b"\n") + end
        for end in (b" ", b"\t", b"\r", b" \r", b"\n ", b"\n\t\r")
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FILES)
def test_layouts(tmp_path, name, layout):
    if layout == "empty lines" and name == "toy.ldac":
        pytest.skip("an empty line is a document")
    file = write(tmp_path, LAYOUTS[layout](FILES[name]), name)
    assert read_corpus(file).counts.toarray().tolist() == COUNTS
    assert blocks(file) == [COUNTS]


@pytest.mark.parametrize("name", FILES)
def test_compressed(tmp_path, name):
    file = write(tmp_path, gzip.compress(FILES[name]), f"{name}.gz")
    assert READERS[name](file).counts.toarray().tolist() == COUNTS
    assert blocks(file) == [COUNTS]
    file = write(tmp_path, gzip.compress(FILES[name])[:-6], f"{name}.gz")
    refused_by_all(file, "whole gzip file, got a damaged one")


@pytest.mark.parametrize(
    ("name", "documents", "words"),
    [
        ("docword.toy.txt", ("document 1", "document 2", "document 3"), ("fish", "rice")),
        ("toy.ldac", ("line 1", "line 2", "line 3"), None),
        ("toy.mtx", ("row 0", "row 1", "row 2"), None),
    ],
)
def test_names(tmp_path, name, documents, words):
    corpus = READERS[name](write(tmp_path, FILES[name], name))
    assert (corpus.names, corpus.words, corpus.texts, corpus.notes) == (documents, words, None, ())
    assert corpus.word_names() == (words or ("word 0", "word 1"))
    assert corpus.counts.dtype.kind == "i"


@pytest.mark.parametrize(
    ("name", "content", "documents"),
    [
        ("docword.toy.txt", b"3\n2\n2\n1 1 1\n3 2 1\n", ("document 1", "document 3")),
        ("toy.ldac", b"1 0:1\n\n0\n1 1:1\n", ("line 1", "line 4")),
        ("toy.mtx", HEAD + b"3 2 2\n1 1 1\n3 2 1\n", ("row 0", "row 2")),
    ],
)
def test_documents_without_words_are_left_out_and_names_stay(tmp_path, name, content, documents):
    corpus = READERS[name](write(tmp_path, content, name))
    assert corpus.names == documents
    assert corpus.notes == ("1 of 3 documents have no words and were left out.",)


def test_a_word_twice_in_a_document_is_added_up(tmp_path):
    assert read_lda_c(write(tmp_path, "2 1:2 1:3\n", "a.ldac")).counts.toarray().tolist() == [[0, 5]]


@pytest.mark.parametrize("name", ["toy.vocab", "toy.vocab.txt", "vocab.toy.txt", "vocab.txt"])
def test_the_vocabulary_beside_a_file(tmp_path, name):
    write_file(tmp_path, "fish\nrice\nrye\n", name)
    corpus = read_lda_c(write(tmp_path, "1 1:4\n", "toy.dat"))
    assert (corpus.words, corpus.counts.shape) == (("fish", "rice", "rye"), (1, 3))
    file = write(tmp_path, MARKET, "toy.mtx")
    if name == "vocab.txt":  # not the file's own: only if it fits
        assert read_count_matrix(file).words is None
    with pytest.raises(ValueError, match=r"must have the 2 words of .*, got 3"):
        read_count_matrix(file, tmp_path / name)


def test_vocabularies_that_do_not_fit(tmp_path):
    words = write_file(tmp_path, "cod\nrye\n", "elsewhere")
    file = write(tmp_path, UCI, "docword.toy.txt")
    assert read_bag_of_words(file, words).words == ("cod", "rye")
    words.write_text("fish\n")
    with pytest.raises(ValueError, match=r"elsewhere must have the 2 words of .*, got 1"):
        read_bag_of_words(file, words)
    (tmp_path / "vocab.toy.txt").unlink()
    with pytest.raises(
        FileNotFoundError,
        match=r"vocab\.toy\.txt does not exist: name another file with vocabulary \(--words",
    ):
        read_bag_of_words(file)
    file = write(tmp_path, "1 2:1\n", "toy.ldac")
    words.write_text("fish\nrice\n")
    with pytest.raises(ValueError, match="words from 0 to 1, got 2 in line 1"):
        read_lda_c(file, words)
    with pytest.raises(FileNotFoundError, match="nowhere must be a vocabulary"):
        read_lda_c(file, tmp_path / "nowhere")


def test_missing_files(tmp_path):
    for read, name, what in (
        (read_bag_of_words, "a.txt", "a bag of words in UCI's format"),
        (read_count_matrix, "a.npz", "matrix of counts"),
        (read_count_matrix, "a.mtx", "matrix of counts"),
    ):
        with pytest.raises(FileNotFoundError, match=f"{name} must be .*{what}.*does not exist"):
            read(tmp_path / name)


def test_matrices_of_other_kinds(tmp_path):
    dense = FILE_KINDS["mtx of an array"].make(np.array(COUNTS), None, tmp_path).X
    assert read_count_matrix(dense).n_tokens == 9
    pattern = "%%MatrixMarket matrix coordinate pattern general\n1 2 1\n1 2\n"
    assert read_count_matrix(write(tmp_path, pattern, "b.mtx")).counts.toarray().tolist() == [[0, 1]]


# What is wrong, with its line.


def uci(old, new):
    return "docword.toy.txt", UCI.replace(old, new, 1)


def lda(line):
    return "toy.ldac", b"1 0:1\n" + line + b"\n"


def mtx(old, new):
    return "toy.mtx", MARKET.replace(old, new, 1)


WRONG = [
    (uci(UCI, b""), "the number of documents in line 1, got ''"),
    (uci(b"3\n2\n4", b"many\n2\n4"), "the number of documents in line 1, got 'many'"),
    (uci(b"3\n2\n4", b"3\nmany\n4"), "the number of words in line 2, got 'many'"),
    (uci(UCI[3:], b"\n"), "the number of entries in line 3, got ''"),
    (uci(b"3\n2\n4", b"0\n2\n4"), "the number of documents in line 1, got '0'"),
    (uci(b"2 2 2", b"2 2"), "got '2 2' in line 6"),
    (uci(b"2 2 2", b"two 2 2"), "got 'two 2 2' in line 6"),
    (uci(b"2 2 2", b"2 2 -2"), "count (whole numbers from 0) in each line, got '2 2 -2' in line 6"),
    (uci(b"2 2 2", b"2 3 2"), "words from 1 to 2, got 3 in line 6"),
    (uci(b"2 2 2", b"2 0 2"), "words from 1 to 2, got 0 in line 6"),
    (uci(b"3 1 5", b"4 1 5"), "documents from 1 to 3, got 4 in line 7"),
    (uci(b"2 2 2\n", b""), "4 entries, as its line 3 says, got 3"),
    (uci(b"3 1 5\n", b"3 1 5\n3 2 1\n"), "4 entries, as its line 3 says, got 5"),
    (uci(b"\n4\n", b"\n9\n"), "9 entries, as its line 3 says, got 4"),
    (
        uci(b"2 2 2", b"2 2 1" + 30 * b"0"),
        "counts from 0 to 9007199254740992, got 9223372036854775807 in line 6",
    ),
    (uci(b"3\n2\n4", LONG + b"\n2\n4"), ""),
    (uci(b"1 1 1", LONG + b" 1 1"), ""),
    (lda(b"2 0:1"), "got 2 and 1 pairs in line 2"),
    (lda(b"1 0:1 1:1"), "got 1 and 2 pairs in line 2"),
    (lda(b"one 0:1"), "the number of pairs, and pairs such as 17:2, in each line, got 'one 0:1' in line 2"),
    (lda(b"-1 0:1"), "got '-1 0:1' in line 2"),
    (lda(b"2 0:1:2 4"), "got '2 0:1:2 4' in line 2"),
    (lda(b"1 0:-2"), "got '1 0:-2' in line 2"),
    (lda(b"1 -3:2"), "got '1 -3:2' in line 2"),
    (lda(b"1 2147483648:1"), "words from 0 to 2147483646, got 2147483648 in line 2"),
    (lda(b"1 " + LONG + b":1"), "words from 0 to 2147483646, got 9223372036854775807 in line 2"),
    (lda(b"1 0:" + LONG), "counts from 0 to 9007199254740992, got 9223372036854775807 in line 2"),
    (lda(LONG + b" 0:1"), "in line 2"),
    (mtx(MARKET, b"hello"), "got something else in line 1"),
    (mtx(MARKET, b""), "got something else in line 1"),
    (mtx(b"integer", b"complex"), "got something else in line 1"),
    (mtx(b"general", b"symmetric"), "got something else in line 1"),
    (mtx(MARKET, b"%%MatrixMarket matrix array pattern general\n2 1\n\n\n\n"), "something else in line 1"),
    (mtx(b"2 2 2", b"2 3 2"), "columns from 1 to 2, got 3 in line 5"),
    (mtx(b"2 2 2", b"2 x 2"), "row, column, count (whole numbers from 0) in each line, got '2 x 2' in line"),
    (mtx(b"2 2 2\n", b""), "4 entries, as its line 2 says, got 3"),
    (mtx(b"3 1 5", b"3 1 5\n3 2 1"), "4 entries, as its line 2 says, got 5"),
    (mtx(b" 4\n", b" 3000000000\n"), "3,000,000,000 entries, as its line 2 says, got 4"),
    (("toy.mtx", HEAD + b"% 0.5\n2 3 2\n1 1 4\n2 2 2.5\n"), "got '2 2 2.5' in line 5"),
    (mtx(b"2 2 2", b"2 2 2 1"), "got '2 2 2 1' in line 5"),
    (mtx(b"2 2 2", b"2 2 1e3"), "got '2 2 1e3' in line 5"),
    (mtx(b"3 2 4", LONG + b" 2 4"), ""),
    (mtx(b"1 1 1", b"1 1 " + LONG), ""),
    (
        mtx(MARKET, b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 nan\n"),
        "got nan in row 0, column 0",
    ),
    (mtx(MARKET[len(HEAD) :], b"0 8 3\n1\n2\n3\n"), "line"),
    (mtx(MARKET, b"%%MatrixMarket matrix array integer general\n8 0\n1\n2\n"), "line"),
    (
        mtx(MARKET, b"%%MatrixMarket matrix array integer general\n3000000 3000000\n1\n2\n3\n"),
        "entries, as its line 2 says, got 3",
    ),
    (mtx(b"2 2 2", b"2 \x002 2"), "line"),
    (uci(b"2 2 2", b"2 \x002 2"), "line"),
]


@pytest.mark.parametrize(("file", "expected"), WRONG)
def test_what_is_wrong_is_named_with_its_line(tmp_path, in_pieces, file, expected):
    name, content = file
    path = write(tmp_path, content, name)
    refused_by_all(path, expected)
    in_pieces(8)  # lines are counted from piece to piece
    refused_by_all(path, expected)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"1\n2\n1\n1 1 0\n", "docword.toy.txt"),
        (HEAD + b"2 3 0\n", "toy.mtx"),
        *((content, "toy.ldac") for content in (b"", b"0\n0\n", b"\n")),
    ],
)
def test_no_words_at_all(tmp_path, content, name):
    with pytest.raises(ValueError, match="at least one document with a word in it"):
        read_corpus(write(tmp_path, content, name))


def test_documents_in_disorder_cannot_be_read_in_blocks(tmp_path):
    file = write(tmp_path, UCI.replace(b"1 2 1\n2 2 2\n", b"2 2 2\n1 2 1\n"), "docword.toy.txt")
    assert read_corpus(file).counts.toarray().tolist() == COUNTS
    refused(lambda: blocks(file, 1), file, "must be ordered by document, got another order")


def test_tokens_that_cannot_be_counted(tmp_path):
    """Sums of whole numbers would wrap around."""
    most = str(2**52)
    for content, name in (
        (f"1\n2\n3\n1 1 {most}\n1 1 {most}\n1 1 {most}\n", "docword.toy.txt"),
        (f"3 0:{most} 0:{most} 0:{most}\n", "toy.ldac"),
    ):
        refused_by_all(write(tmp_path, content, name), "at most 2^53 tokens")


# Sizes that are only said: no more memory than the file's size is a reason for.


@pytest.mark.parametrize(
    ("file", "names"),
    [
        (uci(b"3\n2\n4", b"3000000000\n2\n4"), ("document 1", "document 2", "document 3")),
        (mtx(b"3 2 4", b"3000000000 2 4"), ("row 0", "row 1", "row 2")),
    ],
)
def test_documents_without_words_take_no_memory(tmp_path, file, names):
    path = write(tmp_path, file[1], file[0])
    used, corpus = traced_peak(lambda: read_corpus(path))
    assert used < 50e6
    assert corpus.names == names
    assert corpus.notes == ("2,999,999,997 of 3,000,000,000 documents have no words and were left out.",)
    if file[0] == "docword.toy.txt":
        refused(lambda: blocks(path), path, "got 3,000,000,000")


def test_a_million_documents_without_words_are_read_in_blocks(tmp_path):
    file = write(tmp_path, UCI.replace(b"3\n2\n4", b"1000000\n2\n4"), "docword.toy.txt")
    found = list(open_documents(file).blocks(100_000))
    assert len(found) == 10
    assert sum(block.sum() for _, block in found) == 9


def test_words_that_nobody_names(tmp_path):
    sp.save_npz(tmp_path / "toy.npz", sp.coo_array(([1], ([0], [2 * 10**9])), shape=(1, 2 * 10**9 + 1)))
    for file in (
        tmp_path / "toy.npz",
        write(tmp_path, MARKET.replace(b"3 2 4", b"3 2000000001 4"), "toy.mtx"),
        write(tmp_path, b"1 2000000000:1\n", "toy.ldac"),
    ):
        refused_by_all(file, "must have a vocabulary if it has over 16,777,216 words, got 2,000,000,001")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("unit", [b" ", b"\n", b"1 1 1\n"], ids=["blanks", "newlines", "entries"])
def test_small_files_that_become_large(tmp_path, name, unit):
    """100 kB that unpack to 80 MB."""
    bomb = 5 * gzip.compress(unit * ((16 << 20) // len(unit)), mtime=0)
    file = write(tmp_path, gzip.compress(FILES[name], mtime=0) + bomb, name)
    used, _ = traced_peak(lambda: refused_by_all(file))
    assert used < 100e6


# In blocks.

RNG = np.random.default_rng(0)
MANY = sp.csr_array(RNG.poisson(0.4, size=(57, 11)) * (RNG.random((57, 1)) > 0.1))
WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi")


def write_many(kind, folder, counts=MANY):
    """Write documents, some of them without words, in a format; return the file."""
    if kind == "text":
        texts = [" ".join(np.repeat(WORDS, row)) for row in counts.toarray()]
        return write_file(folder, "".join(f"99 {line}\n" for line in texts), "toy.txt")
    file = Path(FILE_KINDS[kind.removesuffix(".gz")].make(counts.toarray(), None, folder).X)
    if kind.endswith(".gz"):
        return write_file(folder, gzip.compress(file.read_bytes()), f"{file.name}.gz")
    return file


def opened(kind, folder, counts=MANY):
    if kind == "memory":
        return CsrDocuments(counts)
    return open_documents(write_many(kind, folder, counts), WORDS if kind == "text" else None)


@pytest.mark.parametrize("kind", ["memory", "npz csr", "mtx", "uci", "uci.gz", "lda-c", "text"])
@pytest.mark.parametrize("rows", [1, 7, 57, 100])
def test_blocks_are_the_documents_in_order(kind, rows, tmp_path, in_pieces):
    in_pieces(64)  # entries of a document in several pieces
    counts = MANY[np.diff(MANY.indptr) > 0] if kind in ("npz csr", "mtx") else MANY
    source, expected = opened(kind, tmp_path, counts), counts.toarray()
    assert isinstance(source, DocumentSource)
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


@pytest.mark.parametrize("kind", ["memory", "uci", "lda-c", "text"])
def test_fingerprints(kind, tmp_path):
    first = opened(kind, tmp_path).fingerprint()
    assert opened(kind, tmp_path).fingerprint() == first
    other = MANY.copy()
    other.data[3] += 1
    assert opened(kind, tmp_path, other).fingerprint() != first


def test_what_cannot_be_read_in_blocks(tmp_path):
    text = write_many("text", tmp_path)
    empty = write_file(tmp_path, "\n", "empty.txt")
    for call, sentence, kind in (
        (lambda: list(open_documents(empty, WORDS, "text").blocks(1)), "at least one document", ValueError),
        (lambda: open_documents(text), "give vocabulary", ValueError),
        (lambda: open_documents(text, [], "text"), "at least one word, got none", ValueError),
        (lambda: open_documents(text, WORDS, "csv"), "not read in blocks", ValueError),
        (lambda: open_documents(tmp_path / "nowhere"), "not exist", FileNotFoundError),
        (lambda: open_documents(3), "got int", TypeError),
        (lambda: CsrDocuments(sp.csr_array([[-1]])), "of at least 0, got -1 in row 0, column 0", ValueError),
        (lambda: CsrDocuments(sp.csr_array((0, 3))), "got shape (0, 3)", ValueError),
        (lambda: CsrDocuments([[1]]), "sparse", TypeError),
    ):
        assert sentence in sentence_of(call, kind)


READ = """
from swiftem.data import open_documents
print(sum(block.sum() for _, block in open_documents(sys.argv[1]).blocks(1000)))
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    counts = sp.csr_array((RNG.random((20_000, 11)) < 0.5).astype(int))
    grown = []
    for copies in (1, 8):
        file = write_many("uci", tmp_path, sp.vstack([counts] * copies, format="csr"))
        output, found = peak(READ, file)
        assert int(output) == copies * counts.nnz
        grown.append(found)
    # 770,000 entries more are 18 MB as numbers; what a process takes differs by several from time to time.
    assert grown[1] < grown[0] + 1e7
