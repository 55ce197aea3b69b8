"""Numbers of topics, compared on documents that were not fitted."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import assert_refused

from swiftem import PLSA, select_topics
from swiftem.estimators.topics import select as module
from swiftem.estimators.topics.select import split_topics


def corpus(n_topics=4, n_documents=400, seed=0):
    """Return documents of one topic each, with ten words of their own and some of all topics."""
    rng = np.random.default_rng(seed)
    own = np.kron(np.eye(n_topics), np.ones((1, 10))) + 0.05
    return sp.csr_array(rng.poisson(2.0 * own[rng.integers(n_topics, size=n_documents)]))


@pytest.fixture(scope="module")
def found():
    return select_topics(corpus(), [2, 3, 4, 6, 8])


def test_the_smallest_number_that_predicts_as_well_is_chosen(found):
    assert found.n_components == 4
    assert [row.n_components for row in found.table] == [2, 3, 4, 6, 8]
    perplexity = [row.perplexity for row in found.table]
    assert perplexity[0] > perplexity[1] > perplexity[2]
    assert found.table[0].worse > 5.0
    assert found.table[2].worse <= 1.0
    assert "4 topics" in found.reason
    assert "more may be better" not in found.reason
    assert found.best.components_.shape == (4, 40)
    assert "chosen" in repr(found)
    assert repr(found).endswith(found.reason)


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
    real, calls = module._Path.fit, []

    def fit(self, number):
        calls.append(number)
        if number == 3:
            raise KeyboardInterrupt
        return real(self, number)

    monkeypatch.setattr(module._Path, "fit", fit)
    found = select_topics(corpus(), [2, 3, 4])
    assert (found.interrupted, found.n_components, len(found.table)) == (True, 2, 1)
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
    assert axes[0].get_title(loc="left") == "4 topics"


@pytest.mark.parametrize(
    ("numbers", "options", "argument", "right"),
    [
        ([], {}, "n_components", "list of numbers"),
        (3, {}, "n_components", "list of numbers.*got 3"),
        ("2:4", {}, "n_components", "list of numbers"),
        ([2, 0], {}, "n_components", "at least 1"),
        ([2.5], {}, "n_components", "an integer"),
        ([2], {"held_out": 1.0}, "held_out", "at most 0.9"),
    ],
)
def test_bad_input(numbers, options, argument, right):
    assert_refused(lambda: select_topics(corpus(), numbers, **options), argument, right)


def test_too_few_documents():
    assert_refused(lambda: select_topics(corpus(n_documents=20), [2]), "X", "at least 50 documents.*got 20")
