"""Topics of files: as those of the same counts in memory, and in bounded memory."""

import os
import sys
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from anonymous_memory import peak, resident
from combinations.counts import uci as write_uci
from sklearn.exceptions import ConvergenceWarning
from topic_fits import fit_topics, short_documents

import swiftem
from swiftem.core.draws import block_draws, read_seed
from swiftem.core.files import is_scratch, row_blocks, scratch_array
from swiftem.data import CsrDocuments, open_documents
from swiftem.data.documents.counts import SpooledDocuments
from swiftem.topics.compute.corpus import Documents, StreamedDocuments


def corpus(n_documents=700, n_words=40):
    return short_documents(n_documents, n_words)


fit = partial(fit_topics, n_components=3)


def uci(folder, X):
    return write_uci(X.toarray(), None, folder).X


@pytest.mark.usefixtures("small_blocks")
def test_passes_are_those_in_memory():
    X, rng = corpus(), np.random.default_rng(0)
    weight = rng.random(700)
    one, two = Documents(X, weight), StreamedDocuments(CsrDocuments(X), weight)
    assert (one.n, one.n_words, one.n_entries) == (two.n, two.n_words, two.n_entries)
    np.testing.assert_allclose(one.length, two.length)
    assert one.total == pytest.approx(two.total)
    topics, shares, alpha = rng.dirichlet(np.ones(40), 3), rng.dirichlet(np.ones(3), 700), np.full(3, 0.1)
    beta, totals = np.full((1, 1), 0.05), np.full(3, 500.0)
    for work in (
        lambda d, at: d.em_pass(at, topics, alpha),
        lambda d, at: d.em_pass(at, topics, alpha, (totals, beta)),
        lambda d, at: d.sums(at, np.ascontiguousarray(topics.T), alpha, 4, 1e-3),
    ):
        first, second = shares.copy(), shares.copy()
        (counts, value), (streamed, streamed_value) = work(one, first), work(two, second)
        np.testing.assert_allclose(counts, streamed, rtol=1e-12, atol=1e-12)
        assert value == pytest.approx(streamed_value, rel=1e-12)
        np.testing.assert_array_equal(first, second)
    for a, b in zip(one.fold_in(topics, alpha), two.fold_in(topics, alpha), strict=True):
        np.testing.assert_array_equal(a, b)
    numbers = np.array([0, 3, 63, 64, 65, 300, 699])
    np.testing.assert_array_equal(one.some(numbers).matrix().toarray(), two.some(numbers).matrix().toarray())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("batch_size", [7, 64, 100, 300])
def test_batches_are_the_documents_that_were_drawn(batch_size):
    X = corpus()
    documents = StreamedDocuments(CsrDocuments(X))
    draws = block_draws(read_seed(0), *documents.layout, batch_size=batch_size, streams=1)
    seen = []
    for k in range(2 * -(-700 // batch_size) + 1):
        (numbers,) = draws.at(k)
        batch = documents.take(numbers).y
        whole = np.zeros((len(numbers), 40))
        whole[:, batch.words] = batch.matrix().toarray()
        np.testing.assert_array_equal(whole, X[numbers].toarray())
        seen.extend(numbers.tolist())
    assert sorted(seen[:700]) == list(range(700))
    assert seen[:700] != list(range(700))
    # Shuffled within blocks that come in order.
    assert np.abs(np.array(seen[:700]) - np.arange(700)).max() < 64


@pytest.mark.usefixtures("small_blocks")
def test_documents_of_a_batch_have_their_own_weights():
    """From the first block, a later one, and two blocks."""
    weight = np.arange(1.0, 701.0)
    documents = StreamedDocuments(CsrDocuments(corpus()), weight)
    for numbers in ([5, 0, 63], [130, 190, 131], [255, 256, 254, 257]):
        batch = documents.take(np.array(numbers))
        np.testing.assert_array_equal(batch.weight, weight[numbers])
        np.testing.assert_array_equal(batch.index, numbers)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("method", "alpha"), [("em", 0.1), ("em", "learn"), ("auto", 0.1)])
def test_em_on_a_file_is_em_in_memory(tmp_path, method, alpha):
    X = corpus(499)  # so few are fitted by em alone
    options = {"method": method, "alpha": alpha, "max_iter": 30, "tol": 0.0}
    one, two = fit(X, **options), fit(uci(tmp_path, X), **options)
    np.testing.assert_allclose(one.components_, two.components_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.doc_topic_, two.doc_topic_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.alpha_, two.alpha_, rtol=1e-9)
    assert one.stationarity_ == pytest.approx(two.stationarity_, rel=1e-4)
    file = tmp_path / "docword.toy.txt"
    np.testing.assert_allclose(two.transform(file), two.transform(X), rtol=0, atol=1e-12)
    assert two.score(str(file)) == pytest.approx(two.score(X), rel=1e-12)


def test_a_file_of_a_matrix_may_not_claim_any_number_of_documents(tmp_path):
    (tmp_path / "toy.mtx").write_text(
        "%%MatrixMarket matrix coordinate integer general\n9000000000 2 1\n1 1 3\n"
    )
    with pytest.raises(ValueError, match=r"must have at most 1,000,001 documents.*got 9,000,000,000"):
        fit(tmp_path / "toy.mtx")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("method", ["auto", "sem", "sem-vr"])
def test_other_methods_come_near_on_files(tmp_path, method):
    X = corpus(1500)
    one, two = fit(X, method=method, max_iter=40), fit(uci(tmp_path, X), method=method, max_iter=40)
    assert two.method_ == one.method_
    assert two.score(X) == pytest.approx(one.score(X), abs=0.02)
    assert two.doc_topic_.shape == (1500, 3)
    again = fit(tmp_path / "docword.toy.txt", method=method, max_iter=40)
    np.testing.assert_array_equal(two.components_, again.components_)


def test_documents_of_weight_zero_are_not_clustered():
    X = corpus(600)
    weight = np.zeros(600)
    weight[np.flatnonzero(X.sum(axis=1))[:2]] = 1.0
    assert np.isfinite(fit(CsrDocuments(X), sample_weight=weight, max_iter=3).components_).all()
    with pytest.raises(ValueError, match=r"init must be 'random' .* got 'k-means' with 2 documents"):
        fit(CsrDocuments(X), sample_weight=weight, init="k-means")


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.txt"):
        fit(tmp_path / "missing.txt")
    text = tmp_path / "lines.txt"
    text.write_text("rice and fish\nfish and rice\n")
    with pytest.raises(ValueError, match="give vocabulary"):
        fit(text)
    with pytest.raises(ValueError, match="at least one token in a document of positive weight"):
        fit(CsrDocuments(sp.csr_array((4, 3))))
    model = fit(corpus())
    with pytest.raises(ValueError, match="X must have the 40 words that the model was fitted with, got 12"):
        model.transform(CsrDocuments(corpus(n_words=12)))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(700,\)"):
        fit(CsrDocuments(corpus()), sample_weight=[1.0])


def test_a_source_that_grows_is_refused():
    class Growing:
        n_words, n_documents = 40, None

        def __init__(self):
            self.times = 0

        def blocks(self, rows):
            self.times += 1
            yield from CsrDocuments(corpus(100 * self.times)).blocks(rows)

        def fingerprint(self):
            return "never the same"

    with pytest.raises(ValueError, match="X must stay the same from pass to pass, got more than 100"):
        fit(Growing(), method="em")


# The memory limit


def test_topics_of_documents_go_to_a_scratch_file_where_they_do_not_fit():
    X = CsrDocuments(sp.csr_array(sp.vstack([corpus()] * 300)))
    inside = fit(X, method="em", max_iter=2)
    assert not is_scratch(inside.doc_topic_)
    with swiftem.config_context(memory_limit=124_500_000):
        outside = fit(X, method="em", max_iter=2)
    assert is_scratch(outside.doc_topic_)
    np.testing.assert_array_equal(inside.components_, outside.components_)
    np.testing.assert_array_equal(inside.doc_topic_, outside.doc_topic_)


@pytest.mark.skipif(sys.platform != "linux", reason="RssFile is Linux's")
def test_a_pass_has_few_pages_of_the_scratch_file_in_memory():
    """Topics of documents have 64 MB."""
    documents = StreamedDocuments(CsrDocuments(sp.csr_array(sp.vstack([corpus(4_000)] * 10))))
    shares = scratch_array((documents.n, 200), np.float64)
    for rows in row_blocks(shares):
        shares[rows] = 1.0 / 200
    topics = np.random.default_rng(0).dirichlet(np.ones(40), size=200)
    few = StreamedDocuments(CsrDocuments(corpus(4_000)))  # what is compiled has pages of files, too
    few.em_pass(np.full((few.n, 200), 1.0 / 200), topics, np.full(200, 0.1))
    before, pages = resident(os.getpid(), "RssFile"), []
    documents.em_pass(
        shares,
        topics,
        np.full(200, 0.1),
        between=lambda: pages.append(resident(os.getpid(), "RssFile") - before),
    )
    documents.doc_topic = shares
    for first in range(0, documents.n, 256):
        documents.take(np.arange(first, min(first + 256, documents.n)))
        shares[first : first + 256] += 0.0
        pages.append(resident(os.getpid(), "RssFile") - before)
    assert 4e6 < max(pages) < 24e6


def test_a_limit_that_cannot_be_kept_is_refused():
    wrong = r"memory_limit must be at least .* for 3 topics of 40 words, got 10 MB"
    with swiftem.config_context(memory_limit="10MB"), pytest.raises(ValueError, match=wrong):
        fit(CsrDocuments(corpus()))


FIT = """
from swiftem import PLSA, set_config
import swiftem.topics.fit
import swiftem.topics.compute.passes_kernels, sklearn.feature_extraction.text
path, method, limit = sys.argv[1:]
set_config(memory_limit=limit)
print(PLSA(20, method=method, max_iter=2, random_state=0).fit(path).method_)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RssAnon is Linux's")
@pytest.mark.parametrize(
    "method", ["em", *(pytest.param(name, marks=pytest.mark.slow) for name in ("auto", "sem", "sem-vr"))]
)
@pytest.mark.slow
def test_a_fit_stays_under_its_limit(tmp_path, method):
    """The least limit, about: topics of documents are in a scratch file."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, 2000, (40_000, 30))
    words.sort(axis=1)
    lines = []
    for d, row in enumerate(words, 1):
        lines += [f"{d} {v} 1" for v in np.unique(row)]
    file = tmp_path / "docword.big.txt"
    file.write_text("\n".join(["40000", "2000", str(len(lines)), *lines]) + "\n")
    (tmp_path / "vocab.big.txt").write_text("\n".join(f"w{v}" for v in range(2000)) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        swiftem.PLSA(20, method=method, max_iter=2, random_state=0).fit(corpus())  # compiled before
    output, grown = peak(FIT, file, method, "132MB")
    assert output.split() == ["em" if method == "auto" else method]
    assert grown < 132e6


# New words


def test_new_words_are_learned():
    rng = np.random.default_rng(0)
    X = corpus(1500).toarray()
    model = fit(X[:1000, :39])
    before = model.components_.copy()
    model.add_words(1)
    assert model.components_.shape == (3, 40)
    np.testing.assert_allclose(model.components_[:, :39], before, rtol=1e-2)
    new = X[1000:].copy()
    new[:, 39] = 5 * (model.transform(new)[:, 2] > 0.5)
    model.partial_fit(new[rng.permutation(500)])
    assert model.components_[:, 39].argmax() == 2
    assert model.components_[2, 39] > 0.02 > 10 * model.components_[:2, 39].max()
    assert model.n_features_in_ == 40


def test_new_words_with_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(corpus().toarray(), columns=[f"w{v}" for v in range(40)])
    model = fit(X).add_words(["fish", "rice"])
    assert model.feature_names_in_[-2:].tolist() == ["fish", "rice"]
    model.save(tmp_path / "model")
    again = swiftem.PLSA.load(tmp_path / "model")
    again.partial_fit(X.assign(fish=1, rice=0))
    assert again.components_.shape == (3, 42)
    for words, match in (
        (2, "words must be names"),
        (["fish"], "words must be new and distinct, got 'fish'"),
        (["a", "a"], "got 'a'"),
        ("salt", "words must be a positive number or a list of words"),
        ([], "words must be a positive number"),
    ):
        with pytest.raises(ValueError, match=match):
            model.add_words(words)
    with pytest.raises(ValueError, match="beta must be a number if words are added"):
        fit(corpus(), beta=np.full(40, 0.1)).add_words(1)


# Texts are parsed once


def test_a_text_is_parsed_once_and_its_numbers_are_the_same(tmp_path):
    X = corpus()
    file = uci(tmp_path, X)
    documents = StreamedDocuments(open_documents(file), scratch=tmp_path)
    for _ in range(2):
        np.testing.assert_array_equal(documents.some(np.arange(700)).matrix().toarray(), X.toarray())
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("counts", [[1.0, 65535.0], [1.0, 65536.0], [0.25, 3.0]])
def test_counts_are_spooled_exactly(counts):
    X = sp.csr_array(np.array([[0.0, *counts, 0.0], [0.0] * 4, [counts[1], 0.0, 0.0, 1.0], [0.0, 1.0, 0, 0]]))
    documents = SpooledDocuments(CsrDocuments(X), 3)
    for _ in range(3):
        (first, one), (second, two) = documents.blocks(3)
        assert (first, second) == (0, 3)
        np.testing.assert_array_equal(one.toarray(), X[:3].toarray())
        np.testing.assert_array_equal(two.toarray(), X[3:].toarray())


def test_without_room_for_its_numbers_a_text_is_parsed_in_every_pass(tmp_path, monkeypatch):
    def full(self, first, counts):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpooledDocuments, "_store", full)
    X = corpus()
    documents = StreamedDocuments(open_documents(uci(tmp_path, X)))
    np.testing.assert_array_equal(documents.some(np.arange(700)).matrix().toarray(), X.toarray())
