"""Passes of pLSA on a GPU: nonzero counts per second, and a default fit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import swiftem
from benchmarks.row import Row

__all__ = ["corpus", "topic_rows"]

WORDS = 50_000
GOALS = {10: 22e9, 50: 9e9, 200: 3.8e9}
"""Nonzero counts per second by number of topics."""
BLOCK = 1 << 18


def topic_rows(quick: bool, repeats: int, queued: Any) -> Iterator[Row]:
    """Yield rows of default fits, and of passes for each number of topics, with and without leaving out."""
    from benchmarks.gpu import place

    yield from _fits(quick)
    n_words = 300 if quick else WORDS
    counts = corpus(20_000 if quick else 10_000_000, n_words)
    if place()[1] == "cpu":
        return  # passes in float32 are kernels
    for n_topics, goal in GOALS.items():
        for leaves_out in (False, True):
            yield _pass(counts, n_topics, leaves_out, repeats, queued, None if leaves_out else goal)


def corpus(entries: int, n_words: int = WORDS, per_document: int = 110) -> Any:
    """Return counts: words by Zipf's law, lengths of documents lognormal, about so many nonzero counts."""
    import scipy.sparse as sp

    rng, n = np.random.default_rng(7), max(1, entries // per_document)
    length = np.exp(0.8 * rng.normal(size=n))
    length = np.clip(length / length.mean() * per_document * 1.35, 1, 5000).astype(int)
    shares = 1.0 / (np.arange(n_words) + 2.7)
    ends = np.cumsum(shares / shares.sum())
    word = np.minimum(np.searchsorted(ends, rng.random(length.sum())), n_words - 1)
    made = sp.coo_array((np.ones(len(word)), (np.repeat(np.arange(n), length), word)), shape=(n, n_words))
    return made.tocsr()


def topical_corpus(n: int, n_words: int, n_topics: int, length: int) -> Any:
    """Return counts of documents of topics."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    ends = np.cumsum(rng.dirichlet(np.full(n_words, 0.1), size=n_topics), axis=1)
    shares = np.cumsum(rng.dirichlet(np.full(n_topics, 0.3), size=n), axis=1)
    document = np.repeat(np.arange(n), rng.poisson(length, size=n))
    topic = (shares[document] < rng.random(len(document))[:, None]).sum(axis=1).clip(max=n_topics - 1)
    word = np.empty(len(topic), dtype=int)
    for k in range(n_topics):
        here = topic == k
        word[here] = np.searchsorted(ends[k], rng.random(here.sum())).clip(max=n_words - 1)
    return sp.coo_array((np.ones(len(word)), (document, word)), shape=(n, n_words)).tocsr()


def _fits(quick: bool) -> Iterator[Row]:
    """Yield a default fit of 20 topics, and folding in, on the device and on the CPU; and the perplexity."""
    from benchmarks.gpu import Size, place, row_of, seconds

    n, n_topics = (600, 4) if quick else (20_000, 20)
    counts = topical_corpus(n + n // 4, 300 if quick else 5_000, n_topics, 40 if quick else 100)
    seen, new = counts[:n], counts[n:]
    models = [swiftem.PLSA(n_topics, random_state=0, device=device) for device in (place()[0], "cpu")]
    first = seconds(lambda: models[0].fit(seen))
    fits = [seconds(lambda model=model: model.fit(seen)) for model in models]
    folds = [seconds(lambda model=model: model.transform(new)) for model in models]
    size = Size("pLSA", seen.nnz, seen.shape[1], n_topics)
    options = {"peer": "CPU, all cores", "d": f"{n}+{seen.shape[1]}"}
    setting = f"default fit, {models[0].n_iter_} passes; first call {first:.2f} s"
    yield row_of(size, fits[0], setting=setting, peer_value=fits[1], goal=0.5, **options)
    yield row_of(size, folds[0], setting=f"transform of {n // 4:,} documents", peer_value=folds[1], **options)
    found, expected = (model.perplexity(new) for model in models)
    options |= {"unit": "perplexity", "compared": "ratio", "goal": 1.005}
    yield row_of(size, found, setting="perplexity of new documents", peer_value=expected, **options)


def _pass(counts: Any, n_topics: int, leaves_out: bool, repeats: int, queued: Any, goal: float | None) -> Row:
    import torch

    from swiftem.topics.compute.corpus import DeviceDocuments
    from swiftem.topics.compute.torch import DeviceCounts, TorchPasses, left_out_of, m_step

    documents, alpha = DeviceDocuments(counts, None, np.float32, device="cuda:0"), np.full(n_topics, 0.1)
    passes: Any = documents.passes(alpha)
    made = torch.Generator(device="cuda").manual_seed(1)
    before = 100.0 * torch.rand(WORDS, n_topics, device="cuda", dtype=torch.float64, generator=made) ** 3
    beta = torch.full((1, n_topics), 0.05, device="cuda", dtype=torch.float64)
    totals = before.sum(dim=0) + len(before) * beta[0]
    topics, left_out = m_step(before, beta), left_out_of(totals, beta) if leaves_out else None
    start = np.random.default_rng(0).dirichlet(np.ones(n_topics), size=documents.n)
    state = passes.shares(start)
    found = passes.em(state.clone(), topics, left_out)
    part = counts[: 2_000_000 // 110]  # float64 takes long
    some = TorchPasses(
        DeviceCounts.of(DeviceDocuments(part, device="cuda:0"), n_topics, "cuda:0", torch.float64), alpha
    )
    exact = some.em(some.shares(start[: part.shape[0]]), topics, left_out).doc_topic
    error = float(
        torch.linalg.norm(found.doc_topic[: len(exact), :n_topics] - exact) / torch.linalg.norm(exact)
    )
    first = found.by_word.clone()
    if not torch.equal(passes.em(state.clone(), topics, left_out).by_word, first):
        raise AssertionError("bits differ from run to run")
    value = queued(partial(passes.em, state, topics, left_out), repeats)
    peer = queued(partial(eager, passes.counts, state[:, :n_topics].contiguous(), topics.float()), 1, 2)
    torch.cuda.empty_cache()
    what = "one token left out" if leaves_out else "plain"
    return Row(
        figure="gpu", model=f"pLSA, {counts.nnz / value:.1f} G nonzeros/s", method="em",
        setting=f"{what}, error {error:.0e}", n=counts.nnz, d=f"{documents.n}+{WORDS}", components=n_topics,
        b=counts.nnz, iterations=20, repeats=repeats, value=value, unit="ns/iteration",
        peer="torch, float32", peer_value=peer, compared="value",
        goal=None if goal is None else 1e9 * counts.nnz / goal,
    )  # fmt: skip


def eager(counts: Any, doc_topic: Any, word_topic: Any) -> tuple[Any, Any]:
    """Return the sums of a plain pass by PyTorch's own operations, in float32, with atomic additions."""
    import torch

    side = counts.by_document
    document = torch.repeat_interleave(side.row.long(), side.begin.diff())
    by_document, by_word = torch.zeros_like(doc_topic), torch.zeros_like(word_topic)
    for start in range(0, len(document), BLOCK):
        d, v = document[start : start + BLOCK], side.other[start : start + BLOCK].long()
        joint = doc_topic[d] * word_topic[v]
        joint *= (side.counts[start : start + BLOCK] / joint.sum(dim=1))[:, None]
        by_document.index_add_(0, d, joint)
        by_word.index_add_(0, v, joint)
    return by_document, by_word
