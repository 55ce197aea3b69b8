"""lda-c files: counts, vocabularies, and the line of whatever is wrong."""

import gzip
import re

import numpy as np
import pytest

from swiftem.data import read_lda_c


def write(folder, content, name="toy.dat"):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_counts(tmp_path):
    corpus = read_lda_c(write(tmp_path, "2 0:1 3:2\r\n\n1  1:4 \n0\n"))
    np.testing.assert_array_equal(corpus.counts.toarray(), [[1, 0, 0, 2], [0, 4, 0, 0]])
    assert corpus.names == ("line 1", "line 3")
    assert corpus.words is None
    assert corpus.word_names() == ("word 0", "word 1", "word 2", "word 3")
    assert corpus.notes == ("1 of 3 documents have no words and were left out.",)


def test_a_word_twice_in_a_document_is_added_up(tmp_path):
    assert read_lda_c(write(tmp_path, "2 1:2 1:3\n")).counts.toarray().tolist() == [[0, 5]]


def test_compressed(tmp_path):
    assert len(read_lda_c(write(tmp_path, gzip.compress(b"1 0:1\n"), "toy.dat.gz"))) == 1


@pytest.mark.parametrize("name", ["toy.vocab", "toy.vocab.txt", "vocab.toy.txt", "vocab.txt"])
def test_the_vocabulary_beside_it(tmp_path, name):
    (tmp_path / name).write_text("fish\nrice\nrye\n")
    corpus = read_lda_c(write(tmp_path, "1 1:4\n"))
    assert corpus.words == ("fish", "rice", "rye")
    assert corpus.counts.shape == (1, 3)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("2 0:1", "got 2 and 1 pairs in line 2"),
        ("1 0:1 1:1", "got 1 and 2 pairs in line 2"),
        ("one 0:1", "the number of pairs, and pairs such as 17:2, in each line, got 'one 0:1' in line 2"),
        ("-1 0:1", "got '-1 0:1' in line 2"),
        ("1 0-1", "got '1 0-1' in line 2"),
        ("2 0:1:2 4", "got '2 0:1:2 4' in line 2"),
        ("1 0:1.5", "got '1 0:1.5' in line 2"),
        ("1 0:-2", "got '1 0:-2' in line 2"),
        ("1 -3:2", "got '1 -3:2' in line 2"),
        (f"1 {2**31}:1", "words from 0 to 2147483646, got 2147483648 in line 2"),
        (f"1 0:{10**30}", "counts from 0 to 9007199254740992"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, line, sentence):
    file = write(tmp_path, f"1 0:1\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        read_lda_c(file)
    assert str(error.value).startswith(f"{file} must have ")


def test_words_that_the_vocabulary_does_not_have(tmp_path):
    words = tmp_path / "words"
    words.write_text("fish\nrice\n")
    with pytest.raises(ValueError, match=r"words from 0 to 1, got 2 in line 1"):
        read_lda_c(write(tmp_path, "1 2:1\n"), words)
    with pytest.raises(FileNotFoundError, match="nowhere must be a vocabulary"):
        read_lda_c(write(tmp_path, "1 1:1\n"), tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["", "0\n0\n", "\n"])
def test_no_words_at_all(tmp_path, content):
    with pytest.raises(ValueError, match="at least one document with a word in it"):
        read_lda_c(write(tmp_path, content))
