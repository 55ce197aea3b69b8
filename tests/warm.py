"""``python tests/warm.py``: compile the kernels that tests use into the cache that all their processes share.

Two processes do it, each the kernels of other models. Where it was done before, nothing happens.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from time import perf_counter

import gate
import numpy as np


def mixtures_with_covariances() -> None:
    """Compile passes and batches of both precisions, and what the estimator adds."""
    import swiftem

    _run("full", "tied")
    y = gate.rows()
    for rows in (y, y.astype(np.float32)):
        mixture = swiftem.GaussianMixture(2, random_state=0).fit(rows)
        mixture.score(rows)
        mixture.predict(rows)
        model = swiftem.models.GaussianMixtureModel(2, covariance="diag")
        method = swiftem.methods.FastIncrementalEM(memory_dtype="float32", batch_size=3)
        swiftem.run(model, rows, method, n_iter=2, seed=0)


def all_others() -> None:
    """Compile what mixtures of unit variances, topics and a user's own functions need."""
    import swiftem

    _run("unit", "plsa", "functions")
    counts = np.random.default_rng(0).poisson(0.6, size=(40, 15))
    for method in ("auto", "em", "sem", "sem-vr"):
        topics = swiftem.PLSA(2, method=method, random_state=0, max_iter=2).fit(counts)
        topics.transform(counts)
        topics.score(counts)


def _run(*kinds: str) -> None:
    import swiftem

    for name, model, data, method, options in gate.cases():
        if name.startswith(kinds):
            result = swiftem.run(model, data, method, n_iter=2, seed=0, **options)
            swiftem.objective(model, data, result.theta)


PARTS = {part.__name__: part for part in (mixtures_with_covariances, all_others)}


def main() -> None:
    """Do one part, or start both."""
    if sys.argv[1:]:
        warnings.simplefilter("ignore")
        PARTS[sys.argv[1]]()
        return
    from swiftem.kernels.numba.compile import cache_folder

    done = cache_folder() / "warm"
    if done.exists():
        return
    began = perf_counter()
    children = [subprocess.Popen([sys.executable, __file__, name]) for name in PARTS]
    if any([child.wait() for child in children]):
        sys.exit("The kernels could not be compiled.")
    done.touch()
    print(f"Compiled the kernels in {perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()
