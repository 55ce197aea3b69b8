"""Passes of pLSA on a GPU: nonzero counts per second, and a default fit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import swiftem
from benchmarks.row import Row

__all__ = ["corpus", "topic_rows"]

WORDS = 50_000
GOALS = {10: 22e9, 50: 9e9, 200: 3.8e9}
"""Nonzero counts per second by number of topics."""
BLOCK = 1 << 18


def topic_rows(entries: int, repeats: int, queued: Any) -> Iterator[Row]:
    """Yield a row for each number of topics, of passes with and without leaving tokens out."""
    counts = corpus(entries)
    for n_topics, goal in GOALS.items():
        for leaves_out in (False, True):
            yield _pass(counts, n_topics, leaves_out, repeats, queued, None if leaves_out else goal)
    yield _fit(counts[: counts.shape[0] // 4], repeats)


def corpus(entries: int, n_words: int = WORDS, per_document: int = 110) -> Any:
    """Return counts: words by Zipf's law, lengths of documents lognormal, about so many nonzero counts."""
    import scipy.sparse as sp
    import torch

    made = torch.Generator(device="cuda").manual_seed(7)
    n = entries // per_document
    length = torch.exp(0.8 * torch.randn(n, device="cuda", generator=made))
    length = (length / length.mean() * per_document * 1.35).long().clamp(1, 5000)
    document = torch.repeat_interleave(torch.arange(n, device="cuda"), length)
    shares = 1.0 / (torch.arange(n_words, device="cuda", dtype=torch.float64) + 2.7)
    ends = (shares / shares.sum()).cumsum(0)
    keys = []
    for part in document.split(50_000_000):
        drawn = torch.rand(len(part), device="cuda", dtype=torch.float64, generator=made)
        keys.append(part * n_words + torch.searchsorted(ends, drawn).clamp_(max=n_words - 1))
    key, count = torch.unique(torch.cat(keys), return_counts=True)
    key, count = key[:entries].cpu().numpy(), count[:entries].cpu().numpy()
    n = int(key[-1] // n_words) + 1
    begin = np.searchsorted(key, np.arange(n + 1) * n_words)
    return sp.csr_array(
        (count.astype(np.float64), (key % n_words).astype(np.int32), begin), shape=(n, n_words)
    )


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


def _fit(counts: Any, repeats: int) -> Row:
    """A fit by em of 50 topics, 50 passes, from random topics; the peer is the CPU, with all its cores."""
    from warnings import catch_warnings

    from sklearn.exceptions import ConvergenceWarning

    def seconds(device: str) -> float:
        model = swiftem.PLSA(
            50, method="em", background=True, decorrelation=30.0, max_iter=50, tol=0.0,
            precision="float32", random_state=0, device=device,
        )  # fmt: skip
        began = perf_counter()
        with catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(counts)
        return perf_counter() - began

    seconds("cuda")
    return Row(
        figure="gpu", model="pLSA, fit of 50 passes", method="em", setting="background, decorrelation",
        n=counts.nnz, d=f"{counts.shape[0]}+{WORDS}", components=50, b=counts.nnz, iterations=1,
        repeats=repeats, value=min(seconds("cuda") for _ in range(2)), unit="s", peer="CPU",
        peer_value=seconds("cpu"), compared="value",
    )  # fmt: skip
