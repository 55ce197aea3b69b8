"""The compiled lanes of pLSA do what the plain loop does, to rounding, at O(K) a token."""

import helpers
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import COMPILED, assert_close, assert_identical, make_method

import swiftem
from swiftem import methods, models, schedules
from swiftem.core.algorithm import Algorithm1, Task
from swiftem.core.compute import Compute, Placement
from swiftem.core.method import MemoryState
from swiftem.data import CountSource, TokenSource
from swiftem.topics.compute import tokens as loops
from swiftem.topics.compute.tokens import TokensCompute, TokensLoop

every_method = pytest.mark.parametrize("name", [*COMPILED, "spider"])


@pytest.fixture(autouse=True)
def taken(monkeypatch):
    """The compiled loops that runs took, None for a plain one."""
    seen, loop = [], TokensCompute.loop

    def choose(self, task):
        made = loop(self, task)
        seen.append(None if type(made) is Algorithm1 else made)
        return made

    monkeypatch.setattr(TokensCompute, "loop", choose)
    return seen


def case(
    n=60, D=5, V=8, K=3, b=1, *, step=0.05, alpha=1e-3, beta=1e-3, weights=False, tokens=False, n_iter=120,
    every=7, epoch=None, counts=None, s0=None,
):  # fmt: skip
    return locals()


EMPTY = np.array([[3, 0, 2, 0], [0, 0, 0, 0], [1, 0, 4, 1], [0, 0, 0, 0]])
"""Documents without tokens, and a word that does not occur."""

CASES = {
    "plain": case(),
    "three in a batch": case(b=3),
    "batch larger than data": case(n=11, b=40, n_iter=30),
    "one token": case(n=1, D=1, V=1, K=1),
    "one token, batch": case(n=1, D=1, V=1, K=1, b=2),
    "prime sizes": case(n=97, D=13, V=11, K=7, every=13),
    "one document": case(n=31, D=1, V=7, K=2, b=2),
    "one word": case(n=31, D=7, V=1, K=2),
    "one topic": case(K=1),
    "empty documents": case(counts=EMPTY, K=2),
    "empty documents, batch": case(counts=EMPTY, K=2, b=3),
    "wide rows": case(n=300, K=40),
    "inverse schedule": case(step=schedules.inverse(3, 10)),
    "first step one": case(step=schedules.power(1.0, 0.6), b=2),
    "first step one, single": case(step=schedules.power(1.0, 0.6)),
    "step one now and then": case(step=lambda k: 1.0 if k % 10 == 0 else 0.05),
    "step one now and then, batch": case(step=lambda k: 1.0 if k % 10 == 0 else 0.05, b=3),
    "weights": case(weights=True),
    "weights, batch": case(weights=True, b=3),
    "tokens": case(tokens=True),
    "tokens, weights, batch": case(tokens=True, weights=True, b=3),
    "fractions": case(counts=EMPTY * 0.75, K=2),
    "no penalty": case(alpha=0.0, beta=0.0),
    "no penalty, batch": case(alpha=0.0, beta=0.0, b=3),
    "rejected steps": case(step=0.6, K=6, n_iter=40, every=1),
    "rejected steps, batch": case(step=0.9, K=6, n_iter=25, every=1, b=2),
    "short epochs": case(epoch=5),
    "epochs of one": case(epoch=1, b=2, n_iter=30),
    "every iterate": case(every=1),
    "no record": case(every=None),
    "given s0": case(s0=0.3),
    "given s0, batch": case(s0=0.3, b=3),
}


def problem_of(settings, seed=0):
    counts = settings["counts"]
    if counts is None:
        counts = helpers.random_counts(settings["n"], settings["D"], settings["V"], settings["K"], seed)
    rng = np.random.default_rng(seed)
    model = models.PLSAModel(settings["K"], alpha=settings["alpha"], beta=settings["beta"])
    D, V, K = *counts.shape, settings["K"]
    theta0 = model.theta(
        doc_topic=rng.dirichlet(np.full(K, 2.0), size=D), topic_word=rng.dirichlet(np.full(V, 2.0), size=K)
    )
    if settings["tokens"]:
        documents, words = helpers.tokens_of(counts)
        order = rng.permutation(len(words))
        weight = rng.random(len(words)) + 0.1 if settings["weights"] else None
        data = TokenSource(documents[order], words[order], n_documents=D, n_words=V, sample_weight=weight)
    else:
        data = CountSource(sp.csr_array(counts), rng.random(D) + 0.1 if settings["weights"] else None)
    s0 = None
    if settings["s0"] is not None:  # with entries below zero
        s0 = rng.random(K * (D + V)) / V - settings["s0"] / V
    return model, data, theta0, s0


def both(name, settings, seed=0, **options):
    model, data, theta0, s0 = problem_of(settings, seed)
    method = make_method(
        name, batch_size=settings["b"], step_size=settings["step"], epoch_length=settings["epoch"]
    )
    draws = helpers.random_draws(name, data.n, settings["n_iter"], settings["b"])
    options = {"n_iter": settings["n_iter"], "record_every": settings["every"], "seed": 0} | options
    return [
        swiftem.run(model, data, method, theta0=theta0, s0=s0, draws=draws, kernels=kernels, **options)
        for kernels in ("auto", "reference")
    ]


def assert_same(compiled, plain):
    assert (compiled.n_iter, compiled.rejected, compiled.passes) == (
        plain.n_iter, plain.rejected, plain.passes
    )  # fmt: skip
    assert type(compiled.state.method) is type(plain.state.method)
    pairs = [
        ((compiled.theta, compiled.s, compiled.state.method), (plain.theta, plain.s, plain.state.method))
    ]
    for ours, theirs in zip(compiled.path, plain.path, strict=True):
        assert (ours.k, ours.passes, ours.rejected) == (theirs.k, theirs.passes, theirs.rejected)
        pairs.append(((ours.theta, ours.s), (theirs.theta, theirs.s)))
    for ours, theirs in pairs:
        for one, other in zip(helpers.leaves(ours), helpers.leaves(theirs), strict=True):
            assert_close(one, other)


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
@every_method
def test_same_trajectory(name, settings, taken):
    compiled, plain = both(name, settings)
    assert_same(compiled, plain)
    assert [type(lane) for lane in taken] == [TokensLoop]


@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_the_cases_are_hard(name, b):
    compiled, _ = both(name, CASES["rejected steps" if b == 1 else "rejected steps, batch"])
    assert 0 < compiled.rejected < compiled.n_iter
    assert any((iterate.s < 0).any() for iterate in compiled.path)
    assert any((iterate.theta.topic_scale != 1).any() for iterate in compiled.path)


@pytest.mark.parametrize("step", [0.7, 0.999999, 1.0])
@pytest.mark.parametrize("name", ["sem", "sem-vr", "fiem"])
@pytest.mark.parametrize("b", [1, 2])
def test_the_scale_goes_into_u_before_it_underflows(name, step, b):
    # One topic, so that nothing amplifies rounding: 700 steps of 0.7 are a scale of 1e-366.
    compiled, plain = both(name, case(K=1, b=b, step=step, n_iter=700, every=350))
    assert_same(compiled, plain)


@every_method
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("n_iter", [2000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_long_runs(name, b, n_iter, taken):
    settings = case(n=200, D=10, V=12, step=0.003, n_iter=n_iter, every=n_iter, b=b)
    compiled, plain = both(name, settings)
    assert_same(compiled, plain)
    assert taken[0].scale_of_u != 1.0 or name in ("iem", "sem-vr", "spider")


@every_method
@pytest.mark.parametrize("b", [1, 3])
def test_totals_are_renewed_where_the_iteration_says_so(name, b, monkeypatch):
    monkeypatch.setattr(loops, "RENEW_TOTALS", 16)
    assert_same(*both(name, case(b=b)))


@every_method
@pytest.mark.parametrize("b", [1, 3])
def test_neither_records_nor_stretches_change_a_bit(name, b, monkeypatch):
    settings = case(b=b, n_iter=300, every=None)
    once, _ = both(name, settings)
    often, _ = both(name, settings, record_every=1)
    monkeypatch.setattr(TokensLoop, "FIRST", 3)
    monkeypatch.setattr(TokensLoop, "MOST", 11)
    short, _ = both(name, settings)
    for other in (often, short):
        helpers.assert_same_result(other, once)


@every_method
def test_what_was_recorded_does_not_change(name):
    model, data, theta0, _ = problem_of(case())
    copies = []
    result = swiftem.run(
        model, data, make_method(name, step_size=0.05), theta0=theta0, n_iter=40, seed=0, record_every=3,
        callback=lambda iterate: copies.append((iterate.s.copy(), iterate.theta.topic_word.copy())),
    )  # fmt: skip
    for (s, topics), iterate in zip(copies, result.path, strict=True):
        assert_identical((s, topics), (iterate.s, iterate.theta.topic_word))


@every_method
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("kernels", [("auto", "reference"), ("reference", "auto"), ("auto", "auto")])
def test_either_kernel_goes_on_where_the_other_ended(name, b, kernels):
    model, data, theta0, _ = problem_of(case())
    method = make_method(name, step_size=schedules.power(0.3, 0.3), batch_size=b, epoch_length=17)
    whole = swiftem.run(model, data, method, theta0=theta0, n_iter=90, seed=1, kernels="reference")
    first = swiftem.run(model, data, method, theta0=theta0, n_iter=41, seed=1, kernels=kernels[0])
    before = [np.copy(leaf) for leaf in helpers.leaves(first.state.method)]
    rest = swiftem.run(
        model, data, method, theta0=first.theta, s0=first.s, state=first.state, n_iter=49, kernels=kernels[1]
    )
    assert_same(rest, whole)
    for leaf, copy in zip(helpers.leaves(first.state.method), before, strict=True):
        np.testing.assert_array_equal(leaf, copy)


@every_method
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.filterwarnings("ignore:All 20 steps of the run were rejected")
def test_a_topic_that_is_empty_without_penalty_rejects_every_step(name, b):
    settings = case(b=b, alpha=0.0, beta=0.0, n_iter=20)
    model, data, theta0, _ = problem_of(settings)
    topics = theta0.doc_topic.copy()
    topics[:, 0] = 0.0
    theta0 = theta0._replace(doc_topic=topics / topics.sum(axis=1, keepdims=True))
    results = [
        swiftem.run(model, data, make_method(name, step_size=0.1, batch_size=b), theta0=theta0, n_iter=20,
                    seed=0, record_every=1, kernels=kernels)
        for kernels in ("auto", "reference")
    ]  # fmt: skip
    assert_same(*results)
    assert [(result.rejected, result.status) for result in results] == [(20, "rejected")] * 2


@pytest.mark.parametrize("b", [1, 2])
def test_a_step_of_iem_that_is_rejected_within_a_stretch(b):
    """The memory and the centre go on, s and θ stay; then steps are accepted again."""
    data, model = TokenSource([0, 0, 1, 1], [0, 1, 1, 0]), models.PLSAModel(2, alpha=0.01, beta=0.0)
    first = swiftem.run(model, data, methods.IncrementalEM(batch_size=b), n_iter=0, seed=0)
    # Topic 1 has no part in word 0, so token 0 takes away all that the topic has: 1/8.
    memory = np.array([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    s = np.array([0.5, 0.0, 0.5, 0.0, 0.25, 0.5, 0.0, 0.125])
    state = first.state._replace(method=MemoryState(s, memory))
    draws = np.array([3, 3, 0, 0, 1, 3, 0, 2, 1, 3])
    results = [
        swiftem.run(model, data, methods.IncrementalEM(batch_size=b), theta0=model.bind(data).m_step(s), s0=s,
                    state=state, n_iter=10, record_every=every, kernels=kernels,
                    draws=np.repeat(draws[:, None], b, axis=1))
        for kernels in ("auto", "reference") for every in (1, 10)
    ]  # fmt: skip
    assert results[0].rejected == 2
    assert_same(results[0], results[2])
    assert_same(results[1], results[3])


@pytest.mark.parametrize("name", ["iem", "fiem"])
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_float32_memory_is_what_the_centre_is_the_mean_of(name, b, kernels):
    model, data, theta0, _ = problem_of(case(n=200, weights=True))
    method = make_method(name, step_size=0.05, batch_size=b, memory_dtype="float32")
    result = swiftem.run(model, data, method, theta0=theta0, n_iter=500, seed=0, kernels=kernels)
    state = result.state.method
    assert state.memory.dtype == np.float32
    batch = data.take(np.arange(data.n))
    bound = model.bind(data)
    mean = bound.statistics(batch, state.memory.astype(np.float64), batch.weight / data.total_weight)
    np.testing.assert_allclose(state.centre, mean, rtol=0, atol=1e-14)
    full = swiftem.run(model, data, make_method(name, step_size=0.05, batch_size=b), theta0=theta0,
                       n_iter=500, seed=0)  # fmt: skip
    np.testing.assert_allclose(result.s, full.s, rtol=0, atol=1e-5)


@pytest.mark.parametrize("b", [1, 2])
def test_a_document_without_statistics_has_uniform_topics(b):
    """Without penalty a document's row may be all zero: then it has all topics alike."""
    model, data, theta0, _ = problem_of(case(alpha=0.0))
    s0 = Compute(model.bind(data), data).full(theta0)
    s0[: 2 * model.n_topics] = [0.0, 0.0, 0.0, -1e-3, -1e-3, 0.0]
    draws = np.repeat([[0] * b, [1] * b, [30] * b, [2] * b], 10, axis=0)
    draws[::3] = 20
    results = [
        swiftem.run(model, data, methods.OnlineEM(step_size=0.01, batch_size=b), s0=s0, n_iter=40,
                    draws=draws, record_every=1, kernels=kernels)
        for kernels in ("auto", "reference")
    ]  # fmt: skip
    assert_same(*results)


class TestChoice:
    """Only what is exactly this model and one of these methods is taken."""

    @staticmethod
    def task(method, model=None, data=None):
        data = problem_of(case())[1] if data is None else data
        bound = models.PLSAModel(2).bind(data) if model is None else model
        return Task(bound, method, data, None, None, TokensCompute(bound, data), None)

    def loop(self, *given):
        task = self.task(*given)
        return task.compute.loop(task)

    def test_a_derived_method_is_not(self):
        class Mine(methods.OnlineEM):
            def proxy(self, k, theta, draws, state, e_step):
                return super().proxy(k, theta, draws, state, e_step)

        assert type(self.loop(Mine())) is Algorithm1

    def test_a_wrapped_model_is_not(self):
        data = problem_of(case())[1]
        wrapped = helpers.Hooked(models.PLSAModel(2), lambda name, call: None).bind(data)
        assert type(wrapped.compute(data, Placement())) is Compute
