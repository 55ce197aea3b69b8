import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import assert_identical, assert_refused

from swiftem.data import CountSource, count_known_words, count_words, read_documents

FAO = Path(__file__).parents[4] / "shared" / "data"
DOCUMENTS = [
    "The fish eats; the FISH swims.",
    "It is 1998, and 42.",
    "Fish-ponds and rice.",
    "",
    "Rice: rice, rice!",
]


def test_counts():
    counts, words, kept = count_words(DOCUMENTS)
    assert words == ("eats", "fish", "ponds", "rice", "swims")
    assert counts.toarray().tolist() == [[1, 2, 0, 0, 1], [0, 1, 1, 1, 0], [0, 0, 0, 3, 0]]
    assert kept.tolist() == [0, 2, 4]
    assert isinstance(counts, sp.csr_array)
    assert counts.has_canonical_format
    assert (counts.dtype.kind, kept.dtype) == ("i", np.intp)
    assert all(type(word) is str for word in words)
    assert CountSource(counts).n == 10


def test_the_most_frequent_words():
    counts, words, kept = count_words(DOCUMENTS, n_words=2)
    assert words == ("fish", "rice")
    assert counts.toarray().tolist() == [[2, 0], [1, 1], [0, 3]]
    counts, words, kept = count_words(DOCUMENTS, n_words=1)
    assert (words, kept.tolist()) == (("rice",), [2, 4])


def test_ties_go_by_the_alphabet():
    """With so many ties that a sort which is not stable would mix them."""
    words = [a + b + c for a in "zyxwvutsrq" for b in "abcdefghij" for c in "klmnopqrst"]
    documents = [" ".join(words), "zzz zzz zzz"]
    assert count_words(documents, n_words=400, stop_words=None).words == (*sorted(words)[:399], "zzz")


def test_same_texts_same_counts():
    documents = [*DOCUMENTS, "maize", "wheat fish"]
    once, reversed_ = count_words(documents), count_words(documents[::-1])
    assert_identical(count_words(iter(documents)).counts.toarray(), once.counts.toarray())
    assert reversed_.words == once.words
    np.testing.assert_array_equal(reversed_.counts.toarray()[::-1], once.counts.toarray())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("co2 x86 2nd n_samples __init__ 1998 ab", ()),
        ("well-known don't", ("known", "well")),
        ("Farmer’s rice, we'll; they’ve; o'clock", ("farmer", "o'clock", "rice")),
        ("L'eau qu'il aujourd'hui dell'acqua", ("acqua", "aujourd'hui", "eau")),
        ("Größe ÉTÉ", ("größe", "été")),
        ("cafe\u0301s", ("cafés",)),  # the accent is a character of its own
    ],
)
def test_what_a_word_is(text, words):
    assert count_words([text, "xyz"], stop_words=None).words == tuple(sorted([*words, "xyz"]))


def test_stop_words():
    documents = ["The fish does not eat the rice", "don't"]
    assert "the" in count_words(documents, stop_words=None).words
    assert count_words(documents).words == ("does", "eat", "fish", "rice")
    own = ["Fish", "don't", "the", "not", "does"]
    for collection in (own, tuple(own), set(own), dict.fromkeys(own), iter(own)):
        assert count_words(documents, stop_words=collection).words == ("eat", "rice")
    assert "the" in count_words(documents, stop_words=[]).words


@pytest.mark.parametrize(
    ("documents", "options", "argument", "right"),
    [
        ("Fish and rice", {}, "documents", "list of strings.*got one string"),
        (b"Fish", {}, "documents", "list of strings.*got bytes"),
        (3, {}, "documents", "list of strings.*got int"),
        (None, {}, "documents", "list of strings.*got NoneType"),
        (["fish", None], {}, "documents", "hold strings, got NoneType at position 1"),
        ([b"fish"], {}, "documents", "hold strings, got bytes at position 0"),
        ([["fish"]], {}, "documents", "hold strings, got list at position 0"),
        ([], {}, "documents", "at least one document, got none"),
        (["", " "], {}, "documents", "at least one word"),
        (["the and", "1998"], {}, "documents", "at least one word of three letters that is not a stop word"),
        (["fish"], {"stop_words": ["fish"]}, "documents", "at least one word"),
        (["fish"], {"n_words": 0}, "n_words", "at least 1"),
        (["fish"], {"n_words": 2.0}, "n_words", "an integer"),
        (["fish"], {"n_words": None}, "n_words", "an integer"),
        (
            ["fish"],
            {"stop_words": "german"},
            "stop_words",
            "'english', .*None or a list of words, got 'german'",
        ),
        (["fish"], {"stop_words": 3}, "stop_words", "a language, None or a list of words, got 3"),
        (["fish"], {"stop_words": ["the", 3]}, "stop_words", "a language, None or a list of words, got 3"),
    ],
)
def test_bad_input(documents, options, argument, right):
    assert_refused(lambda: count_words(documents, **options), argument, right)


@pytest.mark.parametrize(
    ("name", "n_documents", "n_tokens"), [("fao-1k.txt", 911, 24_494), ("fao-10k.txt", 10_529, 111_128)]
)
def test_the_paper_s_texts(name, n_documents, n_tokens):
    if not (FAO / name).exists():
        pytest.skip(f"{FAO / name} is not here")
    counts, words, kept = count_words(read_documents(FAO / name))
    assert counts.shape == (n_documents, 300)
    assert len(words) == 300
    assert len(kept) == n_documents
    # Not exactly: scikit-learn's stop words may change.
    assert counts.sum() == pytest.approx(n_tokens, rel=0.01)
    assert {"forest", "food", "water"} <= set(words)


def test_phrases_are_words():
    documents = ["A new hard drive", "The hard-drive of New York", "hard, drive", "rice; a drive"] * 10
    documents += ["fish rice pond maize wheat rye", "rye wheat fish pond rice maize"] * 50
    _, words, _ = count_words(documents, stop_words=["the", "new"], phrases=True)
    assert words == ("drive", "fish", "hard", "hard drive", "maize", "pond", "rice", "rye", "wheat", "york")
    counts, _, _ = count_known_words(["a hard drive, hard"], words)
    assert counts.toarray().tolist() == [[0, 0, 1, 1, 0, 0, 0, 0, 0, 0]]


def test_words_in_most_documents_are_left_out_on_request():
    documents = ["rice fish", "rice maize", "rice wheat fish", "rye"]
    assert count_words(documents, drop_common=0.5).words == ("fish", "maize", "rye", "wheat")
    assert_refused(lambda: count_words(["rice"], drop_common=0.5), "drop_common", "leave at least one word")
    assert_refused(lambda: count_words(["rice"], drop_common=1.5), "drop_common", "at most 1")


GERMAN = ["Der Reis und die Fische sind in dem Teich, und sie werden nicht von uns gegessen."] * 3


def test_several_languages_are_named():
    pytest.importorskip("stopwordsiso")
    assert count_words(GERMAN, stop_words="de").words == ("fische", "gegessen", "reis", "teich")
    mixed = [*GERMAN * 3, "The rice and the fish are in the pond and they have not eaten any of it."]
    assert count_words(mixed, stop_words="de, english").words == count_words(mixed, stop_words="en,de").words
    assert "have" in count_words(mixed, stop_words="de").words
    assert "have" not in count_words(mixed, stop_words="de,en").words
    assert_refused(lambda: count_words(mixed, stop_words="de,xx"), "stop_words", "(as in 'de,en')")


def test_other_languages_need_a_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "stopwordsiso", None)
    assert_refused(lambda: count_words(GERMAN, stop_words="de"), "stop_words", "pip install")
