"""``python tests/warm.py``: fill the cache that all processes of the tests share: kernels.

Two processes do it, each with kernels that the other has not. Where it was done before, nothing happens.
"""

from __future__ import annotations

import multiprocessing
import warnings
from time import perf_counter

import gate_cases

PARTS = ("full, sem, b=1", "passes over mixtures", "unit", "plsa", "diag, sem, b=7", "topics", "functions")
"""Beginnings of names of cases of the gate, or parts of ``swiftem warmup``; the longest first."""


def compile_part(part: str) -> None:
    """Run what compiles the kernels of a part."""
    import swiftem
    from swiftem import methods, models
    from swiftem.cli.warmup import PARTS as KERNELS

    warnings.simplefilter("ignore")
    KERNELS.get(part, lambda: None)()
    for name, case in (*gate_cases.batch_sizes(), *gate_cases.options_of_runs()):
        if name.startswith(part):
            gate_cases.compute(case)
    for label, (model, data) in gate_cases.usual().items():
        if part.startswith(label):
            result = swiftem.run(model, data, methods.EM(), n_iter=1, seed=0)
            swiftem.objective(model, data, result.theta)
    for dtype in ("float64", "float32") if part == "unit" else ():  # large batches have loops of their own
        for kind in (methods.OnlineEM, methods.VarianceReducedEM, methods.FastIncrementalEM):
            method = kind(batch_size=128, **{"memory_dtype": dtype} if kind.remembers else {})
            swiftem.run(models.GaussianMixtureModel(40), gate_cases.rows(), method, n_iter=1, seed=0)


def main() -> None:
    """Do all parts, unless they have been done."""
    from swiftem.kernels.compile import CACHE_FOLDER

    done = CACHE_FOLDER / "warm"
    if done.exists():
        return
    print("Compiling the kernels for the tests, about a minute ...", flush=True)
    began = perf_counter()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(compile_part, PARTS, chunksize=1)
    done.touch()
    print(f"Compiled the kernels in {perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()
