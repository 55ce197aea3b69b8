"""Compare the kernels of pLSA in Triton with the passes in PyTorch; prints the largest errors as JSON.

``python tests/gpu/topics_against_passes.py``: on a GPU, or with ``TRITON_INTERPRET=1`` on the CPU.
"""

import json
import sys

import numpy as np
import scipy.sparse as sp
import torch

from swiftem.topics.compute import torch as passes
from swiftem.topics.compute.corpus import DeviceDocuments
from swiftem.topics.compute.torch import (
    DeviceCounts,
    StreamedPasses,
    TorchPasses,
    host_blocks,
    left_out_of,
    m_step,
)
from swiftem.topics.compute.triton import KernelPasses

DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"


def corpus(n, n_words, n_topics, weighted, seed=0):
    """Return documents of very different lengths, some of them empty, and some words that never occur."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    length = np.minimum(rng.lognormal(np.log(20.0), 1.0, size=n), 2000).astype(int) * (np.arange(n) % 7 > 0)
    rows = [rng.multinomial(m, rng.dirichlet(np.full(n_topics, 0.3)) @ topics) for m in length]
    dense = np.array(rows, dtype=float)
    dense[:, :2] = 0.0
    dense[dense > 0] *= rng.choice([1.0, 1.0, 0.4], size=int((dense > 0).sum()))
    weight = rng.uniform(0.2, 3.0, size=n) if weighted else None
    return DeviceDocuments(sp.csr_array(dense), weight, device=DEVICE)


def relative(found, wanted):
    """Return the relative error of an array or tensor."""
    return float(torch.linalg.norm(found.double().to(DEVICE) - wanted) / torch.linalg.norm(wanted))


def case(
    n, n_words, n_topics, *, leave_out=False, weighted=False, floors=False, segment=256, block=1 << 25,
    blocks=(),
):  # fmt: skip
    """Return errors of a pass (topics of documents, counts, log-likelihood) and of folding in."""
    passes.SEGMENT, passes.BLOCK = segment, block
    documents = corpus(n, n_words, n_topics, weighted)
    alpha = np.linspace(0.05, 0.2, n_topics)
    rng = np.random.default_rng(1)
    before = torch.from_numpy(rng.gamma(0.3, size=(n_words, n_topics)) * 10.0).to(DEVICE)
    beta = torch.from_numpy(rng.uniform(0.01, 0.1, size=(n_words if floors else 1, n_topics))).to(DEVICE)
    topics = m_step(before, beta)
    left_out = left_out_of(before.sum(dim=0) + beta.expand_as(before).sum(dim=0), beta) if leave_out else None
    start = rng.dirichlet(np.full(n_topics, 0.5), size=n)
    exact = TorchPasses(DeviceCounts.of(documents, n_topics, DEVICE, torch.float64), alpha)
    if blocks:
        device = torch.device(DEVICE)
        parts = host_blocks(documents, blocks, n_topics, device, torch.float32)
        fast = StreamedPasses(parts, alpha, device, KernelPasses)
    else:
        fast = KernelPasses(DeviceCounts.of(documents, n_topics, DEVICE, torch.float32), alpha)
    wanted = exact.em(exact.shares(start), topics, left_out)
    results = []
    for _ in range(3):
        found = fast.em(fast.shares(start), topics, left_out)
        results.append((fast.array(found.doc_topic), found.by_word.cpu().numpy().copy()))
    for again in results[1:]:
        assert all(map(np.array_equal, again, results[0])), "bits differ from run to run"
    errors = [
        relative(found.doc_topic[:, :n_topics], wanted.doc_topic),
        relative(found.by_word, wanted.by_word),
        abs(float(found.log_likelihood / wanted.log_likelihood) - 1.0),
    ]
    assert not found.doc_topic[:, n_topics:].any()
    uniform = np.full((n, n_topics), 1.0 / n_topics)
    one = exact.fold(topics, exact.shares(uniform), 12, 0.0)
    other = [part.to(DEVICE) for part in fast.fold(topics, fast.shares(uniform), 12, 0.0)]
    errors += [float((other[0][:, :n_topics] - one[0]).abs().max()), relative(other[1], one[1])]
    return errors


CASES = [
    ((24, 40, 3), {"segment": 8}),
    ((24, 40, 10), {"leave_out": True, "segment": 8}),
    ((24, 70, 20), {"leave_out": True, "weighted": True, "floors": True, "segment": 16}),
    ((24, 30, 5), {"weighted": True, "segment": 4, "block": 4 * 5 * 16}),
    ((24, 60, 50), {"leave_out": True, "floors": True}),
    ((24, 40, 300), {"leave_out": True}),
    ((24, 50, 1), {}),
    ((24, 40, 5), {"leave_out": True, "weighted": True, "segment": 8, "blocks": (0, 9, 10, 24)}),
]

if __name__ == "__main__":
    for number in map(int, sys.argv[1:] or range(len(CASES))):
        sizes, options = CASES[number]
        print(json.dumps([sizes, options, case(*sizes, **options)]))
        sys.stdout.flush()
