"""Documents through Algorithm 1: the lane against plain NumPy, and what both are to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from topic_fits import short_documents

import swiftem
from swiftem.data import CsrDocuments
from swiftem.methods import FastIncrementalEM, OnlineEM, VarianceReducedEM
from swiftem.schedules import power
from swiftem.topics.compute.corpus import Documents, StreamedDocuments
from swiftem.topics.compute.documents import DocumentsCompute, DocumentSnapshot
from swiftem.topics.documents import DocumentModel, m_step

ALPHA, BETA = np.full(3, 0.1), np.full((1, 1), 0.05)
MODEL = DocumentModel(ALPHA, BETA)
METHODS = {
    "sem": OnlineEM(step_size=power(1.0, 0.7, 3.0), batch_size=7),
    "sem-vr": VarianceReducedEM(step_size=0.3, batch_size=7),
    "sem-vr, short epochs": VarianceReducedEM(step_size=0.3, batch_size=5, epoch_length=4),
}


def counts():
    return short_documents(120, lengths=(0, 40))


def corpus(kind="weighted"):
    weight = np.random.default_rng(1).random(120) + 0.5
    if kind == "streamed":
        return StreamedDocuments(CsrDocuments(counts()), weight)
    return Documents(counts(), weight if kind == "weighted" else None)


def theta0(seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(40), size=3).T.copy()


def s0(documents, seed=0):
    return (theta0(seed) * (documents.total / documents.total_weight / 3)).ravel()


def follow(documents, method, model=MODEL, **options):
    """Return s and θ after each of 60 iterations, and the result."""
    path = []
    options = {"s0": s0(documents), "n_iter": 60, "seed": 2, "record_every": 1} | options
    result = swiftem.run(
        model, documents, method, **options, callback=lambda at: path.append((at.s, at.theta))
    )
    return path, result


@pytest.mark.parametrize(
    ("kind", "beta"),
    [
        *((kind, BETA) for kind in ("plain", "weighted", "streamed")),
        ("weighted", np.zeros((1, 1))),
        ("weighted", np.random.default_rng(3).random((3, 40))),
    ],
)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.usefixtures("small_blocks")
def test_the_lane_goes_where_the_reference_goes(name, kind, beta):
    one, two = corpus(kind), corpus(kind)
    (path, fast), (expected, plain) = (
        follow(documents, METHODS[name], DocumentModel(ALPHA, beta), kernels=kernels)
        for documents, kernels in ((one, "auto"), (two, "reference"))
    )
    assert len(path) == len(expected) == 61
    for (s, theta), (s_expected, theta_expected) in zip(path, expected, strict=True):
        np.testing.assert_allclose(s, s_expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(theta, theta_expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(one.doc_topic, two.doc_topic, rtol=1e-9, atol=1e-15)
    assert fast.passes == plain.passes
    assert np.abs(one.doc_topic - 1 / 3).max() > 0.1


@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_steps_out_of_the_domain_are_rejected(kernels):
    """Half of the documents are empty: a batch of one leaves nothing at a step of one."""
    X = counts().toarray()
    X[::2] = 0.0
    documents = Documents(sp.csr_array(X))
    _, result = follow(documents, OnlineEM(step_size=1.0), kernels=kernels, draws=np.arange(60))
    assert result.rejected == int((X[:60].sum(axis=1) == 0).sum()) >= 30
    assert result.n_iter == 60


def test_differences_that_take_a_topic_below_nothing():
    """Batches of one document, corrected 120 times, and no β: both ways reject the same steps."""
    method = VarianceReducedEM(step_size=0.9, batch_size=1)
    model = DocumentModel(np.full(3, 1e-3), np.zeros((1, 1)))
    found = [follow(corpus(), method, model, kernels=kernels)[1] for kernels in ("auto", "reference")]
    assert found[0].rejected == found[1].rejected > 0
    np.testing.assert_allclose(found[0].s, found[1].s, rtol=1e-6, atol=1e-9)


def test_theta_that_is_no_m_step_counts_until_the_first_step():
    found = [
        follow(corpus(), METHODS["sem"], kernels=kernels, theta0=theta0(5), n_iter=3)[0]
        for kernels in ("auto", "reference")
    ]
    for fast, plain in zip(*found, strict=True):
        np.testing.assert_allclose(fast[0], plain[0], rtol=1e-9, atol=1e-12)
    other = follow(corpus(), METHODS["sem"], n_iter=3)[0]
    assert np.abs(other[1][0] - found[0][1][0]).max() > 1e-3


def test_the_whole_corpus_as_a_batch_is_a_full_e_step():
    documents = corpus()
    word_topic = theta0()
    expected, evaluations = documents.sums(np.full((120, 3), 1 / 3), word_topic, ALPHA, 5, 1e-2)
    for kind, times in ((OnlineEM, 1), (VarianceReducedEM, 3)):
        documents.doc_topic = None
        method = kind(step_size=1.0, batch_size=120)
        _, result = follow(documents, method, theta0=theta0(), n_iter=1)
        np.testing.assert_allclose(result.s * documents.total_weight, expected.ravel(), rtol=1e-9, atol=1e-9)
        assert result.passes == times * evaluations / documents.n_entries


def test_the_correction_of_sem_vr_has_the_right_mean():
    """Over the batches of one permutation, the mean of the proxies is the full E-step at the same topics."""
    documents, method = corpus(), VarianceReducedEM(batch_size=12)
    e_step = DocumentsCompute(MODEL.bind(documents), documents)
    anchor, now, total = theta0(), theta0(1), 0.0
    state = method.init(anchor, s0(documents), None)._replace(centre=e_step.full(anchor))
    for numbers in np.random.default_rng(1).permutation(120).reshape(10, 12):
        total += method.proxy(1, now, (numbers,), state, e_step)[0] / 10
    expected = documents.sums(np.full((120, 3), 1 / 3), now, ALPHA, 5, 1e-2)[0]
    np.testing.assert_allclose(total * documents.total_weight, expected.ravel(), rtol=1e-9, atol=1e-9)


def test_lengths_of_documents_leave_topics_alone():
    """One document a batch and a step of one: θ is that of its words, with β for all tokens of the corpus."""
    X = sp.csr_array(np.array([[30.0, 10.0], [3.0, 1.0]]))
    for draw in (0, 1):
        documents = Documents(X)
        model = DocumentModel(np.ones(1), np.full((1, 1), 2.0))
        result = swiftem.run(
            model, documents, OnlineEM(step_size=1.0), s0=np.ones(2), n_iter=1, draws=[draw], seed=0
        )
        np.testing.assert_allclose(result.theta[:, 0], [35 / 48, 13 / 48], rtol=1e-12)
        np.testing.assert_allclose(model.bind(documents).counts(result.s), [[33, 11]], rtol=1e-12)


def test_sem_vr_keeps_the_number_of_tokens():
    documents = corpus()
    _, result = follow(documents, METHODS["sem-vr"])
    assert result.s.sum() * documents.total_weight == pytest.approx(documents.total, rel=1e-9)
    np.testing.assert_allclose(documents.doc_topic.sum(axis=1), 1.0)


def test_sem_vr_rests_where_em_does():
    documents, topics, shares = corpus(), theta0().T, np.full((120, 3), 1 / 3)
    for _ in range(3000):
        by_topic, _ = documents.em_pass(shares, topics, ALPHA)
        topics = m_step(by_topic, BETA)
    documents.doc_topic = shares
    method = VarianceReducedEM(step_size=0.1, batch_size=10)
    start = (by_topic.T / documents.total_weight).ravel()
    _, result = follow(documents, method, s0=start, n_iter=36)
    np.testing.assert_allclose(result.theta.T, topics, atol=1e-4)


@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize("name", METHODS)
def test_a_run_in_two_parts_is_one_run(name, kernels):
    one, two, method = corpus(), corpus(), METHODS[name]
    _, whole = follow(one, method, kernels=kernels, record_every=17)
    _, half = follow(two, method, kernels=kernels, n_iter=23)
    start = {"theta0": half.theta, "s0": half.s, "state": half.state, "seed": None}
    _, rest = follow(corpus(), method, kernels=kernels, n_iter=37, **start)
    np.testing.assert_array_equal(whole.s, rest.s)
    np.testing.assert_array_equal(whole.theta, rest.theta)
    assert (whole.passes, whole.rejected) == (rest.passes, rest.rejected)


def test_statistics_of_another_run_are_not_gone_on_from():
    """A state that was put together: the lane takes s as it is given, not as it held it."""
    method = METHODS["sem-vr"]
    _, half = follow(corpus(), method, n_iter=23)
    options = {"theta0": half.theta, "s0": 2.0 * half.s, "state": half.state, "n_iter": 9, "seed": None}
    found = [follow(corpus(), method, kernels=way, **options)[1].s for way in ("auto", "reference")]
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


def test_ctrl_c_in_a_full_pass_leaves_places_as_they_were():
    calls = []

    class Interrupted(Documents):
        def sums(self, *arguments):
            if self.n == 120:
                calls.append(self.doc_topic.copy())
                if len(calls) == 2:
                    arguments[0][:50] = 0.0
                    raise KeyboardInterrupt
            return super().sums(*arguments)

    documents, method = Interrupted(counts(), corpus().weight), METHODS["sem-vr"]
    _, whole = follow(corpus(), method)
    _, broken = follow(documents, method)
    assert (broken.status, broken.n_iter) == ("interrupted", 18)
    np.testing.assert_array_equal(documents.doc_topic, calls[1])
    start = {"theta0": broken.theta, "s0": broken.s, "state": broken.state, "seed": None}
    _, rest = follow(documents, method, n_iter=42, **start)
    np.testing.assert_array_equal(rest.s, whole.s)


def test_a_method_of_ones_own_goes_iteration_by_iteration():
    class Own(OnlineEM):
        def proxy(self, k, theta, draws, state, e_step):
            return super().proxy(k, theta, draws, state, e_step)

    _, expected = follow(corpus(), METHODS["sem"])
    _, result = follow(corpus(), Own(step_size=power(1.0, 0.7, 3.0), batch_size=7))
    np.testing.assert_allclose(result.s, expected.s, rtol=1e-9, atol=1e-12)
    assert isinstance(result.state.loop, DocumentSnapshot)
    assert result.state.loop.running is None


def test_what_is_refused():
    for call, sentence in (
        (lambda: follow(corpus(), FastIncrementalEM()), "must not remember samples if these are documents"),
        (lambda: swiftem.run(MODEL, np.zeros((4, 2)), OnlineEM(), n_iter=1), "data must be documents"),
        (lambda: follow(corpus(), OnlineEM(), theta0=np.ones((3, 40))), r"shape \(40, 3\), got \(3, 40\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=sentence):
            call()
