"""Compare iterations by the kernels in Triton with Algorithm 1 in NumPy; prints the errors as JSON.

``python tests/gpu/batches_against_iterations.py``: on a GPU, or with ``TRITON_INTERPRET=1`` on the CPU.
"""

import json
import sys

import numpy as np
import torch

from swiftem import methods, models
from swiftem.algorithm import run_problem
from swiftem.data import ArraySource
from swiftem.engine.gpu import lane
from swiftem.engine.gpu.fast.iterations import FastIterations
from swiftem.engine.gpu.fast.prepare import full_rows
from swiftem.problem import Problem

DEVICE = "torch:cuda:0" if torch.cuda.is_available() else "torch:cpu"
MADE = []


def fast(setting, drawn, memory):
    """Return the kernels' iterations, also on the CPU."""
    if setting.bound.code != 0 or setting.update.is_optimal:
        return None
    MADE.append(FastIterations(setting, drawn, memory, full_rows(setting.rows, setting.bound.n_components)))
    return MADE[-1]


def case(
    method, n=500, d=3, n_components=4, *, n_iter=12, weighted=False, spread=2.0, offset=0.0, options=()
):
    """Return relative errors of s and θ after a run, rejected steps, and whether bits are the same."""
    rng = np.random.default_rng(0)
    means = spread * rng.normal(size=(n_components, d))
    mixing = np.eye(d) + 0.3 * rng.normal(size=(n_components, d, d)) / np.sqrt(d)
    which = rng.integers(n_components, size=n)
    y = means[which] + np.einsum("nij,nj->ni", mixing[which], rng.normal(size=(n, d))) + offset
    weight = rng.uniform(0.1, 4.0, size=n) if weighted else None
    source = ArraySource(y.astype(np.float32), weight)
    model = models.GaussianMixtureModel(n_components, covariance="full", reg_covar=1e-6, **dict(options))
    made = Problem(model, source, kernels=DEVICE)
    theta = made.bound.initial_theta(np.random.default_rng(1))
    given = {"theta0": theta, "n_iter": n_iter, "seed": 0}
    found = run_problem(made, method, **given)
    again = run_problem(made, method, **given, record_every=5)
    expected = run_problem(Problem(model, source, kernels="reference"), method, **given)
    s = [made.bound.unpack(each.s) for each in (found, expected)]
    errors = [
        float(np.linalg.norm(one - other) / np.linalg.norm(other)) for one, other in zip(*s, strict=True)
    ]
    errors += [
        float(np.linalg.norm(one - other) / np.linalg.norm(other))
        for one, other in zip(found.theta[1:3], expected.theta[1:3], strict=True)
    ]
    memory = [getattr(each.state.method, "memory", None) for each in (found, expected)]
    if memory[0] is not None:
        errors.append(float(np.abs(memory[0] - memory[1]).max()))
    same = np.array_equal(found.s, again.s) and found.rejected == again.rejected
    return errors, [found.rejected, expected.rejected], bool(same)


PRIOR = models.NormalInverseWishart(
    degrees_of_freedom=5.0, scale=0.5 * np.eye(3), mean=[0.1, 0.2, 0.3], mean_precision=2.0
)
CASES = [
    (methods.OnlineEM(0.2, 40), {}),
    (methods.EM(), {"weighted": True}),
    (methods.VarianceReducedEM(0.2, 40, epoch_length=7), {"weighted": True, "offset": 100.0}),
    (methods.FastIncrementalEM(0.2, 40), {"n": 100}),
    (methods.SpiderEM(0.2, 40, epoch_length=7), {"d": 6, "n_components": 7}),
    (methods.IncrementalEM(40, memory_dtype="float32"), {"weighted": True}),
    (methods.FastIncrementalEM(0.2, 33, order="weighted"), {"weighted": True}),
    (methods.OptFIEM(0.2, 40, correction=0.5), {}),
    (methods.VarianceReducedEM(1.0, 4, epoch_length=30), {"n": 80}),
    (methods.OnlineEM(0.5, 40), {"spread": 300.0, "n_iter": 30}),
    (
        methods.OnlineEM(0.2, 1100),
        {"options": {"prior": PRIOR, "known_weights": (0.1, 0.2, 0.3, 0.4)}},
    ),
]

if __name__ == "__main__":
    lane.fast_iterations = fast
    chosen = [int(number) for number in sys.argv[1:]] or range(len(CASES))
    for number in chosen:
        method, options = CASES[number]
        before = len(MADE)
        errors, rejected, same = case(method, **options)
        assert len(MADE) > before, "no kernels were used"
        print(json.dumps([method.name, errors, rejected, same]))
        sys.stdout.flush()
