"""Numbers of topics, compared on documents that were not fitted."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from combinations.counts import KINDS
from helpers import assert_refused

from swiftem import PLSA, select_topics
from swiftem.fit.estimator import InterruptedWarning
from swiftem.topics.select import split_topics


def corpus(n_topics=4, n_documents=400, seed=0):
    """Return documents of one topic each, with ten words of their own and some of all topics."""
    rng = np.random.default_rng(seed)
    own = np.kron(np.eye(n_topics), np.ones((1, 10))) + 0.05
    return sp.csr_array(rng.poisson(2.0 * own[rng.integers(n_topics, size=n_documents)]))


@pytest.fixture(scope="module")
def found():
    return select_topics(corpus(), [2, 3, 4, 6, 8])


def test_the_smallest_number_that_predicts_as_well_is_chosen(found):
    assert found.best.n_components == 4
    assert [row.n_components for row in found.table] == [2, 3, 4, 6, 8]
    perplexity = [row.perplexity for row in found.table]
    assert perplexity[0] > perplexity[1] > perplexity[2]
    assert found.table[0].worse > 5.0
    assert found.table[2].worse <= 1.0
    assert "4 topics" in found.reason
    assert "more may be better" not in found.reason
    assert found.best.components_.shape == (4, 40)
    assert "chosen" in repr(found)
    assert found.reason.split()[0] in repr(found)


def test_topics_that_are_there_are_stable_and_coherent(found):
    rows = {row.n_components: row for row in found.table}
    assert rows[4].stability > 0.95
    assert rows[8].stability < rows[4].stability
    assert rows[4].coherence > rows[2].coherence


def test_the_table_is_that_of_the_models():
    counts = corpus()
    found = select_topics(counts, [4], held_out=0.3, random_state=3)
    again = select_topics(counts, [4], held_out=0.3, random_state=3)
    assert found.table[0][:5] == again.table[0][:5]
    assert np.array_equal(found.best.components_, again.best.components_)
    other = PLSA(4, random_state=0).fit(counts)
    assert found.table[0].perplexity == pytest.approx(other.perplexity(counts), rel=0.1)
    assert found.reason.startswith("4 topics have the lowest perplexity")


def test_the_largest_number_may_be_too_small():
    assert "more may be better" in select_topics(corpus(6), [2, 4]).reason


def test_the_largest_topics_are_split():
    topics = np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]])
    more = split_topics(topics, np.array([1.0, 5.0]), 4, np.random.default_rng(0))
    assert np.array_equal(more[0], topics[0])
    np.testing.assert_allclose(more.sum(axis=1), 1.0)
    assert (more[1:, 0] == 0.0).all()
    assert len(np.unique(more[1:, 1])) == 3


def test_ctrl_c_keeps_what_is_complete(monkeypatch):
    real = PLSA.fit

    def fit(self, X):
        real(self, X)
        if self.n_components == 3:
            warnings.warn("The fit was interrupted.", InterruptedWarning, stacklevel=2)
        return self

    monkeypatch.setattr(PLSA, "fit", fit)
    found = select_topics(corpus(), [2, 3, 4])
    assert (found.interrupted, found.best.n_components, len(found.table)) == (True, 2, 1)
    assert found.best.components_.shape == (2, 40)


def test_a_picture(found):
    pytest.importorskip("matplotlib")
    axes = found.plot()
    assert [ax.get_ylabel() for ax in axes] == [
        "perplexity of new documents",
        "coherence (NPMI)",
        "stability",
    ]
    assert axes[0].lines[0].get_ydata().tolist() == [row.perplexity for row in found.table]
    assert axes[0].lines[1].get_xdata().tolist() == [4]


@pytest.mark.parametrize(
    ("numbers", "options", "argument", "right"),
    [
        ([], {}, "n_components", "at least one number"),
        ("2:4", {}, "n_components", "an integer"),
        ([2, 0], {}, "n_components", "at least 1"),
        ([2.5], {}, "n_components", "an integer"),
        ([2], {"held_out": 1.0}, "held_out", "at most 0.9"),
    ],
)
def test_bad_input(numbers, options, argument, right):
    assert_refused(lambda: select_topics(corpus(), numbers, **options), argument, right)


def test_perplexity_is_a_mean_over_tokens_and_errors_are_over_groups(monkeypatch):
    counts = corpus(3, 120).toarray()
    counts[::2] *= 9  # groups differ in length
    real, calls = PLSA.perplexity, []

    def perplexity(self, X):
        calls.append((self.n_components, X.toarray(), -np.log(real(self, X))))
        return real(self, X)

    monkeypatch.setattr(PLSA, "perplexity", perplexity)
    found = select_topics(counts, [2, 3], held_out=0.25)
    groups = [group for number, group, _ in calls if number == 2]
    tokens = np.array([group.sum() for group in groups])
    assert len(groups) == 10
    assert sum(map(len, groups)) == 30
    assert tokens.max() > 2 * tokens.min()
    of = {k: np.array([value for number, _, value in calls if number == k]) for k in (2, 3)}
    for row in found.table:
        assert row.perplexity == pytest.approx(
            np.exp(-np.average(of[row.n_components], weights=tokens)), rel=1e-12
        )
    difference = of[3] - of[2]
    expected = difference.mean() / (np.sqrt(((difference - difference.mean()) ** 2).sum() / 9) / np.sqrt(10))
    assert found.table[0].worse == pytest.approx(expected, rel=1e-9)
    assert found.table[1].worse == 0.0


def test_the_best_is_fitted_to_all_documents_also_those_without_words():
    counts = corpus(3, 200).toarray()
    counts[[0, 7, 199]] = 0
    found = select_topics(counts, [3])
    assert found.best.doc_topic_.shape == (200, 3)
    assert found.best.topic_counts_.sum() == pytest.approx(counts.sum(), rel=1e-9)
    again = PLSA(3, init=found.best.components_).fit(counts)
    np.testing.assert_allclose(again.components_, found.best.components_, atol=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_few_documents_and_many_without_words(seed):
    """Every held-out group has something to predict."""
    counts = np.zeros((140, 20))
    counts[np.random.default_rng(seed).permutation(140)[:60]] = corpus(2, 60).toarray()
    found = select_topics(counts, [2, 3], random_state=seed)
    assert np.isfinite([row.perplexity for row in found.table]).all()
    assert found.best.doc_topic_.shape == (140, found.best.n_components)


@pytest.mark.parametrize("kind", ["pandas", "npz csr", "CsrDocuments", "delayed"])
def test_every_kind_of_counts(kind, tmp_path):
    pytest.importorskip({"pandas": "pandas", "delayed": "dask"}.get(kind, "numpy"))
    counts = corpus(3, 150).toarray().astype(float)
    counts[[3, 140]] = 0
    wanted = select_topics(counts, [2, 3], max_iter=30)
    X = KINDS[kind].make(counts, None, tmp_path).X
    found = select_topics(X, [2, 3], max_iter=30)
    assert [row[:6] for row in found.table] == [row[:6] for row in wanted.table]
    np.testing.assert_array_equal(found.best.components_, wanted.best.components_)
    assert found.best.doc_topic_.shape == (150, found.best.n_components)
    assert hasattr(found.best, "feature_names_in_") == (kind == "pandas")
    if kind == "pandas":
        assert list(found.best.feature_names_in_) == list(X.columns)
        assert found.best.top_words(n=1)[0][0] in X.columns


def test_one_topic_that_is_the_background():
    found = select_topics(corpus(3, 120), [1, 3], background=True, max_iter=20)
    assert [row.n_components for row in found.table] == [1, 3]


def test_too_few_documents():
    assert_refused(lambda: select_topics(corpus(n_documents=20), [2]), "X", "at least 50 documents.*got 20")
