"""What is done where the user leaves it open."""

import pytest

from swiftem.estimators.topics.plan import plan_topics
from swiftem.schedules import constant


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
