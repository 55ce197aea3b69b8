"""Compare sem and sem-vr by documents, by kernels in Triton, with the plain form in NumPy; prints JSON.

``python tests/gpu/topic_batches_against_reference.py``: on a GPU, or with ``TRITON_INTERPRET=1`` on the CPU.
"""

import json
import sys

import numpy as np
import scipy.sparse as sp
import torch

import swiftem
from swiftem import methods
from swiftem.engine.documents import Documents
from swiftem.engine.gpu.topics import lane
from swiftem.engine.gpu.topics.counts import DeviceCounts
from swiftem.engine.gpu.topics.documents import DeviceDocuments
from swiftem.engine.gpu.topics.fast import FastPasses
from swiftem.models.documents import DocumentModel

DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
METHODS = {"sem": methods.OnlineEM, "sem-vr": methods.VarianceReducedEM}


def corpus(n, n_words, n_topics, seed=0):
    """Return counts of documents, some of them empty."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    length = rng.poisson(20, size=n) * (np.arange(n) % 3 > 0)
    rows = [rng.multinomial(m, rng.dirichlet(np.full(n_topics, 0.3)) @ topics) for m in length]
    return sp.csr_array(np.array(rows, dtype=float))


def on_device(X, weight, alpha):
    """Return documents whose passes are those of kernels, also on the CPU."""
    found = DeviceDocuments(X, weight, np.float32, device=DEVICE)
    found._passes[np.float32] = FastPasses(DeviceCounts(found, len(alpha), DEVICE, torch.float32), alpha)
    return found


def case(
    n, n_words, n_topics, *, method="sem", step=0.2, batch=4, n_iter=20, weighted=False, floors=False,
    entries=1 << 21, lows=False,
):  # fmt: skip
    """Return errors of statistics, places and counters after some iterations, and the rejected steps."""
    lane.MOST_ENTRIES = entries
    X, rng = corpus(n, n_words, n_topics), np.random.default_rng(1)
    weight = rng.uniform(0.3, 3.0, size=n) if weighted else None
    alpha = np.linspace(0.05, 0.2, n_topics)
    beta = rng.uniform(0.01, 0.1, size=(n_topics, n_words) if floors else (1, 1))
    s0 = rng.gamma(0.5, size=n_words * n_topics)
    if lows:  # a first step from θ that is not the M-step of s
        theta0 = DocumentModel(alpha, beta).bind(Documents(X, weight)).initial_theta(rng)
    made = METHODS[method](step_size=step, batch_size=batch)
    options = {"n_iter": n_iter, "seed": 1, "s0": s0, **({"theta0": theta0} if lows else {})}
    model = DocumentModel(alpha, beta)
    exact = Documents(X, weight)
    wanted = swiftem.run(model, exact, made, **options, kernels="reference")
    results = []
    for _ in range(3 if DEVICE != "cpu" else 1):
        there = on_device(X, weight, alpha)
        found = swiftem.run(model, there, made, **options)
        results.append((found.s, there.doc_topic))
    for again in results[1:]:
        assert all(map(np.array_equal, again, results[0])), "bits differ from run to run"
    return [
        float(np.linalg.norm(found.s - wanted.s) / np.linalg.norm(wanted.s)),
        float(np.abs(there.doc_topic - exact.doc_topic).max()),
        abs(found.passes / wanted.passes - 1.0),
        abs(found.rejected - wanted.rejected),
        wanted.rejected,
    ]


LONG = 200
CASES = [
    ((18, 8, 3), {"n_iter": 7, "batch": 3}),
    (
        (18, 9, 10),
        {"n_iter": 7, "batch": 3, "method": "sem-vr", "weighted": True, "floors": True, "entries": 60},
    ),
    ((12, 8, 5), {"n_iter": 8, "batch": 1, "step": 1.0, "weighted": True, "lows": True}),
    ((30, 12, 3), {"n_iter": LONG, "weighted": True}),
    ((30, 12, 20), {"n_iter": LONG, "method": "sem-vr", "step": 0.5}),
    ((40, 30, 50), {"n_iter": LONG, "floors": True, "batch": 8, "step": 0.05}),
]

if __name__ == "__main__":
    for number in map(int, sys.argv[1:] or range(len(CASES))):
        sizes, options = CASES[number]
        print(json.dumps([sizes, options, case(*sizes, **options)]))
        sys.stdout.flush()
