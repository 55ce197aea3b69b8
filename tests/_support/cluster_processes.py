"""A scheduler and workers as processes of their own, which tests may kill."""

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers import leaves

import swiftem
from swiftem import methods, models

RNG = np.random.default_rng(0)
X = RNG.permutation(np.concatenate([RNG.normal(0, 1, (4000, 3)), RNG.normal(4, 2, (4000, 3))]))
MODEL = models.GaussianMixtureModel(2, covariance="full")
THETA = MODEL.theta(means=X[:2], covariances=[4 * np.eye(3)] * 2)
METHODS = {
    "em": methods.EM(),
    "sem": methods.OnlineEM(batch_size=2),
    "iem": methods.IncrementalEM(),
    "sem-vr": methods.VarianceReducedEM(step_size=0.3, batch_size=2),
    "fiem": methods.FastIncrementalEM(step_size=0.3),
    "spider": methods.SpiderEM(step_size=0.3),
}

SCHEDULER = """
import asyncio, sys
from distributed import Scheduler

async def main():
    async with Scheduler(host="127.0.0.1", port=int(sys.argv[1]), dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""
WORKER = """
import asyncio, sys
from distributed import Worker

async def main():
    async with Worker(sys.argv[1], nthreads=1, memory_limit="1GB", host="127.0.0.1") as worker:
        print(worker.address, flush=True)
        await worker.finished()

if __name__ == "__main__":
    asyncio.run(main())
"""


NOISE = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning", "DeprecationWarning")
]
"""Dask's own machinery leaves sockets to the garbage collector, and its logs are not ours."""


def planned():
    """Return the rows as a Dask array."""
    import dask.array as da

    return da.from_array(X, chunks=(1000, 3))


def assert_same(one, other):
    """Same parameters, to the last bit."""
    for ours, theirs in zip(leaves(one.theta), leaves(other.theta), strict=True):
        assert np.array_equal(ours, theirs)


def run(name, data, **options):
    """Run a method for a few iterations from a given start."""
    return swiftem.run(MODEL, data, METHODS[name], theta0=THETA, n_iter=12, seed=0, **options)


@contextlib.contextmanager
def process(code, *given, **environment):
    """Context with a process that runs ``code``, and the first line that it prints; killed at the end."""
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, given)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, env=os.environ | environment, **pipes) as started:
        try:
            assert started.stdout is not None
            yield started, started.stdout.readline().strip()
        finally:
            started.kill()
