import csv
import pickle

import pytest
from helpers import assert_refused

from paper.docstrings import Corpus, CorpusPackage

CORPUS = Corpus(
    tuple("abcdefghij"),
    (*(f"toy.{number}" for number in range(6)), *(f"json.{number}" for number in range(4))),
    {"stdlib": CorpusPackage("3.11.0", 4), "toy": CorpusPackage("1.0", 6)},
)


@pytest.mark.parametrize(
    ("n_documents", "documents"), [(1, "a"), (3, "adg"), (4, "acfh"), (5, "acegi"), (10, "abcdefghij")]
)
def test_samples_are_evenly_spaced(n_documents, documents):
    sample = CORPUS.sample(n_documents)
    assert "".join(sample.documents) == documents
    assert sample.names == tuple(CORPUS.names["abcdefghij".index(letter)] for letter in documents)
    assert sample.packages == CORPUS.packages
    assert sample == CORPUS.sample(n_documents)


def test_bad_input():
    assert_refused(lambda: CORPUS.sample(0), "n_documents", "at least 1")
    assert_refused(lambda: CORPUS.sample(11), "n_documents", "at most 10, the size of the corpus, got 11")
    assert_refused(lambda: CORPUS.sample(2.0), "n_documents", "an integer")
    assert_refused(lambda: Corpus(("a", "b"), ("a",)), "names", "one per document, got 1 for 2")


def test_contents(tmp_path):
    file = CORPUS.sample(2).write_contents(tmp_path / "contents.csv")
    with file.open(newline="", encoding="utf-8") as lines:
        assert list(csv.DictReader(lines)) == [
            {"document": "0", "package": "toy", "version": "1.0", "name": "toy.0", "characters": "1"},
            {"document": "1", "package": "toy", "version": "1.0", "name": "toy.5", "characters": "1"},
        ]
    rows = CORPUS.write_contents(str(file)).read_text(encoding="utf-8").splitlines()
    assert rows[-1] == "9,stdlib,3.11.0,json.3,1"
    assert Corpus(("a",), ("name",)).write_contents(file).read_text().splitlines()[1] == "0,,,name,1"


def test_it_prints_in_one_line_and_pickles():
    assert repr(CORPUS) == "Corpus of 10 documents from stdlib 3.11.0, toy 1.0"
    assert repr(Corpus(("a",), ("b",))) == "Corpus of 1 documents"
    assert len(CORPUS) == 10
    assert pickle.loads(pickle.dumps(CORPUS)) == CORPUS
