"""The hand-written loops that the compiled lane is measured against compute the same."""

import helpers
import numpy as np
import pytest

from benchmarks import numba_plsa_loops
from swiftem import schedules


@pytest.mark.parametrize("name", list(numba_plsa_loops.LOOPS))
def test_same_parameters(name):
    problem = helpers.topics(300, D=20, V=15, K=3)
    gamma = 10 / problem.n
    step = schedules.inverse(1, 10) if name == "sem" else gamma
    method = helpers.make_method(name, step_size=step, epoch_length=10_000)
    drawn = [
        np.random.default_rng(stream).integers(problem.n, size=1001) for stream in range(method.index_streams)
    ]
    first, rest = ([part[rows] for part in drawn] for rows in (slice(1), slice(1, None)))
    start = problem.run(method, n_iter=1, draws=first if name == "fiem" else first[0])
    end = problem.run(
        method, theta0=start.theta, s0=start.s, state=start.state, n_iter=1000,
        draws=rest if name == "fiem" else rest[0],
    )  # fmt: skip
    documents, words = helpers.tokens_of(problem.data.toarray())
    arguments = (*rest, gamma) if name in ("sem-vr", "fiem") else rest
    found = numba_plsa_loops.LOOPS[name](documents, words, problem.model, 15, start, *arguments)
    for one, other in zip(found, end.theta, strict=False):
        helpers.assert_close(one, other)
