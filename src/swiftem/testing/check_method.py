"""The contract tests of a method."""

from __future__ import annotations

import numpy as np

from swiftem._run import objective
from swiftem.core.draws import read_seed, seeded_draws
from swiftem.core.method import Method, declared
from swiftem.data.documents.tokens import TokenSource
from swiftem.models import GaussianMixtureModel, PLSAModel
from swiftem.testing.check_model import Case, assert_pickles, assert_same_path, flatten, freeze, require


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
    for case in small_problems():
        check_one_step(method, case)
        check_full_batch(method, case)
        check_seed_and_resume(method, case)
        check_compiled(method, case)
        check_progress(method, case)
    assert_pickles(method, "method")


def check_declaration(method: Method) -> None:
    """A method is a frozen dataclass that declares its needs."""
    require(isinstance(method, Method), f"a method must derive from swiftem.methods.Method, got {method!r}.")
    parameters = getattr(type(method), "__dataclass_params__", None)
    require(parameters is not None and parameters.frozen, "a method must be a dataclass(frozen=True).")
    require(isinstance(getattr(method, "name", None), str), "a method must have a name, a class attribute.")
    streams, access = method.index_streams, method.access
    require(streams in (0, 1, 2), f"index_streams must be 0, 1 or 2, got {streams!r}.")
    require(access in ("sequential", "random"), f"access must be 'sequential' or 'random', got {access!r}.")
    require(
        access == "random" or not method.remembers,
        "a method that remembers must declare access = 'random': it accesses samples by index.",
    )
    require(
        len(method.orders) == streams,
        f"orders must name one order per index stream, got {method.orders} for {streams}.",
    )


def check_renewals(method: Method) -> None:
    """A renewal is not before the iteration, and the same for all iterations up to it."""
    for n in (7, 60, 80):
        for k in range(50):
            first, after = method.renewal(k, n), method.renewal(k + 1, n)
            is_next = first is None or first == k or (first > k and after == first)
            require(
                is_next and method.renewal(k, n) == first,
                f"renewal must return the first full pass from k on, the same in every call, or None, but "
                f"renewal({k}, {n}) is {first} and renewal({k + 1}, {n}) is {after}.",
            )


def check_one_step(method: Method, case: Case) -> None:
    """A step writes only to its state, and the state is a NamedTuple."""
    theta, e_step = freeze(case.theta0), case.e_step
    s, memory = e_step.remember(theta)
    state = method.init(theta, freeze(s), memory if method.remembers else None)
    update, kind = declared(method), type(state)
    reference = "none" if update is None else update.reference
    named: tuple[str, ...] = (
        () if reference == "none" else ("memory" if reference == "memory" else "anchor", "centre")
    )
    named = ("memory",) if method.remembers and not named else named
    is_named_tuple = isinstance(state, tuple) and hasattr(state, "_fields")
    require(is_named_tuple, f"the state must be a NamedTuple, got {kind.__name__}.")
    require(
        set(named) <= set(kind._fields),
        f"the state must have the fields {', '.join(named)}, got {kind.__name__}.",
    )
    draws = seeded_draws(read_seed(0), case.source.n, method.batch_size, method.orders)
    for k in range(3):
        returned = method.proxy(k, theta, freeze(draws.at(k)), state, e_step)
        is_pair = isinstance(returned, tuple) and len(returned) == 2
        require(is_pair, "proxy must return two values, the proxy and the next state.")
        proxy, state = returned
        shape = np.shape(proxy)
        require(shape == s.shape, f"the proxy must have the shape of s, {s.shape}, got {shape}.")
        is_finite = np.isfinite(proxy).all()
        require(is_finite, f"the proxy must be finite, but is not at k = {k} on {case.name}.")
        require(type(state) is kind, "the state must keep its type from one iteration to the next.")
        assert_pickles(state, "the state")


def check_full_batch(method: Method, case: Case) -> None:
    r"""With full batches the proxy is exact, :math:`S^{(k+1)} = \bar s(\theta^{(k)})`: the method is EM."""
    theta, e_step, rng = case.theta0, case.e_step, np.random.default_rng(0)
    s, memory = e_step.remember(theta)
    state = method.init(theta, s, memory if method.remembers else None)
    for k in range(4):
        draws = tuple(rng.permutation(case.source.n) for _ in range(method.index_streams))
        proxy, state = method.proxy(k, theta, draws, state, e_step)
        far = float(np.abs(proxy - e_step.full(theta)).max())
        require(
            far < 1e-10,
            f"with full batches the proxy of {method.name} must be the mean statistics at theta, "
            f"but on {case.name} it is off by {far:.1e} at k = {k}.",
        )
        if method.leaps:  # only the first pass is certainly at theta
            break
        theta = case.bound.m_step(proxy)


def check_seed_and_resume(method: Method, case: Case) -> None:
    """A trajectory depends on the seed, not on records or on where a run was split."""
    n_iter, cut = 24, 11
    whole = case.run(method, n_iter=n_iter, seed=3)
    seldom = case.run(method, n_iter=n_iter, seed=3, record_every=7)
    assert_same_path(seldom, whole, 0.0, "the same seed must give the same trajectory, whatever is recorded")
    first = case.run(method, n_iter=cut, seed=3, record_every=None)
    for attempt in ("", " a second time"):
        rest = case.run(method, n_iter=n_iter - cut, theta0=first.theta, s0=first.s, state=first.state)
        assert_same_path(rest, whole, 0.0, f"a run that is resumed{attempt} must continue exactly")
        require(rest.passes == whole.passes, "a resumed run must continue the count of passes.")


def check_compiled(method: Method, case: Case) -> None:
    """Compiled iterations, which know the update alone, do what ``proxy`` does; with weights, too."""
    if declared(method) is None:
        return
    weight = 1.0 + np.arange(case.source.n) % 3
    for given in (None, weight) if case.name == "mixture" else (None,):
        compiled, plain = (
            case.run(method, n_iter=24, seed=3, sample_weight=given, kernels=kernels)
            for kernels in ("auto", "reference")
        )
        assert_same_path(compiled, plain, 1e-7, "update must declare what proxy computes")
        require(compiled.passes == plain.passes, "update must declare the evaluations of proxy.")


def check_progress(method: Method, case: Case) -> None:
    """Ten epochs lower the objective."""
    n_iter = 10 * method.epoch(case.source.n)
    theta = case.run(method, n_iter=n_iter, seed=1, record_every=None).theta
    require(np.isfinite(flatten(theta)).all(), f"theta must stay finite, but did not on {case.name}.")
    before, after = (objective(case.model, case.data, point) for point in (case.theta0, theta))
    require(
        after < before,
        f"ten epochs must lower the objective on {case.name}, but {before:.6g} became {after:.6g}.",
    )


def small_problems() -> list[Case]:
    """Return a mixture of 60 points in the plane and pLSA of 80 tokens.

    >>> [case.name for case in small_problems()]
    ['mixture', 'plsa']
    """
    rng = np.random.default_rng(7)
    y = rng.normal(size=(60, 2)) + 3.0 * rng.integers(2, size=(60, 1))
    mixture = GaussianMixtureModel(n_components=3)
    documents = np.sort(rng.integers(6, size=80))
    words = (rng.integers(5, size=80) + 4 * (documents % 2)) % 9
    plsa = PLSAModel(n_topics=2, alpha=1e-3, beta=1e-3)
    doc_topic, topic_word = rng.dirichlet(np.ones(2), size=6), rng.dirichlet(np.ones(9), size=2)
    tokens = TokenSource(documents, words, n_documents=6, n_words=9)
    return [
        Case("mixture", mixture, y, mixture.theta(means=y[:3])),
        Case("plsa", plsa, tokens, plsa.theta(doc_topic=doc_topic, topic_word=topic_word)),
    ]
