"""Compiled loops of pLSA by tokens do what the plain loop does, for every declared update.

Topics that lose all they have are looked at between two stretches: states that are made up lead there.
"""

from copy import deepcopy

import helpers
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import COMPILED, assert_close, make_method
from own_method import UPDATES, own

import swiftem
from swiftem import methods, models, schedules
from swiftem.core.algorithm import Algorithm1, Task
from swiftem.core.compute import Compute, Placement
from swiftem.core.method import AnchorState, MemoryState
from swiftem.data import CountSource, TokenSource
from swiftem.topics.compute import tokens as loops
from swiftem.topics.compute.tokens import TokensCompute, TokensLoop

every_method = pytest.mark.parametrize("name", [*COMPILED, "spider"])
batches = pytest.mark.parametrize("b", [1, 2])
KERNELS = ("auto", "reference")
N = 20


def case(
    n=60, D=5, V=8, K=3, b=1, *, step=0.05, alpha=1e-3, beta=1e-3, weights=False, tokens=False, n_iter=120,
    every=7, epoch=None, counts=None, s0=None,
):  # fmt: skip
    return locals()


EMPTY = np.array([[3, 0, 2, 0], [0, 0, 0, 0], [1, 0, 4, 1], [0, 0, 0, 0]])
"""Documents without tokens, and a word that does not occur."""

CASES = {
    "plain": case(),
    "prime sizes": case(n=97, D=13, V=11, K=7, every=13),
    "one document": case(n=31, D=1, V=7, K=2, b=2),
    "one word": case(n=31, D=7, V=1, K=2),
    "empty documents, batch": case(counts=EMPTY, K=2, b=3),
    "wide rows": case(n=300, K=40),
    "inverse schedule": case(step=schedules.inverse(3, 10)),
    "first step one": case(step=schedules.power(1.0, 0.6), b=2),
    "step one now and then": case(step=lambda k: 1.0 if k % 10 == 0 else 0.05),
    "step one now and then, batch": case(step=lambda k: 1.0 if k % 10 == 0 else 0.05, b=3),
    "weights, batch": case(weights=True, b=3),
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
    "given s0, batch": case(s0=0.3, b=3),
    "rejected steps, weights": case(D=6, V=7, K=4, step=0.2, beta=1e-4, tokens=True, weights=True, n_iter=70),
    "scale that underflows": case(K=1, step=0.7, n_iter=700, every=350),  # it would be 1e-366
    "scale that nearly vanishes": case(K=1, b=2, step=0.999999, n_iter=700, every=350),
    "steps of one": case(K=1, b=2, step=1.0, n_iter=700, every=350),
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
        for kernels in KERNELS
    ]


def assert_same(compiled, plain):
    counts = [(result.n_iter, result.rejected, result.passes) for result in (compiled, plain)]
    assert counts[0] == counts[1]
    assert type(compiled.state.method) is type(plain.state.method)
    pairs = [(compiled.theta, plain.theta), (compiled.s, plain.s)]
    pairs.append((compiled.state.method or (), plain.state.method or ()))
    for ours, theirs in zip(compiled.path, plain.path, strict=True):
        assert (ours.k, ours.passes, ours.rejected) == (theirs.k, theirs.passes, theirs.rejected)
        pairs += [(ours.theta, theirs.theta), (ours.s, theirs.s)]
    for ours, theirs in pairs:
        for one, other in zip(helpers.leaves(ours), helpers.leaves(theirs), strict=True):
            assert_close(one, other)


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
@every_method
def test_same_trajectory(name, settings):
    assert_same(*both(name, settings))


@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_the_cases_are_hard(name, b):
    compiled, _ = both(name, CASES["rejected steps" if b == 1 else "rejected steps, batch"])
    assert 0 < compiled.rejected < compiled.n_iter
    assert any((iterate.s < 0).any() for iterate in compiled.path)
    assert any((iterate.theta.topic_scale != 1).any() for iterate in compiled.path)


@every_method
@pytest.mark.parametrize("b", [1, 3])
def test_totals_are_renewed_where_the_iteration_says_so(name, b, monkeypatch):
    monkeypatch.setattr(loops, "RENEW_TOTALS", 16)
    assert_same(*both(name, case(b=b)))


@every_method
@pytest.mark.slow
def test_long_runs(name):
    assert_same(*both(name, case(n=200, D=10, V=12, step=0.003, n_iter=20_000, every=20_000, b=2)))


@every_method
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("kernels", [KERNELS, KERNELS[::-1]])
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
    method = make_method(name, step_size=0.1, batch_size=b)
    options = {"theta0": theta0, "n_iter": 20, "seed": 0, "record_every": 1}
    results = [swiftem.run(model, data, method, **options, kernels=kernels) for kernels in KERNELS]
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
    draws = np.repeat(np.array([3, 3, 0, 0, 1, 3, 0, 2, 1, 3])[:, None], b, axis=1)
    options = {"theta0": model.bind(data).m_step(s), "s0": s, "state": state, "n_iter": 10, "draws": draws}
    for every in (1, 10):
        results = [
            swiftem.run(
                model, data, methods.IncrementalEM(batch_size=b), **options, record_every=every, kernels=way
            )
            for way in KERNELS
        ]
        assert results[0].rejected == 2
        assert_same(*results)


@pytest.mark.parametrize("name", ["iem", "fiem"])
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("kernels", KERNELS)
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
    method = make_method(name, step_size=0.05, batch_size=b)
    full = swiftem.run(model, data, method, theta0=theta0, n_iter=500, seed=0)
    np.testing.assert_allclose(result.s, full.s, rtol=0, atol=1e-5)


@pytest.mark.parametrize("b", [1, 2])
def test_a_document_without_statistics_has_uniform_topics(b):
    """Without penalty a document's row may be all zero: then it has all topics alike."""
    model, data, theta0, _ = problem_of(case(alpha=0.0))
    s0 = Compute(model.bind(data), data).full(theta0)
    s0[: 2 * model.n_topics] = [0.0, 0.0, 0.0, -1e-3, -1e-3, 0.0]
    draws = np.repeat([[0] * b, [1] * b, [30] * b, [2] * b], 10, axis=0)
    draws[::3] = 20
    method = methods.OnlineEM(step_size=0.01, batch_size=b)
    options = {"s0": s0, "n_iter": 40, "draws": draws, "record_every": 1}
    assert_same(*(swiftem.run(model, data, method, **options, kernels=kernels) for kernels in KERNELS))


def loop_of(method):
    data = problem_of(case())[1]
    bound = models.PLSAModel(2).bind(data)
    compute = bound.compute(data, Placement())
    assert type(compute) is TokensCompute
    return compute.loop(Task(bound, method, data, None, None, compute, None))


def test_only_this_model_and_declared_updates_are_compiled():
    class Mine(methods.OnlineEM):
        def proxy(self, k, theta, draws, state, e_step):
            return super().proxy(k, theta, draws, state, e_step)

    assert {type(loop_of(make_method(name))) for name in [*COMPILED, "spider"]} == {TokensLoop}
    assert type(loop_of(Mine())) is Algorithm1
    data = problem_of(case())[1]
    wrapped = helpers.Hooked(models.PLSAModel(2), lambda name, call: None).bind(data)
    assert type(wrapped.compute(data, Placement())) is Compute


# Any update, and SPIDER-EM.

STEPS = {
    "constant": 0.1,
    "varying": schedules.power(0.9, 0.5),
    "one now and then": lambda k: 1.0 if k % 7 == 0 else 0.2,
    "one": 1.0,
}


def both_of(method, **options):
    problem = helpers.topics(90, D=6, V=7, K=3, alpha=1e-2, beta=1e-2)
    options = {"seed": 3, "sample_weight": np.linspace(0.5, 2.0, 6), "record_every": 11} | options
    return [problem.run(method, kernels=kernels, **options) for kernels in KERNELS]


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_any_update(update, b, step):
    n_iter = 150 if step in (STEPS["constant"], STEPS["varying"]) else 50  # large steps amplify rounding
    method = own(update, step_size=step, batch_size=b)
    compiled, plain = both_of(method, n_iter=n_iter)
    assert_same(compiled, plain)
    is_forgotten = update.centre == "proxy" and update.correction < 1.0
    assert type(loop_of(method)) is (Algorithm1 if is_forgotten else TokensLoop)
    assert (compiled.state.loop is None) == is_forgotten


@pytest.mark.parametrize("renewals", ["fixed", "geometric"])
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("step", [0.1, 1.0])
def test_spider(renewals, b, step):
    method = methods.SpiderEM(step_size=step, batch_size=b, epoch_length=23, renewals=renewals)
    assert_same(*both_of(method, n_iter=60))


@batches
@pytest.mark.parametrize("part", ["centre", "anchor"])
@pytest.mark.parametrize("name", ["proxy", "sem-vr", "fiem"])
def test_a_state_that_was_put_together(name, part, b):
    """The loop's own arrays are those of another centre, anchor or iteration before, and are not used."""
    if (name, part) == ("fiem", "anchor"):
        return
    method = own(UPDATES[name], batch_size=b) if name in UPDATES else None
    method = method or make_method(name, step_size=0.05, batch_size=b, epoch_length=100)
    first, other = (both_of(method, n_iter=30, seed=seed)[0] for seed in (0, 1))
    if name == "sem-vr":
        other = both_of(method, n_iter=1, seed=1, theta0=other.theta)[0]
    mixed = first.state.method._replace(**{part: getattr(other.state.method, part)})
    start = {"theta0": first.theta, "s0": first.s, "state": first.state._replace(method=mixed), "seed": None}
    assert_same(*both_of(method, n_iter=20, **start))


# Topics that have nothing left.


def share_of_the_last_word(share):
    """Return statistics of two topics: 1 has this share of the last word, but no document has topic 1."""
    by_document, by_word = np.tile([1 / N, 0.0], (N, 1)), np.zeros((2, N))
    by_word[0], by_word[1, -1] = 1 / N, share
    by_word[0, -1] -= share
    return np.concatenate([by_document.ravel(), by_word.ravel()])


def memory_of_ten():
    """Return responsibilities: the first ten tokens are topic 1's."""
    return np.repeat([[0.0, 1.0], [1.0, 0.0]], N // 2, axis=0)


def made_up(method, s, state, draws, *, weight=None, beta=0.0):
    """Compare both kernels from statistics and a state that are made up; return how many steps are rejected.

    ``draws`` are tokens, or pairs of lists of them, each drawn for a whole batch. Without penalty a topic can
    die.
    """
    data = TokenSource(np.arange(N), np.arange(N), sample_weight=weight)
    model = models.PLSAModel(2, alpha=0.0, beta=beta)
    first = swiftem.run(model, data, method, n_iter=1, seed=0)
    drawn = [np.repeat(part[:, None], method.batch_size, axis=1) for part in np.atleast_2d(draws)]
    options = {"theta0": model.bind(data).m_step(s), "s0": s, "n_iter": len(drawn[0])}
    options["draws"] = tuple(drawn) if len(drawn) > 1 else drawn[0]
    results = [
        swiftem.run(
            model,
            data,
            method,
            **options,
            state=first.state._replace(method=deepcopy(state), loop=None),
            kernels=kernels,
        )
        for kernels in KERNELS
    ]
    assert_same(*results)
    return results[1].rejected


@batches
@pytest.mark.parametrize("weights", [False, True])
def test_fiem_while_its_centre_falls(b, weights):
    """Each j takes from the centre of topic 1, and i, remembered as all its own, from its statistics."""
    state = MemoryState(share_of_the_last_word(0.5), memory_of_ten())
    weight = np.linspace(0.5, 1.5, N) if weights else None
    draws = np.array([np.zeros(40, dtype=int), 1 + np.arange(40) % 9])
    method = methods.FastIncrementalEM(step_size=0.02, batch_size=b)
    assert 0 < made_up(method, share_of_the_last_word(0.3), state, draws, weight=weight) < 40


@batches
@pytest.mark.parametrize("beta", [0.0, 0.005], ids=["free", "penalty"])
def test_sem_vr_whose_anchor_had_another_topic(b, beta):
    """Half of the tokens were topic 1's at the anchor, now none is: those take as much from it as can be."""
    anchor = models.PLSAModel(2).theta(doc_topic=memory_of_ten(), topic_word=np.full((2, N), 1 / N))
    state = AnchorState(anchor, share_of_the_last_word(0.5))
    draws = np.r_[np.arange(28) % 10, 10 + np.arange(12) % 9, np.arange(20) % 10]
    method = methods.VarianceReducedEM(step_size=0.02, batch_size=b, epoch_length=99)
    assert 0 < made_up(method, share_of_the_last_word(0.3), state, draws, beta=beta) < 60


@batches
@pytest.mark.parametrize("weights", [False, True])
def test_iem_until_a_topic_is_empty(b, weights):
    """Every draw takes away what a token had of topic 1; the last one would leave none of it."""
    weight = np.linspace(0.5, 1.5, N) if weights else None
    share = 0.5 if weight is None else weight[:10].sum() / weight.sum()
    s = share_of_the_last_word(share - 1e-9)  # less by a little, so that rounding does not decide
    draws = np.r_[np.arange(10)[::-1], 3, 12, 5, 19]
    method = methods.IncrementalEM(batch_size=b)
    assert 0 < made_up(method, s, MemoryState(s, memory_of_ten()), draws, weight=weight) < 10


@batches
def test_a_step_of_one_to_tokens_that_lack_a_topic(b):
    """sem leaves nothing of what was before: without penalty the step is rejected, and later ones are not."""
    s = share_of_the_last_word(0.3)
    s[2 * N - 1] = 0.3  # the last document has topic 1, too: its token is explained by it
    method = methods.OnlineEM(step_size=lambda k: 1.0 if k in (4, 6, 8) else 0.3, batch_size=b)
    assert 0 < made_up(method, s, None, np.array([0, 19, 4, 19, 7, 19, 2])) < 7
