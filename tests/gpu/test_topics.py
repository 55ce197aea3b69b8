"""pLSA on a device: passes compared with the reference in NumPy, fits with those on the CPU."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_problems import DEVICE, ON, lines_of, torch
from typer.testing import CliRunner

import swiftem
from swiftem.cli.app import app
from swiftem.topics.compute import torch as passes
from swiftem.topics.compute.corpus import DeviceDocuments, SmallDocuments
from swiftem.topics.compute.numpy import decorrelated, make_room, with_background
from swiftem.topics.compute.torch import DeviceTopics
from swiftem.topics.compute.torch import m_step as device_m_step
from swiftem.topics.documents import m_step, totals_of
from swiftem.topics.fit import TopicFit

SCRIPT = Path(__file__).with_name("topics_against_passes.py")
NAME = DEVICE.removeprefix("torch:")


def corpus(n=300, n_words=60, n_topics=4, seed=0, length=40):
    """Return counts of documents with topics that differ; the first document is empty."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    shares = rng.dirichlet(np.full(n_topics, 0.3), size=n) @ topics
    found = np.array(
        [rng.multinomial(m, p) for m, p in zip(rng.poisson(length, size=n), shares, strict=True)]
    )
    found[0] = 0
    return sp.csr_array(found.astype(float))


def start(documents, n_topics, seed=1):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_topics), size=documents.n), rng.dirichlet(
        np.ones(documents.n_words), size=n_topics
    )


@pytest.mark.parametrize("kind", ["plain", "leave one out"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_pass_equals_the_reference(monkeypatch, kind, weighted, rows):
    monkeypatch.setattr(passes, "SEGMENT", 8)
    monkeypatch.setattr(passes, "BLOCK", 4 * 4 * 100)
    monkeypatch.setattr(passes, "NUMBERS", 1000)
    X, rng = corpus(), np.random.default_rng(2)
    X.data[::3] *= 0.3
    weight = rng.uniform(0.0, 3.0, size=X.shape[0]) if weighted else None
    alpha = np.linspace(0.1, 0.4, 4)
    beta = rng.uniform(0.01, 0.1, size=((1, 1), (1, 60), (4, 60))[rows])
    here, wanted = DeviceDocuments(X, weight, device=NAME), SmallDocuments(X, weight)
    shares, topics = start(here, 4)
    for _ in range(3):
        found, expected = shares.copy(), shares.copy()
        if kind == "plain":
            one, value = here.em_pass(found, topics, alpha)
            other, expected_value = wanted.em_pass(expected, topics, alpha)
        else:
            totals = totals_of(100.0 * topics, beta)
            one, value = here.em_pass(found, topics, alpha, (totals, beta))
            other, expected_value = wanted.em_pass(expected, topics, alpha, (totals, beta))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-14)
        assert value == pytest.approx(expected_value, rel=1e-13)
        shares, topics = found, m_step(one, beta)


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_folding_in_equals_the_reference(monkeypatch, tol):
    monkeypatch.setattr(passes, "SEGMENT", 8)
    X = corpus()
    here, wanted = DeviceDocuments(X, device=NAME), SmallDocuments(X)
    _, topics = start(here, 4)
    topics[:, :5] = 0.0  # impossible words
    found = here.fold_in(topics, np.full(4, 0.1), max_iter=30, tol=tol)
    expected = wanted.fold_in(topics, np.full(4, 0.1), max_iter=30, tol=tol)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("strength", [0.0, 30.0])
def test_steps_equal_those_in_numpy(background, strength):
    X, alpha, beta = corpus(), np.full(5, 0.1), np.full((1, 1), 0.05)
    wanted = SmallDocuments(X)
    shares, topics = start(wanted, 5)
    steps = DeviceTopics(
        DeviceDocuments(X, device=NAME).passes(alpha), beta, topics, shares, None, leave_one_out=True,
        background=background, decorrelation=strength,
    )  # fmt: skip
    expected, found = None, shares.copy()
    for number in range(4):
        is_first = background and number == 0
        value = steps.step(add_background=is_first)
        if expected is None:
            counts_of, wanted_value = wanted.em_pass(found, topics, alpha)
        else:
            totals = totals_of(expected, beta)
            counts_of, wanted_value = wanted.em_pass(found, topics, alpha, (totals, beta))
        if is_first:
            counts_of, place = with_background(counts_of)
            make_room(found, place)
        expected = decorrelated(counts_of, m_step(counts_of, beta), strength, background)
        topics = m_step(expected, beta)
        assert value == pytest.approx(wanted_value, rel=1e-12)
    for part, wanted_part in zip(steps.read(), (topics, found, expected), strict=True):
        np.testing.assert_allclose(part, wanted_part, rtol=1e-10, atol=1e-13)


def test_a_topic_without_counts_is_uniform():
    given = torch.tensor([[3.0, 0.0], [1.0, 0.0]], dtype=torch.float64, device=NAME)
    found = device_m_step(given, given.new_zeros((1, 2))).cpu().numpy()
    np.testing.assert_array_equal(found, [[0.75, 0.5], [0.25, 0.5]])


def test_documents_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    with pytest.raises(ValueError, match="device must be 'cpu' for 60 words and 4 topics: they need"):
        DeviceDocuments(corpus(), device="cuda:0").passes(np.ones(4))


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize(
    "options",
    [
        {"method": "em"},
        {"method": "em", "tol": 1e-7},
        {"method": "em", "alpha": "learn", "max_iter": 300},
    ],
)
def test_a_fit_is_that_of_the_cpu(options):
    X = corpus(700, 120, 9)
    options = {"n_components": 9, "random_state": 0, "max_iter": 60, **options}
    fitted = swiftem.PLSA(**options, device=ON).fit(X)
    expected = swiftem.PLSA(**options, device="cpu").fit(X)
    assert abs(fitted.n_iter_ - expected.n_iter_) <= 1
    np.testing.assert_allclose(fitted.components_, expected.components_, atol=1e-4)
    np.testing.assert_allclose(fitted.doc_topic_, expected.doc_topic_, atol=2e-3)
    assert fitted.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-5)
    assert fitted.perplexity(X) == pytest.approx(expected.perplexity(X), rel=1e-3)
    assert fitted.score(X) == pytest.approx(expected.score(X), rel=1e-5)
    np.testing.assert_allclose(fitted.transform(X), expected.transform(X), atol=2e-3)
    np.testing.assert_array_equal(fitted.components_, swiftem.PLSA(**options, device=ON).fit(X).components_)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("options", [{}, {"background": False, "decorrelation": 0.0}])
def test_a_default_fit_explains_new_documents_as_well_as_that_of_the_cpu(options):
    """It has no first reading by sem, and is another fit."""
    X, ratios = corpus(2400, 200, 9), []
    for seed in range(3):
        fits = [swiftem.PLSA(9, random_state=seed, device=on, **options).fit(X[:1800]) for on in (ON, "cpu")]
        ratios.append(fits[0].perplexity(X[1800:]) / fits[1].perplexity(X[1800:]))
    assert np.mean(ratios) < 1.005


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("method", ["em", "auto"])
def test_a_fit_resumes_with_the_same_bits(tmp_path, monkeypatch, method):
    """The default has a momentum, whose state is stored."""
    X = corpus(520)
    options = {"n_components": 4, "method": method, "random_state": 0, "device": ON, "tol": 0.0}
    options["max_iter"] = 12
    whole = swiftem.PLSA(**options).fit(X)
    saved, passes_saved = TopicFit.kept, []

    def kept(fit):
        passes_saved.append(fit.passes)
        if len(passes_saved) == 6:
            raise OSError("killed")
        return saved(fit)

    with monkeypatch.context() as patch:
        patch.setattr(TopicFit, "kept", kept)
        with pytest.raises(OSError, match="killed"), swiftem.checkpoint(tmp_path / "fit", every=1):
            swiftem.PLSA(**options).fit(X)
    with swiftem.checkpoint(tmp_path / "fit", every=1, resume=True):
        resumed = swiftem.PLSA(**options).fit(X)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed.doc_topic_, whole.doc_topic_)


def test_without_a_gpu_the_sentence_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(
        ValueError, match="device must be 'cpu' here, got 'cuda': PyTorch finds no CUDA device"
    ):
        swiftem.PLSA(2, device="cuda").fit(corpus())
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got 'gpu'"):
        swiftem.PLSA(2, device="gpu").fit(corpus())


def test_the_command_takes_a_device(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array([f"{first}{second}ord" for first in "abcdef" for second in "klmnop"])
    texts = [" ".join(rng.choice(np.roll(words, 12 * (number % 3))[:12], size=30)) for number in range(60)]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    given = ["topics", str(tmp_path / "texts.txt"), "--topics", "3", "--stop-words", "none"]
    out = tmp_path / "out"
    found = CliRunner().invoke(app, [*given, "--out", str(out), "--device", ON])
    assert found.exit_code == 0, found.output
    assert f"--device {ON}" in (out / "topics.html").read_text()
    given = ["topics", str(tmp_path / "texts.txt"), "--apply", str(out / "model.swiftem")]
    found = CliRunner().invoke(app, [*given, "--out", str(tmp_path / "again"), "--device", ON])
    assert found.exit_code == 0, found.output


def check(found):
    for sizes, options, errors in found:
        assert max(errors) < 2e-5, (sizes, options, errors)
        assert max(errors[:3]) < 2e-7, (sizes, options, errors)


def test_the_kernels():
    pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
    check(lines_of(SCRIPT, 1, 3))


@pytest.mark.slow
def test_all_kernels():
    pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
    found = lines_of(SCRIPT)
    assert len(found) == 8
    check(found)
