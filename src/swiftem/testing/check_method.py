"""The contract tests of a method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem._run import objective, run
from swiftem.core.compute import Compute
from swiftem.core.draws import SeededDraws, read_seed
from swiftem.core.method import declared
from swiftem.core.types import Theta
from swiftem.data.as_source import as_source
from swiftem.data.documents.tokens import TokenSource
from swiftem.methods import Method
from swiftem.models import GaussianMixtureModel, Model, PLSAModel
from swiftem.testing.compare import assert_pickles, assert_same_path, flatten, freeze, require

__all__ = ["Problem", "check_method", "small_problems"]


FIELDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "anchor": ("anchor", "centre"),
    "previous": ("anchor", "centre"),
    "memory": ("memory", "centre"),
}
"""Fields of a state by the reference of the update."""


def check_method(method: Method) -> None:
    """Run the contract tests on a method; an AssertionError says what is broken.

    They run on a small mixture and a small pLSA.

    Parameters
    ----------
    method : Method
        The method, with the hyper-parameters to check.

    Notes
    -----
    The requirements: a frozen dataclass that declares its name, index streams, access and memory; a state
    that is a NamedTuple and pickles; nothing is written to except the state; with full batches the proxy is
    exact, so the method is EM (of one that ``leaps``, only the first); the same seed gives the same
    trajectory, whatever is recorded; a run that is split and resumed gives the same, also twice from one
    state; compiled iterations do what ``proxy`` does, if there is an ``update``; ``renewal`` returns the next
    full pass; the objective decreases.

    Examples
    --------
    >>> from swiftem.methods import FastIncrementalEM
    >>> from swiftem.testing import check_method
    >>> check_method(FastIncrementalEM(step_size=0.05, batch_size=2))
    """
    check_declaration(method)
    check_renewals(method)
    for problem in small_problems():
        check_one_step(method, problem)
        check_full_batch(method, problem)
        check_seed_and_resume(method, problem)
        check_compiled(method, problem)
        check_progress(method, problem)
    assert_pickles(method, "method")


def check_declaration(method: Method) -> None:
    """A method is a frozen dataclass that declares its needs."""
    require(isinstance(method, Method), f"a method must derive from swiftem.methods.Method, got {method!r}.")
    parameters = getattr(type(method), "__dataclass_params__", None)
    require(parameters is not None and parameters.frozen, "a method must be a dataclass(frozen=True).")
    require(isinstance(getattr(method, "name", None), str), "a method must have a name, a class attribute.")
    require(
        method.index_streams in (0, 1, 2), f"index_streams must be 0, 1 or 2, got {method.index_streams!r}."
    )
    require(
        method.access in ("sequential", "random"),
        f"access must be 'sequential' or 'random', got {method.access!r}.",
    )
    require(
        method.access == "random" or not method.remembers,
        "a method that remembers must declare access = 'random': it accesses samples by index.",
    )
    require(
        len(method.orders) == method.index_streams,
        f"orders must name one order per index stream, got {method.orders} for {method.index_streams}.",
    )


def check_renewals(method: Method) -> None:
    """A renewal is not before the iteration, and is that of all iterations up to it."""
    for n in (7, 60, 80):
        for k in range(50):
            found = method.renewal(k, n)
            fine = found is None or found == k or (found > k and method.renewal(k + 1, n) == found)
            require(
                fine and method.renewal(k, n) == found,
                f"renewal must return the first full pass from k on, the same in every call, or None, but "
                f"renewal({k}, {n}) is {found} and renewal({k + 1}, {n}) is {method.renewal(k + 1, n)}.",
            )


def check_one_step(method: Method, problem: Problem) -> None:
    """A step writes only to its state, and the state is a NamedTuple."""
    source = as_source(problem.data)
    e_step = Compute(problem.model.bind(source), source)
    theta = freeze(problem.theta0)
    s, memory = e_step.remember(theta)
    state = method.init(theta, freeze(s), memory if method.remembers else None)
    update = declared(method)
    named = () if update is None else FIELDS[update.reference]
    require(
        set(named) <= set(getattr(state, "_fields", named)),
        f"the state must have the fields of the update, {', '.join(named)}, got {type(state).__name__}.",
    )
    draws = SeededDraws(read_seed(0), source.n, method.batch_size, method.orders)
    for k in range(3):
        state_type = type(state)
        require(
            isinstance(state, tuple) and hasattr(state, "_fields"),
            f"the state must be a NamedTuple, got {state_type.__name__}.",
        )
        returned = method.proxy(k, theta, freeze(draws.at(k)), state, e_step)
        require(
            isinstance(returned, tuple) and len(returned) == 2,
            "proxy must return two values, the proxy and the next state.",
        )
        proxy, state = returned
        require(
            proxy.shape == s.shape, f"the proxy must have the shape of s, {s.shape}, got {np.shape(proxy)}."
        )
        require(
            np.isfinite(proxy).all(), f"the proxy must be finite, but is not at k = {k} on {problem.name}."
        )
        require(type(state) is state_type, "the state must keep its type from one iteration to the next.")
        assert_pickles(state, "the state")


def check_full_batch(method: Method, problem: Problem) -> None:
    r"""With full batches the proxy is exact, :math:`S^{(k+1)} = \bar s(\theta^{(k)})`: the method is EM."""
    source = as_source(problem.data)
    bound = problem.model.bind(source)
    e_step = Compute(bound, source)
    theta = problem.theta0
    s, memory = e_step.remember(theta)
    state = method.init(theta, s, memory if method.remembers else None)
    rng = np.random.default_rng(0)
    for k in range(4):
        draws = tuple(rng.permutation(problem.n) for _ in range(method.index_streams))
        proxy, state = method.proxy(k, theta, draws, state, e_step)
        far = float(np.abs(proxy - e_step.full(theta)).max())
        require(
            far < 1e-10,
            f"with full batches the proxy of {method.name} must be the mean statistics at theta, "
            f"but on {problem.name} it is off by {far:.1e} at k = {k}.",
        )
        if method.leaps:  # only the first pass is certainly at theta
            break
        theta = bound.m_step(proxy)


def check_seed_and_resume(method: Method, problem: Problem) -> None:
    """A trajectory depends on the seed, not on records or on where a run was split."""
    n_iter, cut = 24, 11
    start: dict[str, Any] = {"theta0": problem.theta0, "seed": 3}
    whole = run(problem.model, problem.data, method, n_iter=n_iter, record_every=1, **start)
    seldom = run(problem.model, problem.data, method, n_iter=n_iter, record_every=7, **start)
    assert_same_path(seldom, whole, 0.0, "the same seed must give the same trajectory, whatever is recorded")
    first = run(problem.model, problem.data, method, n_iter=cut, **start)
    for attempt in ("", " a second time"):
        rest = run(
            problem.model,
            problem.data,
            method,
            n_iter=n_iter - cut,
            record_every=1,
            theta0=first.theta,
            s0=first.s,
            state=first.state,
        )
        assert_same_path(rest, whole, 0.0, f"a run that is resumed{attempt} must continue exactly")
        require(rest.passes == whole.passes, "a resumed run must continue the count of passes.")


def check_compiled(method: Method, problem: Problem) -> None:
    """Compiled iterations, which know the update alone, do what ``proxy`` does; with weights, too."""
    if declared(method) is None:
        return
    weight = 1.0 + np.arange(problem.n) % 3
    for given in (None, weight) if problem.name == "mixture" else (None,):
        compiled, plain = (
            run(
                problem.model,
                problem.data,
                method,
                n_iter=24,
                record_every=1,
                theta0=problem.theta0,
                seed=3,
                sample_weight=given,
                kernels=kernels,
            )
            for kernels in ("auto", "reference")
        )
        assert_same_path(compiled, plain, 1e-7, "update must declare what proxy computes")
        require(compiled.passes == plain.passes, "update must declare the evaluations of proxy.")


def check_progress(method: Method, problem: Problem) -> None:
    """Ten epochs lower the objective."""
    n_iter = 10 * method.epoch(problem.n)
    result = run(problem.model, problem.data, method, theta0=problem.theta0, n_iter=n_iter, seed=1)
    require(
        np.isfinite(flatten(result.theta)).all(), f"theta must stay finite, but did not on {problem.name}."
    )
    before = objective(problem.model, problem.data, problem.theta0)
    after = objective(problem.model, problem.data, result.theta)
    require(
        after < before,
        f"ten epochs must lower the objective on {problem.name}, but {before:.6g} became {after:.6g}.",
    )


class Problem(NamedTuple):
    """A model with data and initial parameters."""

    name: str
    model: Model
    data: Any
    n: int
    theta0: Theta


def small_problems() -> list[Problem]:
    """Return a mixture of 60 points in the plane and pLSA of 80 tokens.

    >>> [problem.name for problem in small_problems()]
    ['mixture', 'plsa']
    """
    rng = np.random.default_rng(7)
    y = rng.normal(size=(60, 2)) + 3.0 * rng.integers(2, size=(60, 1))
    mixture = GaussianMixtureModel(n_components=3)
    documents = np.sort(rng.integers(6, size=80))
    words = (rng.integers(5, size=80) + 4 * (documents % 2)) % 9
    plsa = PLSAModel(n_topics=2, alpha=1e-3, beta=1e-3)
    return [
        Problem("mixture", mixture, y, 60, mixture.theta(means=y[:3])),
        Problem(
            "plsa",
            plsa,
            TokenSource(documents, words, n_documents=6, n_words=9),
            80,
            plsa.theta(
                doc_topic=rng.dirichlet(np.ones(2), size=6), topic_word=rng.dirichlet(np.ones(9), size=2)
            ),
        ),
    ]
