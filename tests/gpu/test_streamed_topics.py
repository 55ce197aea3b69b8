"""Counts that are larger than a device's memory, or than its limit: blocks of documents."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_problems import DEVICE, ON, lines_of, torch
from sklearn.base import clone

import swiftem
from swiftem.core.checks import MemoryLimitError
from swiftem.topics.compute import torch as passes
from swiftem.topics.compute.corpus import DeviceDocuments
from swiftem.topics.compute.torch import DeviceTopics, StreamedPasses, bytes_needed
from swiftem.topics.documents import m_step

SCRIPT = Path(__file__).with_name("topics_against_passes.py")
NAME = DEVICE.removeprefix("torch:")
ALPHA, BETA = np.full(4, 0.1), np.full((1, 1), 0.05)


def counts(n=300, n_words=50):
    """Return counts of documents of four topics, some of them empty."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(n_words, 0.2), size=4)
    shares = rng.dirichlet(np.full(4, 0.2), size=n)
    rows = [
        rng.multinomial(m, share @ topics) for m, share in zip(rng.integers(0, 50, n), shares, strict=True)
    ]
    return sp.csr_array(np.array(rows, float))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small temporary arrays, so that a limit can be small too."""
    monkeypatch.setattr(passes, "NUMBERS", 40_000)
    monkeypatch.setattr(passes, "FAST_WORK", 0)


def limit(X, parts=5):
    """Return a limit that makes about so many blocks."""
    fixed, each = bytes_needed(DeviceDocuments(X, device=NAME), 4, 8)
    return fixed + int(each.sum()) // parts


def pair(weighted=True):
    """Return documents that do not fit, and the same that do."""
    X = counts()
    weight = np.random.default_rng(1).random(X.shape[0]) + 0.5 if weighted else None
    found = DeviceDocuments(X, weight, device=NAME, limit=limit(X))
    assert isinstance(found.passes(ALPHA), StreamedPasses)
    assert 5 <= len(found.passes(ALPHA).blocks) <= 7
    return found, DeviceDocuments(X, weight, device=NAME)


def start(documents, seed=0):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(4), size=documents.n)
    return shares, rng.dirichlet(np.ones(documents.n_words), size=4)


@pytest.mark.parametrize("weighted", [False, True])
def test_passes_equal_those_of_counts_that_fit(weighted):
    blocks, whole = pair(weighted)
    shares, topics = start(whole)
    totals = np.full(4, 500.0)
    for _ in range(3):
        found, expected = shares.copy(), shares.copy()
        one, value = blocks.em_pass(found, topics, ALPHA)
        other, wanted = whole.em_pass(expected, topics, ALPHA)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(found, expected)
        assert value == pytest.approx(wanted, rel=1e-13)
        one, _ = blocks.em_pass(found, topics, ALPHA, (totals, BETA))
        other, _ = whole.em_pass(expected, topics, ALPHA, (totals, BETA))
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(found, expected)
        shares, topics = found, m_step(one, BETA)
    found, expected = (documents.fold_in(topics, ALPHA, tol=1e-6) for documents in (blocks, whole))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_another_alpha():
    blocks, whole = pair()
    _, topics = start(whole)
    for alpha in (ALPHA, np.linspace(0.1, 0.9, 4)):
        np.testing.assert_array_equal(blocks.fold_in(topics, alpha)[0], whole.fold_in(topics, alpha)[0])


def test_steps_with_a_background():
    found = []
    for documents in pair():
        shares, topics = start(documents)
        steps = DeviceTopics(
            documents.passes(ALPHA),
            BETA,
            topics,
            shares,
            None,
            leave_one_out=True,
            background=True,
            decorrelation=30.0,
        )
        values = [steps.step(add_background=number == 0) for number in range(4)]
        found.append((values, *steps.read()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("options", [{}, {"method": "em", "tol": 1e-7}, {"method": "sem-vr"}])
def test_a_fit_within_a_limit(options):
    X = counts(520)
    options = {"n_components": 4, "random_state": 0, "max_iter": 8, "device": ON, **options}
    expected = swiftem.PLSA(**options).fit(X)
    model = swiftem.PLSA(**options)
    with swiftem.config_context(device_memory_limit=limit(X)):
        fitted = model.fit(X)
        again = clone(model).fit(X)
    np.testing.assert_allclose(fitted.components_, expected.components_, atol=1e-6)
    np.testing.assert_allclose(fitted.doc_topic_, expected.doc_topic_, atol=1e-5)
    np.testing.assert_allclose(fitted.transform(X), expected.transform(X), atol=1e-5)
    assert fitted.n_iter_ == expected.n_iter_
    np.testing.assert_array_equal(again.components_, fitted.components_)


def test_a_limit_that_is_too_small():
    wrong = r"device_memory_limit must be at least .* for 3 topics of 50 words, got 1 MB"
    with pytest.raises(MemoryLimitError, match=wrong), swiftem.config_context(device_memory_limit=1000):
        swiftem.PLSA(3, device=ON).fit(counts())
    with pytest.raises(ValueError, match="device_memory_limit must be"):
        swiftem.set_config(device_memory_limit="much")


def test_blocks_of_kernels():
    pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
    for sizes, options, errors in lines_of(SCRIPT, 7):
        assert max(errors) < 2e-5, (sizes, options, errors)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="a GPU is needed")
def test_the_limit_on_a_gpu(monkeypatch):
    """Kernels in blocks: the memory of the device stays below the limit, and bits are the same every time."""
    monkeypatch.setattr(passes, "FAST_WORK", 64 << 20)
    rng = np.random.default_rng(0)
    X = sp.random_array((60_000, 2000), density=0.03, rng=rng, format="csr")
    X.data = np.ceil(3.0 * X.data)
    options = {"n_components": 50, "random_state": 0, "device": "cuda", "max_iter": 10, "tol": 1e-3}
    expected = swiftem.PLSA(**options).fit(X)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, most = torch.cuda.memory_allocated(), 180 << 20
    with swiftem.config_context(device_memory_limit=most):
        fitted = swiftem.PLSA(**options).fit(X)
        assert torch.cuda.max_memory_allocated() - before < most
        again = swiftem.PLSA(**options).fit(X)
    np.testing.assert_array_equal(fitted.components_, again.components_)
    np.testing.assert_allclose(fitted.components_, expected.components_, atol=1e-4)
