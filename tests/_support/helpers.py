"""What several test modules share: small problems, draws, runs that record everything, and odd sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import dense
import numpy as np
import pytest
import scipy.sparse as sp

import swiftem
from swiftem import methods, models, schedules
from swiftem.core.algorithm import Task
from swiftem.core.compute import Placement
from swiftem.core.draws import read_seed
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.model import BoundModel, Model
from swiftem.core.source import Batch, Source
from swiftem.data.as_source import read_problem

NAMES = tuple(methods.METHODS)
STOCHASTIC = NAMES[1:]
COMPILED = tuple(name for name in STOCHASTIC if name != "opt-fiem")  # a learned λ runs by its proxy
IN_PAIRS = tuple(name for name, kind in methods.METHODS.items() if kind.index_streams == 2)
"""Methods that draw i and j."""


def make_method(name: str, **options: Any) -> methods.Method:
    """Return the method, given those of ``options`` that it has."""
    kind = methods.METHODS[name]
    return kind(**{key: value for key, value in options.items() if key in kind.__dataclass_fields__})


def random_draws(name: str, n: int, n_iter: int, b: int = 1, seed: int = 0) -> Any:
    """Return draws as ``run(draws=...)`` takes them, with indices repeated within batches where b > 1."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(n, size=(n_iter, b)) for _ in range(2)]
    if b > 1:
        for part in drawn:
            part[::2, 1] = part[::2, 0]
        drawn[1][::3, 0] = drawn[0][::3, 0]  # i and j meet
    return None if name == "em" else tuple(drawn) if name in IN_PAIRS else drawn[0]


def assert_close(actual: Any, expected: Any) -> None:
    """The judges' criterion: difference below 1e-9, relative to max(|value|, 1e-3)."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert np.isfinite(expected).all()
    error = np.abs(actual - expected) / np.maximum(np.abs(expected), 1e-3)
    assert error.max() < 1e-9, (
        f"differs by {error.max():.1e} at {np.unravel_index(error.argmax(), error.shape)}"
    )


def leaves(value: Any) -> list[Any]:
    """Return the arrays and numbers in nested tuples and lists, in order."""
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def assert_identical(actual: Any, expected: Any) -> None:
    """Same arrays and numbers, to the last bit, in nested tuples."""
    assert type(actual) is type(expected)
    actual, expected = leaves(actual), leaves(expected)
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def assert_same_result(actual: swiftem.Result, expected: swiftem.Result) -> None:
    """Same parameters, statistics, state and counts, to the last bit; paths and status aside."""
    assert_identical((actual.theta, actual.s, actual.state), (expected.theta, expected.s, expected.state))
    counts = [(result.passes, result.n_iter, result.rejected) for result in (actual, expected)]
    assert counts[0] == counts[1]


def assert_same_path(actual: Any, expected: Any) -> None:
    """Same iterates, to the last bit."""
    counts = [[(it.k, it.passes, it.rejected) for it in path] for path in (actual, expected)]
    assert counts[0] == counts[1]
    for one, other in zip(actual, expected, strict=True):
        assert_identical((one.theta, one.s), (other.theta, other.s))


class Problem(NamedTuple):
    """A model with data and a start, and the dense run of a method on the same.

    ``dense(name, draws=..., n_iter=..., gamma=..., epoch_length=...)`` gives a :class:`dense.Trajectory`.
    """

    model: Any
    data: Any
    theta0: Any
    n: int
    dense: Callable[..., dense.Trajectory]
    sample_weight: Any = None

    def run(self, method: methods.Method, **options: Any) -> swiftem.Result:
        """``swiftem.run`` on this problem."""
        options = {"theta0": self.theta0, "sample_weight": self.sample_weight} | options
        return swiftem.run(self.model, self.data, method, **options)


def mixture(
    n: int = 40,
    d: int = 1,
    M: int = 2,
    *,
    delta: float = 1e-3,
    epsilon: float = 1e-3,
    known_weights: Any = None,
    sample_weight: Any = None,
    spread: float = 2.0,
    seed: int = 0,
) -> Problem:
    """Return a Gaussian mixture's problem, a start at random included."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, d)) + spread * rng.normal(size=(M, d))[rng.integers(M, size=n)]
    model = models.GaussianMixtureModel(M, delta=delta, epsilon=epsilon, known_weights=known_weights)
    weights = rng.dirichlet(np.full(M, 5.0)) if known_weights is None else known_weights
    theta0 = model.theta(weights=weights, means=rng.normal(size=(M, d)))

    def run_dense(name: str, **options: Any) -> dense.Trajectory:
        return dense.gmm_trajectory(
            name, y, *theta0, delta=delta, epsilon=epsilon,
            known_weights=known_weights, sample_weight=sample_weight, **options,
        )  # fmt: skip

    return Problem(model, y[:, 0] if d == 1 else y, theta0, n, run_dense, sample_weight)


def random_counts(n: int, D: int, V: int, K: int, seed: int = 0) -> Any:
    """Return a dense matrix of counts (D, V) with n tokens from K topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(V, 0.3), size=K)
    counts = np.zeros((D, V), dtype=np.int64)
    for _ in range(n):
        document = rng.integers(D)
        counts[document, rng.choice(V, p=topics[(document + rng.integers(2)) % K])] += 1
    return counts


def tokens_of(counts: Any) -> tuple[Any, Any]:
    """Return (documents, words): rows in order, columns ascending, each entry as often as it counts."""
    tokens = [
        (document, word)
        for document, row in enumerate(np.asarray(counts).tolist())
        for word, count in enumerate(row)
        for _ in range(count)
    ]
    documents, words = np.array(tokens, dtype=np.intp).reshape(-1, 2).T
    return documents, words


def topics(
    n: int = 40,
    D: int = 4,
    V: int = 6,
    K: int = 2,
    *,
    alpha: float = 1e-3,
    beta: float = 1e-3,
    counts: Any = None,
    seed: int = 0,
) -> Problem:
    """Return a pLSA problem whose data are a CSR matrix, a start at random included."""
    rng = np.random.default_rng(seed)
    if counts is None:
        counts = random_counts(n, D, V, K, seed)
    D, V = counts.shape
    documents, words = tokens_of(counts)
    model = models.PLSAModel(K, alpha=alpha, beta=beta)
    theta0 = model.theta(
        doc_topic=rng.dirichlet(np.full(K, 2.0), size=D), topic_word=rng.dirichlet(np.full(V, 2.0), size=K)
    )

    def run_dense(name: str, **options: Any) -> dense.Trajectory:
        return dense.plsa_trajectory(
            name, documents, words, (D, V), theta0[:2], alpha=alpha, beta=beta, **options,
        )  # fmt: skip

    return Problem(model, sp.csr_array(counts), theta0, len(documents), run_dense)


PROBLEMS = {"mixture": mixture, "topics": topics}
"""Both models of the paper, to parametrise with."""


def assert_follows_dense(
    problem: Problem,
    name: str,
    *,
    n_iter: int,
    b: int = 1,
    gamma: Callable[[int], float],
    epoch_length: int | None = None,
    dense_options: dict[str, Any] | None = None,
    kernels: str = "auto",
    order: str = "iid",
) -> dense.Trajectory:
    """Compare θ, s and rejections of every iteration with the dense run's, which is returned."""
    draws = random_draws(name, problem.n, n_iter, b)
    method = make_method(name, step_size=gamma, batch_size=b, epoch_length=epoch_length, order=order)
    result = problem.run(method, draws=draws, n_iter=n_iter, record_every=1, kernels=kernels)
    truth = problem.dense(
        name, draws=draws, n_iter=n_iter, gamma=gamma, epoch_length=epoch_length, **(dense_options or {})
    )
    assert [iterate.k for iterate in result.path] == list(range(n_iter + 1))
    for part in range(2):
        assert_close([iterate.theta[part] for iterate in result.path], truth.theta[part])
    assert_close([iterate.s for iterate in result.path], truth.s)
    assert result.rejected == truth.rejected
    return truth


class SequentialSource(Source):
    """Rows that can only be read in order."""

    access = "sequential"

    def __init__(self, y: Any) -> None:
        self._y = np.asarray(y)

    @property
    def n(self) -> int:
        return len(self._y)

    @property
    def total_weight(self) -> float:
        return float(self.n)

    def take(self, index: Any) -> Batch:
        raise AssertionError("take was called on a source that can only be read in order")

    def blocks(self, rows: int) -> Iterator[Batch]:
        for start in range(0, self.n, rows):
            y = self._y[start : start + rows]
            yield Batch(y, np.ones(len(y)), np.arange(start, start + len(y)))

    def fingerprint(self) -> str:
        return "sequential"


class Hooked(Model):
    """A model that calls ``hook(function, call)`` before each call of its bound functions, counted from 1."""

    def __init__(self, model: Any, hook: Callable[[str, int], None]) -> None:
        self._model, self._hook = model, hook

    def bind(self, source: Any) -> Any:
        bound, calls = self._model.bind(source), dict[str, int]()

        def hooked(name: str) -> Any:
            def call(*arguments: Any) -> Any:
                calls[name] = calls.get(name, 0) + 1
                self._hook(name, calls[name])
                return getattr(bound, name)(*arguments)

            return staticmethod(call)

        names = ("initial_theta", "check_theta", "posterior", "statistics", "m_step", "penalty", "in_domain")
        return type("Hooked", (BoundModel,), {name: hooked(name) for name in (*names, "unpack")})()


def parametrize_cases(cases: dict[str, Any]) -> Any:
    """Parametrise ``case`` with the values of a dict, its keys as ids."""
    return pytest.mark.parametrize("case", list(cases.values()), ids=list(cases))


def assert_refused(attempt: Callable[[], Any], argument: str, right: str) -> None:
    """``attempt()`` raises one sentence that begins with the argument and says (a regex) what is right."""
    with pytest.raises((TypeError, ValueError)) as error:
        attempt()
    message = str(error.value)
    assert message.startswith((f"{argument} ", f"{argument}."))
    assert message.endswith(".")
    assert "\n" not in message
    error.match(right)


def loop_of(model: Any, data: Any, method: methods.Method, weight: Any = None) -> str:
    """Return the name of the class of the loop that a run takes."""
    problem = read_problem(model, data, weight)
    compute, source = problem.compute, problem.source
    compute.begin(method.memory_dtype, np.empty, is_divided=method.order == "weighted")
    gamma = schedules.resolve(method.step_size, source.n, method.batch_size)
    draws = problem.draws(method, read_seed(0), 1, 0, None)
    task = Task(problem.bound, method, source, gamma, draws, compute, DeferredInterrupt())
    return type(compute.loop(task)).__name__


def choose_compute(kernels, bound, source):
    """Return the E-steps of a bound model: "auto", "numpy", "reference", or on a device."""
    if kernels.startswith("torch:"):
        return bound.compute(source, Placement(kernels))
    return bound.compute(source, Placement(form=kernels))
