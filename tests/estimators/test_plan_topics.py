"""What is done where the user leaves it open."""

import numpy as np
import pytest

import swiftem
from swiftem import PLSA
from swiftem.core.schedules import constant
from swiftem.topics.plan import plan_topics


@pytest.mark.parametrize(("n", "batch"), [(500, 25), (5_000, 250), (10**6, 256)])
def test_auto_reads_by_batches_first(n, batch):
    plan = plan_topics("auto", "auto", "auto", "auto", n_documents=n)
    assert (plan.name, plan.first.name, plan.first.batch_size) == ("em", "sem", batch)
    assert plan.by_documents is plan.by_tokens is None


@pytest.mark.parametrize("name", ["auto", "em"])
def test_small_corpora_and_em_are_passes(name):
    assert plan_topics(name, "auto", "auto", "auto", n_documents=100).first is None


@pytest.mark.parametrize("name", ["sem", "sem-vr", "iem", "fiem"])
def test_what_is_drawn(name):
    plan = plan_topics(name, "auto", "auto", "auto", n_documents=1000)
    assert (plan.by_documents is None) == (name in ("iem", "fiem"))
    tokens = plan_topics(name, "tokens", 7, "auto", n_documents=1000)
    assert (tokens.by_tokens.name, tokens.by_tokens.batch_size) == (name, 7)


def test_given_batches_and_steps_are_taken():
    plan = plan_topics("sem", "documents", 5000, constant(0.25), n_documents=1000)
    assert plan.by_documents.batch_size == 1000
    assert plan.by_documents.step_size == constant(0.25)
    with pytest.raises(ValueError, match="sampling must be 'tokens' for method='iem', got 'documents'"):
        plan_topics("iem", "documents", "auto", "auto", n_documents=10)


@pytest.mark.parametrize(("n_components", "beta"), [(3, 0.05), (20, 0.05), (40, 0.025)])
def test_beta_is_at_most_one_count_of_each_word_in_all(n_components, beta, tmp_path):
    X = np.random.default_rng(0).poisson(1.0, size=(60, 30))
    fits = [
        PLSA(n_components, beta=given, max_iter=3, random_state=0, tol=1.0).fit(X) for given in ("auto", beta)
    ]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    fits[0].save(tmp_path / "model")
    loaded = PLSA.load(tmp_path / "model")
    assert loaded.beta == "auto"
    assert fits[0].set_params(n_components=50)._beta(30).item() == 0.02
    fits[1].save(tmp_path / "given")
    assert PLSA.load(tmp_path / "given").beta == beta


@pytest.mark.parametrize("name", ["spider", "opt-fiem"])
def test_other_methods_draw_tokens(name):
    plan = plan_topics(name, "auto", 3, "auto", n_documents=1000)
    assert (plan.by_tokens.name, plan.by_tokens.batch_size, plan.by_documents) == (name, 3, None)


def test_documents_are_for_methods_that_have_them():
    with pytest.raises(ValueError, match="got 'documents': batches of documents are for sem and sem-vr"):
        plan_topics("spider", "documents", "auto", "auto", n_documents=10)
    with pytest.raises(ValueError, match="step_size must be 'auto' for method='iem', which has none"):
        plan_topics("iem", "auto", "auto", 0.1, n_documents=10)


@pytest.mark.parametrize("name", ["spider", "opt-fiem"])
def test_topics_of_later_methods(name):
    rng = np.random.default_rng(0)
    likely = np.repeat(np.eye(2), 6, axis=1)[rng.integers(2, size=60)] * 4.0 + 0.05
    counts = rng.poisson(likely)
    topics = swiftem.PLSA(2, method=name, random_state=0, max_iter=20, tol=1e-2).fit(counts).components_
    halves = topics[:, :6].sum(axis=1) / topics.sum(axis=1)
    assert halves.min() < 0.1
    assert halves.max() > 0.9
