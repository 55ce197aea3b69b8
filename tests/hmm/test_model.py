"""Hidden Markov models against enumeration of all paths, and compiled passes against the definition."""

import itertools

import numpy as np
import pytest

import swiftem
from swiftem import methods, models
from swiftem.core.compute import Placement
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.families import FAMILIES
from swiftem.hmm.model import MarkovModel
from swiftem.hmm.sequences import STEPS, SequenceSource

K = 3
FORMS = ("reference", "auto")
GAUSSIAN = ("full", "tied", "diag", "spherical")
POSITIVE = ("gamma", "exponential", "log-normal", "inverse-gaussian")
MISSING = ("poisson", "bernoulli", "gaussian", "gamma", "exponential")


def rows_for(family, rng, n):
    if family in ("poisson", "binomial(trials=4)"):
        return rng.poisson(1.0, size=(n, 2)).clip(0, 4).astype(float)
    if family == "bernoulli":
        return rng.integers(0, 2, size=(n, 2)).astype(float)
    if family.startswith("categorical"):
        return rng.integers(0, 3, size=(n, 2)).astype(float)
    if family in POSITIVE:
        return rng.gamma(2.0, size=(n, 2)) + 0.1
    if family == "von-mises-fisher":
        y = rng.normal(size=(n, 3))
        return y / np.linalg.norm(y, axis=1, keepdims=True)
    return rng.normal(size=(n, 2))


def source_of(y, lengths, weight=None):
    return SequenceSource(ArraySource(y, allow_missing=True), np.array(lengths), weight)


def problem_of(emissions, source, form="auto", seed=1, **chain):
    problem = Problem(MarkovModel(emissions, **chain), source, placement=Placement(form=form))
    rng = np.random.default_rng(seed)
    theta = problem.bound.initial_theta(rng)
    if not chain:
        start, transitions = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), size=K)
        theta = theta._replace(start=start, transitions=transitions)
    return problem, theta


def enumerated(logs, theta):
    """Return log-likelihood, γ and expected transitions by all paths."""
    total, gamma, counts = 0.0, np.zeros(logs.shape), np.zeros((K, K))
    for path in itertools.product(range(K), repeat=len(logs)):
        p = theta.start[path[0]] * np.exp(sum(logs[t, z] for t, z in enumerate(path)))
        for pair in itertools.pairwise(path):
            p *= theta.transitions[pair]
        total += p
        gamma[range(len(logs)), path] += p
        for pair in itertools.pairwise(path):
            counts[pair] += p
    return np.log(total), gamma / total, counts / total


def check_by_enumeration(problem, theta):
    bound, source, compute = problem.bound, problem.source, problem.compute
    mean = 0.0
    for i in range(source.n):
        batch = source.take(np.array([i]))
        logs = bound.log_densities(batch.y, theta)
        value, gamma, counts = enumerated(logs, theta)
        rows, log_likelihood = compute._posterior(batch, theta)
        np.testing.assert_allclose(log_likelihood, value, rtol=0, atol=1e-12 * max(1.0, abs(value)))
        emissions = bound.of_emissions(batch.y, theta, gamma, np.ones(len(gamma)))
        expected = np.hstack([gamma[0], counts.ravel(), emissions])
        np.testing.assert_allclose(rows[0], expected, rtol=1e-10, atol=1e-12)
        mean = mean + batch.weight[0] * expected / source.total_weight
    np.testing.assert_allclose(compute.full(theta), mean, rtol=1e-10, atol=1e-12)
    counts = bound.emissions.unpack(bound.unpack(mean).emissions).weights
    assert counts.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", GAUSSIAN)
@pytest.mark.parametrize("missing", ["ignore", "error"])
def test_gaussian_emissions(kind, form, missing):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(10, 2))
    if missing == "ignore":
        y[3, 0] = y[4, 1] = np.nan
        y[5] = np.nan
    emissions = models.GaussianMixtureModel(K, covariance=kind, reg_covar=1e-3, missing=missing)
    problem, theta = problem_of(emissions, source_of(y, [4, 1, 5], np.array([1.0, 0.5, 2.0])), form)
    check_by_enumeration(problem, theta)
    if missing == "ignore":  # a step that is missing as a whole has likelihood one
        steps = problem.source.take(np.array([2])).y
        assert (problem.bound.log_densities(steps, theta)[0] == 0.0).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "binomial"] + ["binomial(trials=4)"])
def test_every_family_as_emission(family, form):
    y = rows_for(family, np.random.default_rng(0), 30)
    problem, theta = problem_of(models.MixtureModel(K, family), source_of(y[:10], [4, 1, 5]), form)
    check_by_enumeration(problem, theta)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pattern", range(16))
def test_every_pattern_of_missing_cells(pattern, form):
    y = np.random.default_rng(0).poisson(3.0, size=(7, 2)).astype(float)
    y[2:4][np.array([pattern >> bit & 1 for bit in range(4)], dtype=bool).reshape(2, 2)] = np.nan
    problem, theta = problem_of(
        models.MixtureModel(K, "poisson", missing="ignore"), source_of(y, [4, 3]), form
    )
    check_by_enumeration(problem, theta)


def test_mixed_columns():
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.poisson(3.0, size=10), rng.normal(size=10), rng.integers(0, 2, size=10)])
    y[4, 1] = np.nan
    emissions = models.MixtureModel(K, {"poisson": [0], "gaussian": [1], "bernoulli": [2]}, missing="ignore")
    check_by_enumeration(*problem_of(emissions, source_of(y, [5, 5])))


def both(emissions, source, theta, **chain):
    """Return the statistics, the rows and the objectives of the two forms."""
    found = []
    for form in FORMS:
        problem = Problem(MarkovModel(emissions, **chain), source, placement=Placement(form=form))
        s, memory = problem.compute.remember(theta)
        found.append((s, memory, problem.compute.objective(theta), problem.compute.full(theta)))
    return zip(*found, strict=True)


@pytest.mark.parametrize("scale", [1.0, 20.0, 300.0, 3000.0])
@pytest.mark.parametrize("zeros", [False, True])
def test_compiled_passes_are_the_definition_also_where_numbers_underflow(scale, zeros):
    rng = np.random.default_rng(3)
    y = scale * rng.normal(size=(400, 1))
    source = source_of(y, [1, 9, 190, 200])
    emissions = models.GaussianMixtureModel(K, covariance="diag", reg_covar=1e-3)
    _problem, theta = problem_of(emissions, source)
    means = scale * np.array([[-1.0], [0.0], [1.0]])
    theta = theta._replace(emissions=emissions.theta(means=means, covariances=np.ones((K, 1))))
    if zeros:  # left-right
        transitions = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])
        theta = theta._replace(start=np.array([1.0, 0.0, 0.0]), transitions=transitions)
    # Logarithms of the definition have up to 1e7 here, and their last digits are its error.
    for one, other in both(emissions, source, theta):
        np.testing.assert_allclose(other, one, rtol=1e-10 * max(scale, 10.0), atol=1e-12 * max(scale, 10.0))


def test_a_state_that_was_lost_comes_back():
    """The second state is impossible at first, and the only possible one after 2,000 steps."""
    logs = np.zeros((4, 1))
    y = np.concatenate([np.full((2000, 1), 0.0), np.full((2000, 1), 40.0), logs])
    emissions = models.GaussianMixtureModel(2, covariance="diag")
    theta = MarkovModel(emissions).theta(
        [0.5, 0.5], np.eye(2), means=[[0.0], [1.0]], covariances=np.ones((2, 1))
    )
    for one, other in both(emissions, source_of(y, [len(y)]), theta):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("kind", ["diag", "tied"])
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_long_sequences_are_computed_in_pieces(kind, far):
    rng = np.random.default_rng(0)
    y = far + rng.normal(size=(3 * STEPS + 5, 2))
    source = source_of(y, [3 * STEPS, 5], np.array([2.0, 1.0]))
    emissions = models.GaussianMixtureModel(K, covariance=kind, reg_covar=1e-3)
    _, theta = problem_of(emissions, source)
    for one, other in both(emissions, source, theta):
        np.testing.assert_allclose(other, one, rtol=1e-8, atol=1e-8 if far else 1e-11)


def test_threads_change_no_bit():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(40_000, 2))
    source = source_of(y, np.full(400, 100))
    emissions = models.GaussianMixtureModel(K, covariance="full", reg_covar=1e-3)
    problem, theta = problem_of(emissions, source)
    found = []
    for threads in (1, 2, 5):
        swiftem.set_threads(threads)
        found.append((problem.compute.full(theta), problem.compute.remember(theta)[1]))
    swiftem.set_threads(None)
    for s, memory in found[1:]:
        assert np.array_equal(s, found[0][0])
        assert np.array_equal(memory, found[0][1])


def test_impossible_sequences_are_an_error():
    source = source_of(np.array([[0.0], [1.0]]), [2])
    emissions = models.MixtureModel(1, "bernoulli", smoothing=0.0)
    problem = Problem(MarkovModel(emissions), source)
    theta = problem.model.theta([1.0], [[1.0]], probabilities=[[0.0]])
    if np.isfinite(problem.bound.log_densities(source.take(np.array([0])).y, theta)).all():
        pytest.skip("the family has no zero")
    with pytest.raises(ValueError, match="positive probability"):
        problem.compute.full(theta)


@pytest.mark.parametrize(
    "method",
    [
        methods.EM(),
        methods.OnlineEM(step_size=0.2, batch_size=4),
        methods.IncrementalEM(batch_size=4),
        methods.VarianceReducedEM(step_size=0.2, batch_size=4),
        methods.FastIncrementalEM(step_size=0.2, batch_size=4),
        methods.SpiderEM(step_size=0.2, batch_size=4),
        methods.Accelerated(methods.EM(), "squarem"),
        methods.OnlineEM(step_size=0.2, batch_size=4, order="weighted"),
    ],
    ids=lambda method: method.name,
)
def test_every_method_lowers_the_objective_and_resumes(method, tmp_path):
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, K, size=200), 5)
    y = rng.normal(5.0 * states)[:, None]
    source = source_of(y, np.full(50, 20), rng.uniform(0.5, 2.0, size=50))
    model = MarkovModel(models.GaussianMixtureModel(K, covariance="diag", reg_covar=1e-3))
    theta = model.theta(
        np.full(K, 1 / K),
        np.full((K, K), 1 / K),
        means=[[1.0], [4.0], [8.0]],
        covariances=9 * np.ones((K, 1)),
    )
    before = swiftem.objective(model, source, theta)
    whole = swiftem.run(model, source, method, theta0=theta, n_iter=60, seed=1)
    assert swiftem.objective(model, source, whole.theta) < before - 0.2
    half = swiftem.run(model, source, method, theta0=theta, n_iter=25, seed=1)
    rest = swiftem.run(model, source, method, theta0=half.theta, s0=half.s, state=half.state, n_iter=35)
    assert np.array_equal(rest.s, whole.s)
    kept = swiftem.run(
        model,
        source,
        method,
        theta0=theta,
        n_iter=25,
        seed=1,
        checkpoint=tmp_path / "run",
        checkpoint_every=5,
    )
    assert np.array_equal(kept.s, half.s)
    again = swiftem.run(
        model, source, method, theta0=theta, n_iter=60, seed=1, checkpoint=tmp_path / "run", resume=True
    )
    assert np.array_equal(again.s, whole.s)


def test_weighted_draws_estimate_the_statistics_of_all():
    rng = np.random.default_rng(0)
    source = source_of(rng.normal(size=(12, 1)), [1, 2, 3, 6], np.array([1.0, 4.0, 2.0, 0.5]))
    problem, theta = problem_of(models.GaussianMixtureModel(K, covariance="diag", reg_covar=1e-3), source)
    compute = problem.compute
    expected = compute.full(theta)
    rows = [compute.rows(source.take(np.array([i])), theta) for i in range(4)]
    uniform = np.mean([compute.mean(source.take(np.array([i])), rows[i]) for i in range(4)], axis=0)
    np.testing.assert_allclose(uniform, expected, atol=1e-14)
    compute.is_divided = True
    share = source.weight / source.weight.sum()
    drawn = sum(share[i] * compute.mean(source.take(np.array([i])), rows[i]) for i in range(4))
    np.testing.assert_allclose(drawn, expected, atol=1e-14)


def test_weights_count_sequences_several_times():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(9, 1))
    emissions = models.GaussianMixtureModel(K, covariance="diag", reg_covar=1e-3)
    twice = source_of(np.concatenate([y[:4], y[:4], y[4:7]]), [4, 4, 3])
    weighted = source_of(y, [4, 3, 2], np.array([2.0, 1.0, 0.0]))
    assert weighted.n == 2
    problem, theta = problem_of(emissions, weighted)
    other = Problem(problem.model, twice)
    np.testing.assert_allclose(other.bound.emissions.centre, problem.bound.emissions.centre)
    np.testing.assert_allclose(other.compute.full(theta), problem.compute.full(theta), atol=1e-14)


def test_priors_and_structural_zeros():
    rng = np.random.default_rng(0)
    source = source_of(rng.normal(size=(60, 1)), [20, 40])
    allowed = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)
    chain = {
        "startprob_prior": [3.0, 1.0, 1.0],
        "transmat_prior": 2.0,
        "start_allowed": np.array([True, True, False]),
        "transitions_allowed": allowed,
    }
    emissions = models.GaussianMixtureModel(K, covariance="diag", reg_covar=1e-3)
    problem, theta = problem_of(emissions, source, **chain)
    before = np.inf
    for _ in range(20):
        s = problem.compute.full(theta)
        objective = problem.compute.objective(theta)
        assert objective <= before + 1e-9
        before = objective
        counts = problem.bound.unpack(s).transitions * 60
        theta = problem.bound.m_step(s)
        wanted = np.where(allowed, counts + 1.0, 0.0)
        np.testing.assert_allclose(theta.transitions, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-12)
        assert theta.start[2] == 0.0
    s = s.copy()
    problem.bound.unpack(s).transitions[1] = 0.0
    free = Problem(MarkovModel(emissions, transitions_allowed=allowed), source).bound
    np.testing.assert_array_equal(free.m_step(s).transitions[1], [0.0, 0.5, 0.5])


def test_statistics_below_zero_are_read_as_zero():
    source = source_of(np.random.default_rng(0).normal(size=(60, 1)), [20, 40])
    problem, theta = problem_of(models.GaussianMixtureModel(K, covariance="diag", reg_covar=1e-3), source)
    s = problem.compute.full(theta)
    problem.bound.unpack(s).transitions[0, 1] = -1e-3
    assert problem.bound.in_domain(s)
    assert problem.bound.m_step(s).transitions[0, 1] == 0.0
    assert not problem.bound.in_domain(np.full_like(s, np.nan))


def test_mixtures_refuse_sequences_and_the_other_way_round():
    source = source_of(np.zeros((4, 1)), [4])
    with pytest.raises(TypeError, match="rows of numbers"):
        swiftem.run(models.GaussianMixtureModel(1), source, methods.EM(), n_iter=1)
    with pytest.raises(TypeError, match="sequences"):
        swiftem.run(MarkovModel(models.GaussianMixtureModel(1)), [0.0, 1.0], methods.EM(), n_iter=1)
    with pytest.raises(ValueError, match="device must be 'cpu'"):
        Problem(
            MarkovModel(models.GaussianMixtureModel(1, covariance="diag")),
            source,
            placement=Placement("torch:cpu"),
        )
