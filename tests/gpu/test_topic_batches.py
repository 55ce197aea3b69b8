"""sem and sem-vr by documents on a device, compared with the plain form in NumPy; fits with the CPU's."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_problems import DEVICE, ON, lines_of, torch

import swiftem
from swiftem.engine.documents import Documents
from swiftem.engine.gpu.topics import lane
from swiftem.engine.gpu.topics.documents import DeviceDocuments
from swiftem.engine.gpu.topics.lane import DeviceDocumentLane
from swiftem.methods import OnlineEM, VarianceReducedEM
from swiftem.models.documents import DocumentModel, DocumentTheta
from swiftem.schedules import power

SCRIPT = Path(__file__).with_name("topic_batches_against_reference.py")
NAME = DEVICE.removeprefix("torch:")
ALPHA, BETA = np.full(3, 0.1), np.full((1, 1), 0.05)
MODEL = DocumentModel(ALPHA, BETA)
METHODS = {
    "sem": OnlineEM(step_size=power(1.0, 0.7, 3.0), batch_size=7),
    "sem-vr": VarianceReducedEM(step_size=0.3, batch_size=7),
    "sem-vr, short epochs": VarianceReducedEM(step_size=0.3, batch_size=5, epoch_length=4),
}


def counts(n=120, n_words=40, empty=1000):
    """Return counts of documents of three topics; each ``empty``-th is empty."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(n_words, 0.2), size=3)
    found = np.array([rng.multinomial(m, topics[m % 3]) for m in rng.integers(0, 40, n)], float)
    found[::empty] = 0.0
    return sp.csr_array(found)


def pair(X=None, weighted=True):
    """Return documents on the device, and the same on the CPU."""
    X = counts() if X is None else X
    weight = np.random.default_rng(1).random(X.shape[0]) + 0.5 if weighted else None
    return DeviceDocuments(X, weight, device=NAME), Documents(X, weight)


def theta0(seed=0):
    return DocumentTheta(np.random.default_rng(seed).dirichlet(np.ones(40), size=3).T.copy())


def follow(documents, method, model=MODEL, **options):
    """Return s after each of the recorded iterations, and the result."""
    s0 = (theta0().word_topic * (documents.total / documents.total_weight / 3)).ravel()
    options = {"s0": s0, "n_iter": 60, "seed": 2, "record_every": 1} | options
    path = []
    return path, swiftem.run(
        model, documents, method, **options, callback=lambda at: path.append(at.s.copy())
    )


@pytest.fixture(autouse=True)
def stretches(monkeypatch):
    """Several batches in a stretch, and several stretches in a run."""
    monkeypatch.setattr(lane, "MOST_ENTRIES", 1000)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_iterations_equal_the_reference(name, weighted):
    there, here = pair(weighted=weighted)
    path, found = follow(there, METHODS[name])
    expected, wanted = follow(here, METHODS[name], kernels="reference")
    assert len(path) == len(expected) == 61
    np.testing.assert_allclose(path, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.doc_topic, here.doc_topic, rtol=1e-9, atol=1e-15)
    assert (found.passes, found.rejected) == (wanted.passes, wanted.rejected)
    assert np.abs(there.doc_topic - 1 / 3).max() > 0.1


@pytest.mark.parametrize("name", ["sem", "sem-vr"])
def test_two_hundred_iterations_without_records(name):
    there, here = pair()
    _, found = follow(there, METHODS[name], n_iter=200, record_every=200)
    _, wanted = follow(here, METHODS[name], n_iter=200, record_every=200, kernels="reference")
    np.testing.assert_allclose(found.s, wanted.s, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.theta.word_topic, wanted.theta.word_topic, rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("beta", [np.zeros((1, 1)), np.random.default_rng(3).random((3, 40))])
def test_other_priors(name, beta):
    there, here = pair()
    model = DocumentModel(ALPHA, beta)
    _, found = follow(there, METHODS[name], model)
    _, wanted = follow(here, METHODS[name], model, kernels="reference")
    np.testing.assert_allclose(found.theta.word_topic, wanted.theta.word_topic, rtol=1e-9, atol=1e-15)


def test_steps_out_of_the_domain_are_rejected():
    """Half of the documents are empty: a batch of one leaves nothing at a step of one."""
    there, here = pair(counts(empty=2))
    method, draws = OnlineEM(step_size=1.0), np.arange(60)
    path, found = follow(there, method, draws=draws)
    expected, wanted = follow(here, method, draws=draws, kernels="reference")
    assert found.rejected == wanted.rejected >= 30
    np.testing.assert_allclose(path, expected, rtol=1e-9, atol=1e-12)


def test_differences_that_take_a_topic_below_nothing():
    there, here = pair()
    method = VarianceReducedEM(step_size=0.9, batch_size=1)
    model = DocumentModel(np.full(3, 1e-3), np.zeros((1, 1)))
    _, found = follow(there, method, model)
    _, wanted = follow(here, method, model, kernels="reference")
    assert found.rejected == wanted.rejected > 0
    np.testing.assert_allclose(found.s, wanted.s, rtol=1e-6, atol=1e-9)


def test_theta_that_is_not_the_m_step_is_used_until_the_first_step():
    there, here = pair(counts(empty=2))
    options = {"theta0": theta0(5), "n_iter": 6, "draws": np.arange(6)}
    found, _ = follow(there, OnlineEM(step_size=1.0), **options)
    expected, _ = follow(here, OnlineEM(step_size=1.0), **options, kernels="reference")
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found[0], found[1])  # the first document is empty


@pytest.mark.parametrize("name", METHODS)
def test_records_and_parts_of_a_run_change_no_bit(name, monkeypatch):
    method = METHODS[name]
    _, whole = follow(pair()[0], method, record_every=60)
    _, often = follow(pair()[0], method)
    np.testing.assert_array_equal(often.s, whole.s)
    monkeypatch.setattr(lane, "MOST_ENTRIES", 1)
    _, single = follow(pair()[0], method, record_every=60)
    np.testing.assert_array_equal(single.s, whole.s)
    _, half = follow(pair()[0], method, n_iter=23)
    given = {"theta0": half.theta, "s0": half.s, "state": half.state, "n_iter": 37, "seed": None}
    there, _ = pair()
    _, rest = follow(there, method, **given)
    np.testing.assert_array_equal(rest.s, whole.s)
    assert (rest.passes, rest.rejected) == (whole.passes, whole.rejected)


def test_full_sums_equal_the_reference():
    there, here = pair(counts(empty=5))
    places = np.random.default_rng(0).dirichlet(np.ones(3), size=120)
    after, expected = places.copy(), places.copy()
    found, spent = there.sums(after, theta0().word_topic, ALPHA, 5, 1e-2)
    wanted, evaluations = here.sums(expected, theta0().word_topic, ALPHA, 5, 1e-2)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(after, expected, rtol=1e-10, atol=1e-13)
    assert spent == evaluations


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("options", [{"method": "sem"}, {"method": "sem-vr"}, {}])
def test_a_fit_makes_no_batch_on_the_cpu(options, monkeypatch):
    X, options = counts(700), {"n_components": 3, "random_state": 0, "max_iter": 12, **options}
    expected = swiftem.PLSA(**options, device="cpu").fit(X)
    advanced, lanes = DeviceDocumentLane.advance, []
    monkeypatch.setattr(
        DeviceDocumentLane, "advance", lambda lane, *given: lanes.append(lane) or advanced(lane, *given)
    )
    with monkeypatch.context() as patch:
        patch.setattr(Documents, "take", lambda *_: pytest.fail("a batch of documents is on the CPU"))
        fitted = swiftem.PLSA(**options, device=ON).fit(X)
        again = swiftem.PLSA(**options, device=ON).fit(X)
    assert lanes
    np.testing.assert_allclose(fitted.components_, expected.components_, atol=1e-4)
    np.testing.assert_allclose(fitted.doc_topic_, expected.doc_topic_, atol=2e-3)
    assert fitted.n_iter_ == expected.n_iter_
    assert fitted.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-5)
    np.testing.assert_array_equal(fitted.components_, again.components_)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("method", ["sem", "sem-vr"])
def test_a_fit_resumes_with_the_same_bits(tmp_path, monkeypatch, method):
    X = counts(200)
    options = {"n_components": 3, "method": method, "random_state": 0, "device": ON, "max_iter": 60}
    whole = swiftem.PLSA(**options).fit(X)
    options |= {"checkpoint": tmp_path / "fit", "checkpoint_every": 1}
    advance, calls = DeviceDocumentLane.advance, []

    def stopped(lane, now, stop):
        calls.append(now.k)
        if len(calls) == 4:
            raise OSError("killed")
        advance(lane, now, stop)

    with monkeypatch.context() as patch:
        patch.setattr(DeviceDocumentLane, "advance", stopped)
        with pytest.raises(OSError, match="killed"):
            swiftem.PLSA(**options).fit(X)
    resumed = swiftem.PLSA(**options, resume=True).fit(X)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed.doc_topic_, whole.doc_topic_)


@pytest.mark.parametrize(
    "options", [{"method": "fiem"}, {"method": "iem"}, {"method": "sem", "sampling": "tokens"}]
)
def test_methods_of_tokens_are_refused(options):
    with pytest.raises(
        ValueError, match=rf"'sem' or 'sem-vr' by documents, for device='{ON}', got .* drawn on the CPU"
    ):
        swiftem.PLSA(3, device=ON, **options).fit(counts())


def check(found):
    for sizes, options, (statistics, places, *counters, rejected) in found:
        assert statistics < (1e-6 if options["n_iter"] < 200 else 1e-5), (sizes, options, statistics)
        assert places < 1e-5, (sizes, options, places)
        assert not any(counters), (sizes, options, counters)
        assert (rejected > 0) == (options.get("step") == 1.0)


def test_the_kernels():
    pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
    check(lines_of(SCRIPT, 0, 1, 2))


@pytest.mark.slow
def test_two_hundred_iterations_of_the_kernels():
    pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
    check(lines_of(SCRIPT, 3, 4, 5))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a GPU is needed")
@pytest.mark.parametrize("tolerance", [0.0, None])
@pytest.mark.parametrize("name", ["sem", "sem-vr"])
def test_two_hundred_iterations_on_a_gpu(name, tolerance, monkeypatch):
    """Kernels in float32 and compiled loops in float64: statistics to 1e-5, the same bits every time.

    With a tolerance of E-steps some documents stop a round earlier or later, which the bound allows for.
    """
    monkeypatch.setattr(lane, "MOST_ENTRIES", 1 << 21)
    rng = np.random.default_rng(0)
    X = sp.random_array((5000, 1000), density=0.03, rng=rng, format="csr")
    X.data = np.ceil(3.0 * X.data)
    options = {} if tolerance is None else {"tolerance": tolerance}
    model, method = DocumentModel(np.full(50, 0.1), BETA, **options), {
        "sem": OnlineEM(step_size=power(1.0, 0.7, 10.0), batch_size=256),
        "sem-vr": VarianceReducedEM(step_size=0.2, batch_size=256),
    }[name]  # fmt: skip
    s0 = rng.dirichlet(np.ones(1000), size=50).T.ravel()
    found = []
    for documents in (*(DeviceDocuments(X, None, np.float32, device=NAME) for _ in range(3)), Documents(X)):
        found.append(swiftem.run(model, documents, method, n_iter=200, seed=1, s0=s0).s)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    most = 1e-4 if tolerance is None else 1e-5
    assert np.linalg.norm(found[0] - found[3]) < most * np.linalg.norm(found[3])
