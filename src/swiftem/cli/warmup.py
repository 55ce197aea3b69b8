"""``swiftem warmup``: compiles kernels in advance, so that no fit waits for them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import typer

from swiftem.cli.console import Console, one_sentence


def _rows() -> Any:
    return np.random.default_rng(0).normal(size=(60, 2))


def _passes() -> None:
    """Passes and scores of mixtures with covariances, and of families, for data that are not small."""
    from swiftem import models
    from swiftem.core.problem import Problem
    from swiftem.data import ArraySource

    problem = Problem(models.GaussianMixtureModel(2, covariance="full"), ArraySource(_rows()))
    theta, e_step = problem.bound.initial_theta(np.random.default_rng(0)), problem.compute
    e_step.full(theta)
    e_step.evaluate(theta, responsibilities=True, labels=True)
    e_step.share(next(iter(problem.source.blocks(60))), np.full((60, 2), 0.5))


def _steps() -> None:
    """Batches of mixtures with covariances: one loop for all methods and kinds of covariances."""
    from swiftem import methods, models, run

    method = methods.OnlineEM(batch_size=4, step_size=0.1)
    run(models.GaussianMixtureModel(2, covariance="full"), _rows(), method, n_iter=2, seed=0)


def _topics() -> None:
    """Topics by documents; the corpus is large enough that batches and M-steps are compiled.

    Kernels are compiled for each small number of vectors that a row of topics has.
    """
    from swiftem import PLSA

    counts = np.random.default_rng(0).poisson(0.12, size=(600, 1300))
    for n_components in (8, 24, 40, 60, 80):
        for method in ("auto", "em"):
            PLSA(n_components, method=method, random_state=0, max_iter=2).fit(counts).transform(counts)


PARTS: dict[str, Callable[[], None]] = {
    "passes over mixtures": _passes,
    "steps of Gaussian mixtures": _steps,
    "topics": _topics,
}
"""What estimators and the command line use, unless a model of another kind is fitted."""


def warmup(context: typer.Context) -> None:
    """Compile the kernels for large data in advance, and print the cache folder."""
    from swiftem.fit.driver import progress_bar
    from swiftem.kernels.compile import CACHE_FOLDER, WHY_NOT_KEPT

    ended = "Interrupted; what was compiled before is kept."
    with one_sentence(context, ended), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        console, began = Console(), perf_counter()
        log, level = logging.getLogger("swiftem"), logging.getLogger("swiftem").level
        log.setLevel(logging.ERROR)  # the bar says it
        try:
            with progress_bar(console) as bar:
                task = bar.add_task("", total=len(PARTS))
                for name, work in PARTS.items():
                    bar.update(task, description=f"Compiling {name}")
                    work()
                    bar.advance(task)
        finally:
            log.setLevel(level)
        if WHY_NOT_KEPT:
            raise OSError(f"Nothing that was compiled is kept, as {WHY_NOT_KEPT}.")
        console.say(f"Compiled in {perf_counter() - began:.1f} s: {CACHE_FOLDER}")
