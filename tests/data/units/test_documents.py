"""Topics of documents in units: stateless, and about as good as em on the documents in memory."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import swiftem
from swiftem.methods import OnlineEM
from swiftem.topics.compute import units as documents
from swiftem.topics.compute.units import UnitDocuments

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
WORDS = RNG.dirichlet(np.full(60, 0.08), size=5)
SHARES = RNG.dirichlet(np.full(5, 0.15), size=900)
COUNTS = np.array([RNG.multinomial(40, p) for p in SHARES @ WORDS]).astype(float)
TRAIN, TEST = COUNTS[:700], COUNTS[700:]


def dense():
    return da.from_array(TRAIN, chunks=(150, -1))


def delayed():
    edges = [0, 100, 100, 450, 700]  # one unit is empty
    return [dask.delayed(sparse.csr_array)(TRAIN[a:b]) for a, b in pairwise(edges)]


START = WORDS + 0.3 * RNG.dirichlet(np.ones(60), size=5)


@pytest.mark.parametrize("method", ["em", "sem"])
@pytest.mark.parametrize("collection", [dense, delayed])
def test_perplexity_is_that_of_em_in_memory(method, collection):
    local = swiftem.PLSA(5, method="em", init=START, random_state=0).fit(TRAIN)
    units = swiftem.PLSA(5, method=method, init=START, random_state=0).fit(collection())
    assert units.perplexity(TEST) < 1.005 * local.perplexity(TEST)
    assert units.method_ == method
    assert not hasattr(units, "doc_topic_")
    assert units.score(collection()) == pytest.approx(units.score(TRAIN), rel=1e-10)
    np.testing.assert_allclose(units.components_.sum(axis=1), 1.0)


def test_auto_is_em_that_leaves_tokens_out():
    local = swiftem.PLSA(5, random_state=0).fit(TRAIN)
    units = swiftem.PLSA(5, random_state=0).fit(dense())
    assert units.perplexity(TEST) < 1.01 * local.perplexity(TEST)


@pytest.mark.parametrize("collection", [dense, delayed])
def test_transform_is_lazy(collection):
    units = swiftem.PLSA(5, method="em", random_state=0).fit(collection())
    shares = units.transform(collection())
    assert isinstance(shares, da.Array)
    np.testing.assert_allclose(shares.compute(), units.transform(TRAIN), atol=1e-12)


def test_sparse_chunks_and_weights():
    weight = RNG.integers(0, 3, len(TRAIN)).astype(float)
    options = {"method": "em", "init": START, "max_iter": 5, "tol": 0.0}
    chunks = dense().map_blocks(sparse.csr_array)
    with pytest.warns(UserWarning, match="did not converge"):
        one = swiftem.PLSA(5, **options).fit(chunks, sample_weight=da.from_array(weight, chunks=150))
    with pytest.warns(UserWarning, match="did not converge"):
        other = swiftem.PLSA(5, **options).fit(da.from_array(np.repeat(TRAIN, weight.astype(int), axis=0)))
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_batches_are_weighted_as_if_documents_were_repeated():
    rng = np.random.default_rng(1)
    parts = np.array_split(TRAIN, 7)
    weights = [rng.integers(0, 4, len(part)).astype(float) for part in parts]
    options = {"method": OnlineEM(batch_size=2), "init": START, "max_iter": 4, "tol": 0.0, "random_state": 0}
    one = swiftem.PLSA(5, **options).fit(
        [dask.delayed(part) for part in parts], sample_weight=[dask.delayed(weight) for weight in weights]
    )
    repeated = [
        np.repeat(part, weight.astype(int), axis=0) for part, weight in zip(parts, weights, strict=True)
    ]
    two = swiftem.PLSA(5, **options).fit([dask.delayed(part) for part in repeated])
    np.testing.assert_allclose(one.components_, two.components_, rtol=1e-9, atol=1e-12)
    plain = swiftem.PLSA(5, **options).fit([dask.delayed(part) for part in parts])
    assert np.abs(plain.components_ - one.components_).max() > 1e-3


@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_a_batch_stands_for_all_documents_by_their_weights(monkeypatch):
    """A step of size 1 forgets all but the last batch: its counts, times all tokens over its own."""
    parts = np.array_split(TRAIN, 6)
    weights = [np.full(len(part), 0.5 + 7.0 * number) for number, part in enumerate(parts)]
    weights[4][::2] = 0.0
    steps, real = {}, documents.unit_counts

    def recorded(topics, *given):
        found = real(topics, *given)
        steps.setdefault(topics.tobytes(), (topics, []))[1].append(found[0].T)
        return found

    monkeypatch.setattr(documents, "unit_counts", recorded)
    options = {"method": OnlineEM(1.0, 2), "init": START, "max_iter": 4, "tol": 0.0}
    model = swiftem.PLSA(5, beta=3.0, random_state=0, **options).fit(
        [dask.delayed(part) for part in parts], sample_weight=[dask.delayed(weight) for weight in weights]
    )
    tokens = np.concatenate(weights) @ TRAIN.sum(axis=1)
    *batches, (last, certificate) = steps.values()
    assert len(certificate) == 6
    np.testing.assert_array_equal(last, model.components_)
    assert max(len(counts) for _, counts in batches) == 2
    for (_, counts), (topics, _) in zip(batches, [*batches[1:], (last, None)], strict=True):
        expected = sum(counts) * (tokens / sum(counts).sum()) + 3.0
        np.testing.assert_allclose(topics, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


WEIGHTS = [RNG.integers(0, 4, size).astype(float) for size in (100, 350, 250)]


def unit_documents(weights=WEIGHTS):
    edges = np.concatenate([[0], np.cumsum([len(weight) for weight in WEIGHTS])])
    units = [sparse.csr_array(TRAIN[a:b]) for a, b in pairwise(edges)]
    return UnitDocuments(units, weights, is_small=lambda entries, documents: True)


def test_what_is_known_of_units():
    units, weight = unit_documents(), np.concatenate(WEIGHTS)
    assert units.n == 3
    assert units.n_documents == int((weight > 0).sum())
    assert units.total == weight @ TRAIN.sum(axis=1)
    assert units.weight.tolist() == [one.sum() for one in WEIGHTS]
    assert unit_documents(None).total == TRAIN.sum()


def test_a_sample_has_its_own_weights(monkeypatch):
    monkeypatch.setattr(documents, "SAMPLE", 60)
    few, weight = unit_documents().few, np.concatenate(WEIGHTS)
    assert 60 <= few.n <= 63
    of = {row.tobytes(): float(one) for row, one in zip(TRAIN, weight, strict=True)}
    assert [of[row.tobytes()] for row in few.matrix().toarray()] == few.weight.tolist()


def test_sums_in_groups_are_the_sums(monkeypatch):
    units, topics, alpha = unit_documents(), START / START.sum(axis=1, keepdims=True), np.full(5, 0.1)
    whole, _ = units.em_pass(None, topics, alpha)
    for groups in (2, 3):
        monkeypatch.setattr(documents, "MOST_BYTES", 8 * 60 * 5 * -(-3 // groups))
        counts, _ = units.em_pass(None, topics, alpha)
        np.testing.assert_allclose(counts, whole, rtol=1e-12)
    assert counts.sum() == pytest.approx(units.total)


def test_a_score_is_weighted():
    topics, alpha = START / START.sum(axis=1, keepdims=True), np.full(5, 0.1)
    whole = [
        unit_documents(weights).log_likelihood(topics, alpha, 50, 0.0)
        for weights in (WEIGHTS, [2.0 * one for one in WEIGHTS], None)
    ]
    assert whole[1] == pytest.approx(2.0 * whole[0], rel=1e-12)
    assert whole[2] != pytest.approx(whole[0], rel=0.1)


def test_a_killed_fit_resumes_to_the_same_bits(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def fit():
        with swiftem.checkpoint(tmp_path / "kept", every=1, resume="auto"):
            return swiftem.PLSA(5, method="em", random_state=0).fit(dense())

    whole = swiftem.PLSA(5, method="em", random_state=0).fit(dense())
    calls, real = [], documents.unit_counts

    def killed(*given):
        calls.append(1)
        if len(calls) == 13:
            raise Killed
        return real(*given)

    monkeypatch.setattr(documents, "unit_counts", killed)
    with pytest.raises(Killed):
        fit()
    monkeypatch.undo()
    assert np.array_equal(fit().components_, whole.components_)


@pytest.mark.parametrize(
    ("options", "make", "said"),
    [
        ({}, lambda: -dense(), "unit 0 of X must not be negative"),
        ({}, lambda: dense() * 0, "at least one token"),
        ({}, lambda: dense().rechunk((150, 30)), r"give X.rechunk\(\{1: -1\}\)"),
        ({}, lambda: [dask.delayed(TRAIN), dask.delayed(TRAIN[:, :9])], "same words in all units"),
        ({}, lambda: dense().astype(str), "numbers in every column"),
    ],
)
def test_documents_that_cannot_be_fitted(options, make, said):
    with pytest.raises((TypeError, ValueError), match=said):
        swiftem.PLSA(5, **options).fit(make())
