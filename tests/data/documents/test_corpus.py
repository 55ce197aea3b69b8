"""One entry for all formats: which is recognised, what is counted, and what is said."""

import gzip
import re
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from table_files import write_file as write

from swiftem.cli.out_file import write_table
from swiftem.data import CorpusCounts, count_known_words, read_corpus, read_vocabulary
from swiftem.data.documents.corpus import beginnings, recognise
from swiftem.data.documents.text_files import vocabulary_beside


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.txt", "Rice and maize.\n", "text"),
        ("a.csv", "a,b\n", "csv"),
        ("A.TSV.gz", "", "csv"),
        ("a.pq", "", "parquet"),
        ("a.npz", "", "npz"),
        ("a.mtx.gz", "", "matrixmarket"),
        ("a.dat", "%%MatrixMarket matrix\n", "matrixmarket"),
        ("docword.a.txt.gz", "", "uci"),
        ("a.txt", "2\n3\n1\n1 1 1\n", "uci"),
        ("a.dat", "2 0:1 7:1\n1 3:2\n", "lda-c"),
        ("a.dat", "0\n2 0:1 7:1\n", "lda-c"),
        ("a.txt", "0\n0\n", "text"),
        ("a.dat.gz", gzip.compress(b"2 0:1 7:1\n"), "lda-c"),
        ("a.ldac", "", "lda-c"),
        ("a.txt", "1998\n1999\n2000\nThe end.\n", "text"),
        ("a.txt", "", "text"),
        ("a", b"\xff\0", "text"),
    ],
)
def test_formats_are_recognised(tmp_path, name, content, format):
    assert recognise(write(tmp_path, content, name)) == format
    assert recognise(tmp_path) == "folder"


def test_lines(tmp_path):
    file = write(tmp_path, "Rice and maize.\n\nIt is.\nRice, fish!\n", "a.txt")
    corpus = read_corpus(file)
    assert corpus.words == ("fish", "maize", "rice")
    assert corpus.counts.toarray().tolist() == [[0, 1, 1], [1, 0, 1]]
    assert corpus.names == ("line 1", "line 4")
    assert corpus.texts == ("Rice and maize.", "Rice, fish!")
    assert corpus.notes == ("1 of 3 documents has none of the words and was left out: line 3.",)
    assert repr(corpus) == "CorpusCounts of 2 documents, 3 words and 4 tokens"
    assert len(corpus) == 2


def test_a_format_can_be_given(tmp_path):
    file = write(tmp_path, "1 0:1\n", "a.txt")
    assert read_corpus(file).format == "lda-c"
    with pytest.raises(ValueError, match="at least one word of three letters"):
        read_corpus(file, format="text")
    with pytest.raises(ValueError, match="format must be 'auto', 'text', '"):
        read_corpus(file, format="word")


def test_every_format_is_the_same_corpus(tmp_path):
    counts, words = np.array([[1, 0, 2], [0, 3, 0]]), ["fish", "maize", "rice"]
    texts = ["fish rice rice", "maize maize maize"]
    (tmp_path / "folder").mkdir()
    for number, text in enumerate(texts):
        write(tmp_path, text, f"folder/{number}.txt")
    write(tmp_path, "\n".join(words), "vocab.txt")
    files = [
        tmp_path / "folder",
        write(tmp_path, "\n".join(texts), "lines.txt"),
        write(tmp_path, "n,t\n" + "".join(f"1,{text}\n" for text in texts), "table.csv"),
        write(tmp_path, "2\n3\n3\n1 1 1\n1 3 2\n2 2 3\n", "docword.txt"),
        write(tmp_path, "2 0:1 2:2\n1 1:3\n", "toy.dat"),
        write(
            tmp_path,
            "%%MatrixMarket matrix coordinate integer general\n2 3 3\n1 1 1\n1 3 2\n2 2 3\n",
            "toy.mtx",
        ),
        tmp_path / "toy.npz",
    ]
    sp.save_npz(files[-1], sp.csr_array(counts))
    if find_spec("pyarrow"):
        files.append(tmp_path / "table.parquet")
        write_table(files[-1], {"t": np.array(texts, dtype=object)})
    for file in files:
        corpus = read_corpus(file)
        np.testing.assert_array_equal(corpus.counts.toarray(), counts, err_msg=str(file))
        assert corpus.words == tuple(words)


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("a.txt", "", {}, "at least one document, got an empty file"),
        ("a.txt", " \n", {}, "at least one document, got only white space"),
        ("a.txt", "it is\n", {}, "a.txt must have at least one word of three letters"),
        ("a.txt", b"rice\nma\xefze\n", {}, "0xef in line 2"),
        ("a.txt", "rice\n", {"text_column": "t"}, "text_column is for tables (csv, parquet)"),
        ("a.txt", "rice\n", {"vocabulary": "v"}, "vocabulary is for counts (uci, lda-c"),
        ("a.dat", "1 0:1\n", {"drop_common": 0.3}, "a.dat is read as lda-c, counts of words."),
        ("a.dat", "1 0:1\n", {"phrases": True}, "phrases is for texts, and "),
        ("a.dat", "1 0:1\n", {"stop_words": "de"}, "stop_words is for texts, and "),
        (
            "a.txt",
            "rice\n",
            {"known_words": ["fish"]},
            "at least one of the 1 known words, got none",
        ),
        ("a.dat", "1 0:1\n", {"known_words": ["fish", "rice"]}, "the 2 known words, got 1 without names"),
    ],
)
def test_what_is_wrong(tmp_path, name, content, options, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        read_corpus(write(tmp_path, content, name), **options)


def test_no_such_corpus(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="must be a file or a folder with a corpus, but does not exist"
    ):
        read_corpus(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="path must be the name of a file or folder, got 7"):
        read_corpus(7)


def test_known_words_of_texts(tmp_path):
    file = write(tmp_path, "Rice and rye, rye.\nOats.\nfish\n", "a.txt")
    corpus = read_corpus(file, known_words=["rice", "fish", "cod"])
    assert corpus.counts.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert corpus.words == ("rice", "fish", "cod")
    assert corpus.names == ("line 1", "line 3")
    assert corpus.notes == (
        "3 of 5 words (60%) are not among the 3 known ones and were left out, most often 'rye', 'oats'.",
        "1 of 3 documents has none of the words and was left out: line 2.",
    )


def test_known_words_of_counts(tmp_path):
    write(tmp_path, "rye\nrice\n", "vocab.txt")
    file = write(tmp_path, "2 0:3 1:1\n1 0:1\n", "toy.dat")
    corpus = read_corpus(file, known_words=["cod", "rice"])
    assert corpus.counts.toarray().tolist() == [[0, 1]]
    assert corpus.names == ("line 1",)
    assert corpus.notes == (
        "4 of 5 words (80%) are not among the 2 known ones and were left out, most often 'rye'.",
        "1 of 2 documents have no words and were left out.",
    )
    with pytest.raises(ValueError, match="at least one of the 1 known words"):
        read_corpus(file, known_words=["cod"])
    (tmp_path / "vocab.txt").unlink()
    assert read_corpus(file, known_words=["cod", "rice"]).words == ("cod", "rice")


def test_known_words_are_those_of_count_words():
    counts, kept, unknown = count_known_words(["Cafe\u0301 THE café", ""], ["café"])
    assert counts.toarray().tolist() == [[2]]
    assert kept.tolist() == [0]
    assert not unknown


def test_vocabularies(tmp_path):
    assert read_vocabulary(write(tmp_path, "fish\r\nrice paddy\n\n", "v")) == ("fish", "rice paddy")
    for content, sentence in (
        ("fish\n\nrice\n", "a word in every line, got none in line 2"),
        ("fish\nrice\nfish\n", "each word once, got 'fish' in lines 1 and 3"),
        ("\n", "at least one word, got none"),
    ):
        with pytest.raises(ValueError, match=sentence):
            read_vocabulary(write(tmp_path, content, "v"))
    file = write(tmp_path, "fish\n", "vocab.txt")
    assert vocabulary_beside(file, None) is None
    assert vocabulary_beside(tmp_path / "a.dat", None) == ("fish",)


def test_beginnings():
    assert len(beginnings(["x" * 5000] * 400_000)[0]) == 199
    assert beginnings(["word " * 5000, "short\n"])[1] == "short"


def test_parts_must_fit():
    counts = sp.csr_array([[1, 2]])
    for words, names, texts in ((("a",), ("x",), None), (None, (), None), (None, ("x",), ("t", "u"))):
        with pytest.raises(ValueError, match="entries, as counts have, got"):
            CorpusCounts(counts, words, names, texts)


def test_common_words_are_reported_and_left_out_on_request(tmp_path):
    bodies = ["Fish live in ponds, more or less.", "Rice and maize are grown, more or less."]
    file = write(tmp_path, "\n".join(bodies * 15), "a.txt")
    (note,) = read_corpus(file).notes
    assert note == (
        "6 words are in over 30% of the documents: fish, grown, live, maize, ponds, rice. If they "
        "say nothing of a topic, leave them out as stop words, or with drop_common=0.3 in Python."
    )
    found = read_corpus(file, drop_common=0.6, stop_words=["less"])
    assert (found.words[:2], found.notes) == (("and", "are"), ())
    assert "more" not in found.words
