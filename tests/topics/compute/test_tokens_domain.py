"""pLSA by tokens: topics that have nothing left, between the looks that compiled loops take at them."""

import helpers
import numpy as np
import pytest
from helpers import assert_close

import swiftem
from swiftem import methods, models
from swiftem.core.method import AnchorState, MemoryState
from swiftem.data import TokenSource

N = 20
batches = pytest.mark.parametrize("b", [1, 2])


def both(method, s, state_of, draws, weight=None, beta=0.0):
    """Run both kernels from statistics and a state that are made up; without penalty a topic can die."""
    data = TokenSource(np.arange(N), np.arange(N), sample_weight=weight)
    model = models.PLSAModel(2, alpha=0.0, beta=beta)
    first = swiftem.run(model, data, method, n_iter=1, seed=0)
    state = first.state._replace(method=state_of(data), loop=None)
    theta0 = model.bind(data).m_step(s)
    return [
        swiftem.run(
            model, data, method, theta0=theta0, s0=s, state=state, n_iter=len(draws[0]), kernels=kernels,
            draws=draws if method.index_streams == 2 else draws[0],
        )
        for kernels in ("auto", "reference")
    ]  # fmt: skip


def assert_same(compiled, plain):
    assert compiled.rejected == plain.rejected
    pairs = ((result.s, result.state.method or ()) for result in (compiled, plain))
    for one, other in zip(*map(helpers.leaves, pairs), strict=True):
        assert_close(one, other)


def flat(of_documents, of_words):
    """Return statistics of topic 1 by document and by word, topic 0 having the rest of 1/N each."""
    by_document = np.stack([1 / N - of_documents, of_documents], axis=1)
    by_word = np.stack([1 / N - of_words, of_words])
    return np.concatenate([by_document.ravel(), by_word.ravel()])


def topic_at_its_end(share):
    """Topic 1 has a share of the last word, and no document has it: no token is explained by it any more."""
    of_words = np.zeros(N)
    of_words[-1] = share
    return flat(np.zeros(N), of_words)


@batches
@pytest.mark.parametrize("weights", [False, True])
def test_fiem_while_its_centre_falls(b, weights):
    """Each j takes from the centre of topic 1, and i, remembered as all its own, from its statistics."""
    memory = np.tile([1.0, 0.0], (N, 1))
    memory[:10] = [0.0, 1.0]
    weight = np.linspace(0.5, 1.5, N) if weights else None

    def state(data):
        centre = topic_at_its_end(0.5)
        return MemoryState(centre, memory.copy())

    k = np.arange(40)
    draws = (np.repeat(np.zeros((40, 1), dtype=int), b, axis=1), np.repeat(1 + k[:, None] % 9, b, axis=1))
    method = methods.FastIncrementalEM(step_size=0.02, batch_size=b)
    compiled, plain = both(method, topic_at_its_end(0.3), state, draws, weight)
    assert_same(compiled, plain)
    assert 0 < plain.rejected < 40


@batches
@pytest.mark.parametrize("beta", [0.0, 0.005], ids=["free", "penalty"])
def test_sem_vr_whose_anchor_had_another_topic(b, beta):
    """Half of the tokens were topic 1's at the anchor, now none is: those take as much from it as can be."""
    shares = np.repeat([[0.0, 1.0], [1.0, 0.0]], N // 2, axis=0)
    anchor = models.PLSAModel(2).theta(doc_topic=shares, topic_word=np.full((2, N), 1 / N))
    numbers = np.r_[np.arange(28) % 10, 10 + np.arange(12) % 9, np.arange(20) % 10]
    draws = (np.repeat(numbers[:, None], b, axis=1),)
    method = methods.VarianceReducedEM(step_size=0.02, batch_size=b, epoch_length=99)
    compiled, plain = both(
        method,
        topic_at_its_end(0.3),
        lambda data: AnchorState(anchor, topic_at_its_end(0.5)),
        draws,
        beta=beta,
    )
    assert_same(compiled, plain)
    assert 0 < plain.rejected < 60


@batches
@pytest.mark.parametrize("weights", [False, True])
def test_iem_until_a_topic_is_empty(b, weights):
    """Every draw takes away what a token had of topic 1; the last one would leave none of it."""
    memory = np.tile([1.0, 0.0], (N, 1))
    memory[:10] = [0.0, 1.0]
    weight = np.linspace(0.5, 1.5, N) if weights else np.ones(N)
    share = weight[:10].sum() / weight.sum()
    draws = (np.repeat(np.r_[np.arange(10)[::-1], 3, 12, 5, 19][:, None], b, axis=1),)
    # Less by a little, so that rounding does not decide.
    s = topic_at_its_end(share - 1e-9)
    compiled, plain = both(methods.IncrementalEM(batch_size=b), s,
                           lambda data: MemoryState(s.copy(), memory.copy()), draws,
                           weight if weights else None)  # fmt: skip
    assert_same(compiled, plain)
    assert 0 < plain.rejected < 10


@batches
@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_topics_that_come_and_go(name, b):
    """Long runs with weights and large steps, most of which are accepted after a look."""
    problem = helpers.topics(60, D=6, V=7, K=4, alpha=1e-3, beta=1e-4)
    documents, words = helpers.tokens_of(problem.data.toarray())
    weight = np.random.default_rng(0).exponential(size=len(words)) ** 2 + 0.01
    data = TokenSource(documents, words, n_documents=6, n_words=7, sample_weight=weight)
    method = helpers.make_method(name, step_size=0.2, batch_size=b, epoch_length=50)
    compiled, plain = (
        swiftem.run(problem.model, data, method, theta0=problem.theta0, n_iter=70, seed=3, kernels=kernels)
        for kernels in ("auto", "reference")
    )
    assert 0 < plain.rejected < 70
    assert_same(compiled, plain)


@batches
def test_a_step_of_one_to_tokens_that_lack_a_topic(b):
    """sem leaves nothing of what was before: without penalty the step is rejected, and later ones are not."""
    s = topic_at_its_end(0.3)
    s[2 * N - 1] = 0.3  # the last document has topic 1, too: its token is explained by it
    draws = (np.repeat(np.array([0, 19, 4, 19, 7, 19, 2])[:, None], b, axis=1),)
    method = methods.OnlineEM(step_size=lambda k: 1.0 if k in (4, 6, 8) else 0.3, batch_size=b)
    compiled, plain = both(method, s, lambda data: None, draws)
    assert_same(compiled, plain)
    assert 0 < plain.rejected < 7


@batches
@pytest.mark.parametrize(("name", "part"), [("sem-vr", "centre"), ("sem-vr", "anchor"), ("fiem", "centre")])
def test_a_state_that_was_put_together(name, part, b):
    """The lane's own arrays are those of another centre or anchor then, and are not used."""
    problem = helpers.topics(60, D=6, V=7, K=3)
    method = helpers.make_method(name, step_size=0.05, batch_size=b, epoch_length=100)
    first, other = (problem.run(method, n_iter=30, seed=seed) for seed in (0, 1))
    if part == "anchor":
        other = problem._replace(theta0=other.theta).run(method, n_iter=1, seed=1)
    state = first.state._replace(
        method=first.state.method._replace(**{part: getattr(other.state.method, part)})
    )
    compiled, plain = (
        problem.run(method, n_iter=20, theta0=first.theta, s0=first.s, state=state, kernels=kernels)
        for kernels in ("auto", "reference")
    )
    assert_same(compiled, plain)
