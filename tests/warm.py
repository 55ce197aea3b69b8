"""``python tests/warm.py``: fill the cache that all processes of the tests share: kernels.

Two processes do it, each with kernels that the other has not. Where it was done before, nothing happens.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from time import perf_counter

import gate_cases
import numpy as np


def batches_with_covariances() -> None:
    _run("full, sem, b=1")


def passes_with_covariances() -> None:
    import swiftem
    from swiftem.cli.warmup import PARTS as KERNELS

    KERNELS["passes over mixtures"]()
    model, method = swiftem.models.GaussianMixtureModel(2, covariance="diag"), swiftem.methods.EM()
    swiftem.run(model, gate_cases.rows()[:, ::-1], method, n_iter=1, seed=0)


def statistics_with_covariances() -> None:
    import swiftem

    model = swiftem.models.GaussianMixtureModel(2, covariance="diag")
    rows = np.asfortranarray(gate_cases.rows())  # goes batch by batch
    swiftem.run(model, rows, swiftem.methods.OnlineEM(batch_size=4), n_iter=1, seed=0)


def mixtures_of_unit_variances() -> None:
    import swiftem

    _run("unit")
    for dtype in ("float64", "float32"):
        for M, b in ((2, 1), (40, 128)):
            for kind in (swiftem.methods.IncrementalEM, swiftem.methods.FastIncrementalEM):
                method = kind(batch_size=b, memory_dtype=dtype)
                swiftem.run(
                    swiftem.models.GaussianMixtureModel(M), gate_cases.rows(), method, n_iter=1, seed=0
                )
    for kind in (swiftem.methods.OnlineEM, swiftem.methods.VarianceReducedEM):
        model = swiftem.models.GaussianMixtureModel(40)
        swiftem.run(model, gate_cases.rows(), kind(step_size=0.1, batch_size=128), n_iter=1, seed=0)


def tokens() -> None:
    _run("plsa")


def documents() -> None:
    from swiftem.cli.warmup import PARTS as KERNELS

    KERNELS["topics"]()


def functions() -> None:
    _run("functions")


PARTS: tuple[Callable[[], None], ...] = (
    batches_with_covariances,
    passes_with_covariances,
    mixtures_of_unit_variances,
    tokens,
    statistics_with_covariances,
    documents,
    functions,
)
"""The longest first."""


def _run(start: str) -> None:
    import swiftem

    for name, case in gate_cases.batch_sizes():
        if name.startswith(start):
            gate_cases.compute(case)
    for label, (model, data) in gate_cases.usual().items():
        if start.startswith(label):
            swiftem.objective(
                model, data, swiftem.run(model, data, swiftem.methods.EM(), n_iter=1, seed=0).theta
            )


def _compile(part: int) -> None:
    warnings.simplefilter("ignore")
    PARTS[part]()


def main() -> None:
    """Do all parts, unless they have been done."""
    from swiftem.kernels.compile import CACHE_FOLDER

    done = CACHE_FOLDER / "warm"
    if done.exists():
        return
    print("Compiling the kernels for the tests, about a minute ...", flush=True)
    began = perf_counter()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(_compile, range(len(PARTS)), chunksize=1)
    done.touch()
    print(f"Compiled the kernels in {perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()
