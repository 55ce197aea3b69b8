"""UCI bags of words: counts, compression, and the line of whatever is wrong."""

import gzip
import re

import numpy as np
import pytest

from swiftem.data import read_bag_of_words

GOOD = "3\n2\n4\n1 1 1\n1 2 1\n2 2 2\n3 1 5\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.toy.txt").write_text("fish\nrice\n")
    return tmp_path


def write(folder, content, name="docword.toy.txt"):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_counts_words_and_names(folder):
    corpus = read_bag_of_words(write(folder, GOOD))
    np.testing.assert_array_equal(corpus.counts.toarray(), [[1, 1], [0, 2], [5, 0]])
    assert corpus.counts.dtype.kind == "i"
    assert corpus.words == ("fish", "rice")
    assert corpus.names == ("document 1", "document 2", "document 3")
    assert (corpus.texts, corpus.format, corpus.notes) == (None, "uci", ())


@pytest.mark.parametrize(
    "content",
    [
        GOOD.replace("\n", "\r\n"),
        GOOD.rstrip("\n"),
        GOOD + "\n\n",
        GOOD.replace("1 2 1", "\t1  2\t1 "),
        GOOD.replace("2 2 2\n", "\n2 2 2\n"),
    ],
    ids=["CRLF", "no last line end", "empty lines", "tabs", "an empty line between"],
)
def test_kinds_of_white_space(folder, content):
    corpus = read_bag_of_words(write(folder, content))
    np.testing.assert_array_equal(corpus.counts.toarray(), [[1, 1], [0, 2], [5, 0]])


def test_compressed(folder):
    file = write(folder, gzip.compress(GOOD.encode()), "docword.toy.txt.gz")
    assert len(read_bag_of_words(file)) == 3


def test_documents_without_words_are_left_out_and_names_stay(folder):
    corpus = read_bag_of_words(write(folder, "3\n2\n2\n1 1 1\n3 2 1\n"))
    assert corpus.names == ("document 1", "document 3")
    assert corpus.notes == ("1 of 3 documents have no words and were left out.",)


def test_a_vocabulary_elsewhere(folder, tmp_path):
    words = tmp_path / "elsewhere"
    words.write_text("cod\nrye\n")
    assert read_bag_of_words(write(folder, GOOD), words).words == ("cod", "rye")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "the number of documents in line 1, got ''"),
        ("3\nmany\n4\n", "the number of words in line 2, got 'many'"),
        ("3\n2\n", "the number of entries in line 3, got ''"),
        ("0\n2\n1\n1 1 1\n", "the number of documents in line 1, got '0'"),
        (GOOD.replace("2 2 2", "2 2"), "got '2 2' in line 6"),
        (GOOD.replace("2 2 2", "2 2 2 2"), "got '2 2 2 2' in line 6"),
        (GOOD.replace("2 2 2", "2 2 1.5"), "got '2 2 1.5' in line 6"),
        (GOOD.replace("2 2 2", "two 2 2"), "got 'two 2 2' in line 6"),
        (
            GOOD.replace("2 2 2", "2 2 -2"),
            "count (whole numbers from 0) in each line, got '2 2 -2' in line 6",
        ),
        (GOOD.replace("2 2 2", "2 3 2"), "words from 1 to 2, got 3 in line 6"),
        (GOOD.replace("2 2 2", "2 0 2"), "words from 1 to 2, got 0 in line 6"),
        (GOOD.replace("2 2 2", "4 1 2"), "documents from 1 to 3, got 4 in line 6"),
        (GOOD.replace("2 2 2\n", ""), "4 entries, as its line 3 says, got 3"),
        (GOOD + "3 2 1\n", "4 entries, as its line 3 says, got 5"),
        (
            GOOD.replace("2 2 2", f"2 2 {10**30}"),
            "counts from 0 to 9007199254740992, got 9223372036854775807 in line 6",
        ),
        ("1\n2\n1\n1 1 0\n", "at least one document with a word in it"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(folder, content, sentence):
    file = write(folder, content)
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        read_bag_of_words(file)
    assert str(error.value).startswith(str(file))


def test_missing_files(folder):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt must be a bag of words in UCI's format"):
        read_bag_of_words(folder / "nowhere.txt")
    (folder / "vocab.toy.txt").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"vocab\.toy\.txt does not exist: name another .*--vocabulary"
    ):
        read_bag_of_words(write(folder, GOOD))


def test_a_vocabulary_of_another_length(folder):
    (folder / "vocab.toy.txt").write_text("fish\n")
    with pytest.raises(ValueError, match=r"vocab\.toy\.txt must have the 2 words of .*, got 1"):
        read_bag_of_words(write(folder, GOOD))


def test_a_damaged_compressed_file(folder):
    file = write(folder, gzip.compress(GOOD.encode())[:-6], "docword.toy.txt.gz")
    with pytest.raises(ValueError, match="whole gzip file, got a damaged one"):
        read_bag_of_words(file)
