"""Models of rows with missing cells: against densities of the observed cells, and complete data."""

import numpy as np
import pytest
from helpers import leaves
from scipy import stats

import swiftem
from swiftem import methods, models
from swiftem.core.checks import MemoryLimitError
from swiftem.core.compute import Placement
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.mixture.families import FAMILIES, Poisson, StudentT, read_family
from swiftem.mixture.families.observed import Observed, ObservedT, complete, observed, widened

N, D, M = 600, 4, 3
KINDS = ("full", "tied", "diag", "spherical")
COLUMNS = (
    "bernoulli", "poisson", "binomial(trials=6)", "exponential", "gamma", "inverse-gaussian", "log-normal",
    "gaussian", "gaussian(covariance='spherical')", "categorical", "mixed",
)  # fmt: skip
STUDENT_T = "student-t(covariance='diag')"
NAMES = (*COLUMNS, STUDENT_T, "student-t(covariance='diag',degrees_of_freedom=4.0)", *KINDS)
"""Families, and kinds of covariance."""
METHODS = (
    methods.OnlineEM(batch_size=50), methods.IncrementalEM(batch_size=50),
    methods.VarianceReducedEM(batch_size=50), methods.FastIncrementalEM(batch_size=50),
    methods.SpiderEM(batch_size=50), methods.OptFIEM(batch_size=50),
)  # fmt: skip
WEIGHT = np.random.default_rng(2).uniform(0.5, 2.0, N)
every_name = pytest.mark.parametrize("name", NAMES)


def family_of(name):
    mixed = {"gaussian": [1, 3], "poisson": [0], "categorical": [2]}
    return read_family(mixed if name == "mixed" else name)


def rows_of(name, seed=0):
    """Return complete rows (N, D) with three components."""
    if name in KINDS:
        return normal_rows(seed)
    rng = np.random.default_rng(seed)
    z = rng.integers(M, size=(N, 1))
    at = z + 0.2 * np.arange(D)
    draws = {
        "bernoulli": rng.random((N, D)) < 0.15 + 0.2 * at,
        "poisson": rng.poisson(1.0 + 3.0 * at),
        "binomial(trials=6)": rng.binomial(6, 0.1 + 0.25 * at / 1.5),
        "exponential": rng.exponential(1.0 + 4.0 * at),
        "gamma": rng.gamma(3.0, 1.0 + 2.0 * at),
        "inverse-gaussian": rng.wald(1.0 + 4.0 * at, 20.0),
        "log-normal": np.exp(rng.normal(at, 0.5)),
        "categorical": np.minimum(rng.poisson(0.3 + at), 4),
    }
    gaussian = rng.normal(100.0 + 3.0 * at, 1.0)
    if name.startswith("student-t"):
        return 100.0 + 4.0 * at + rng.standard_t(4.0, size=(N, D))
    if name == "mixed":
        columns = draws["poisson"][:, 0], gaussian[:, 1], draws["categorical"][:, 2], gaussian[:, 3]
        return np.column_stack(columns)
    return draws.get(name, gaussian).astype(float)


def with_holes(X, share=0.25, seed=1):
    rng = np.random.default_rng(seed)
    H = np.array(X, dtype=float)
    H[rng.random(H.shape) < share] = np.nan
    H[3] = np.nan  # a row with nothing observed
    return H


def model_of(name, **options):
    if name in KINDS:
        return normal_model(name, **options)
    return models.MixtureModel(M, family_of(name), missing="ignore", **options)


def bound_of(model, H, weight=None):
    return model.bind(ArraySource(H, weight, allow_missing=True))


def normal_model(kind, **options):
    return models.GaussianMixtureModel(M, covariance=kind, missing="ignore", **options)


def normal_rows(seed=0):
    rng = np.random.default_rng(seed)
    maps, means, z = rng.normal(size=(M, D, D)), 5.0 * rng.normal(size=(M, D)), rng.integers(M, size=N)
    return 100.0 + means[z] + np.einsum("nij,nj->ni", maps[z], rng.normal(size=(N, D)))


def matrix(theta, kind, m):
    """Return the covariance matrix of a component."""
    found = theta.covariances
    if kind == "tied":
        return found
    return found[m] if kind == "full" else np.diag(np.broadcast_to(found[m], D))


def flat(theta):
    """Return all numbers of parameters."""
    parts = theta if hasattr(theta, "means") else (theta.weights, numbers(theta.params))
    return np.concatenate([np.ravel(part) for part in leaves(tuple(parts))])


def numbers(params):
    return [numbers(part) if isinstance(part, dict) else part for part in params.values()]


def em(problem, theta, passes):
    """Return parameters after passes of em, and the objective before each."""
    values = []
    for _ in range(passes):
        values.append(problem.compute.objective(theta))
        theta = problem.bound.m_step(problem.compute.full(theta))
    return theta, values


def begin(problem, seed=0):
    return problem.bound.initial_theta(np.random.default_rng(seed))


@pytest.mark.parametrize("name", COLUMNS)
def test_the_density_is_that_of_the_observed_columns(name):
    """A row with a hole has the density of the family without that column."""
    X = rows_of(name)
    bound = bound_of(model_of(name), with_holes(X))
    theta = bound.initial_theta(np.random.default_rng(0))
    family, kind = complete(bound.family), bound.family
    logits, _ = family.e_step(X, theta.params)
    base = family.log_base(X)
    whole = logits if base is None else logits + base[:, None]
    total = np.zeros_like(whole)
    for j in range(D):  # of one column alone: the others are missing
        alone = np.full_like(X, np.nan)
        alone[:, j] = X[:, j]
        logits, _ = kind.e_step(alone, theta.params)
        base = kind.log_base(alone)
        total += logits if base is None else logits + base[:, None]
    np.testing.assert_allclose(total, whole, rtol=1e-10, atol=1e-9)
    nothing = np.full((1, D), np.nan)
    np.testing.assert_allclose(bound.e_step(nothing, theta)[0][0], theta.weights, rtol=1e-12)
    assert kind.e_step(nothing, theta.params)[0] == pytest.approx(np.zeros((1, M)), abs=1e-300)


@pytest.mark.parametrize("name", [*KINDS, STUDENT_T])
def test_the_e_step_is_that_of_scipy_for_the_observed_cells(name):
    H = with_holes(rows_of(name))
    problem = Problem(model_of(name), ArraySource(H, allow_missing=True))
    theta, _ = em(problem, begin(problem), 3)
    found = problem.compute.evaluate(theta, responsibilities=True)
    for i in range(80):
        o = ~np.isnan(H[i])
        joint = theta.weights.copy()
        for m in range(M):
            if o.any():
                joint[m] *= law(name, theta, m, o).pdf(H[i][o])
        assert found.log_likelihood[i] == pytest.approx(np.log(joint.sum()), abs=1e-9)
        np.testing.assert_allclose(found.responsibilities[i], joint / joint.sum(), rtol=1e-8, atol=1e-12)


def law(name, theta, m, o):
    """Return SciPy's distribution of the observed cells in a component."""
    if name in KINDS:
        return stats.multivariate_normal(theta.means[m][o], matrix(theta, name, m)[np.ix_(o, o)])
    means, scales, degrees = (theta.params[key][m] for key in ("means", "scales", "degrees_of_freedom"))
    return stats.multivariate_t(means[o], np.diag(scales[o]), degrees)


PRIOR = models.NormalInverseWishart(7.0, 2.0, mean_precision=0.5)


@pytest.mark.parametrize(("name", "prior"), [*((name, None) for name in NAMES), *((k, PRIOR) for k in KINDS)])
def test_em_is_monotone_and_its_limit_is_stationary(name, prior):
    options = {} if prior is None else {"prior": prior}
    problem = Problem(
        model_of(name, **options), ArraySource(with_holes(rows_of(name)), WEIGHT, allow_missing=True)
    )
    theta, values = em(problem, begin(problem), 60)
    assert (np.diff(values) < 1e-11).all()
    assert values[0] - values[-1] > 0.01
    if name == "gamma":  # its M-step is Newton's
        return
    theta, _ = em(problem, theta, 40 if name in KINDS else 1500)
    best = problem.compute.objective(theta)  # no step in a parameter is better
    for moved in nearby(problem, name, theta):
        assert problem.compute.objective(moved) > best - (1e-6 if name in KINDS else 1e-7)


def nearby(problem, name, theta):
    """Yield parameters of which one is a little larger or smaller."""
    for factor in (1.0 - 1e-3, 1.0 + 1e-3):
        if name in KINDS:
            yield theta._replace(means=problem.bound.centre + factor * (theta.means - problem.bound.centre))
            parts = {"weights": theta.weights, "means": theta.means}
            yield problem.model.theta(**parts, covariances=factor * theta.covariances)
            continue
        blocks = theta.params.items() if name == "mixed" else [(None, theta.params)]
        for own, block in blocks:
            for key, value in block.items():
                if (key == "probabilities" and value.ndim == 3) or f"{key}=" in name:
                    continue
                changed = np.clip(value * factor, 0.0, 1.0) if "prob" in key else value * factor
                moved = {**block, key: changed}
                yield theta._replace(params=moved if own is None else {**theta.params, own: moved})


@pytest.mark.parametrize("weight", [None, WEIGHT])
@every_name
def test_every_kernel_has_the_sums_of_the_reference(name, weight):
    source = ArraySource(with_holes(rows_of(name)), weight, allow_missing=True)
    plain = Problem(model_of(name), source, placement=Placement.named("reference"))
    theta, _ = em(plain, begin(plain), 1)
    expected, value = plain.compute.full(theta), plain.compute.objective(theta)
    of_rows, batch = (
        plain.compute.evaluate(theta, responsibilities=True, labels=True),
        np.array([5, 3, 5, 99]),
    )
    for kernels in ("auto", "numpy"):
        found = Problem(plain.model, source, bound=plain.bound, placement=Placement.named(kernels)).compute
        np.testing.assert_allclose(found.full(theta), expected, rtol=1e-10, atol=1e-10)
        assert found.objective(theta) == pytest.approx(value, rel=1e-12)
        seen = found.evaluate(theta, responsibilities=True, labels=True)
        np.testing.assert_allclose(seen.log_likelihood, of_rows.log_likelihood, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(seen.responsibilities, of_rows.responsibilities, rtol=1e-8, atol=1e-12)
        np.testing.assert_array_equal(seen.labels, of_rows.labels)
        rows, wanted = (each.rows(source.take(batch), theta) for each in (found, plain.compute))
        np.testing.assert_allclose(rows, wanted, rtol=1e-9, atol=1e-10)


@every_name
def test_complete_rows_have_the_same_optimum(name):
    X = rows_of(name)
    model = (
        models.MixtureModel(M, family_of(name))
        if name not in KINDS
        else models.GaussianMixtureModel(M, covariance=name, prior=PRIOR, reg_covar=1e-6)
    )
    plain = Problem(model, ArraySource(X))
    masked = model_of(name, prior=PRIOR, reg_covar=1e-6) if name in KINDS else model.learnt(plain.source)
    masked = masked.with_holes()
    other = Problem(masked, ArraySource(X, allow_missing=True))
    assert other.bound.row_length >= plain.bound.row_length
    theta, _ = em(plain, begin(plain), 25)
    one, _ = em(other, begin(plain), 25)
    assert other.compute.objective(one) == pytest.approx(plain.compute.objective(theta), abs=1e-10)
    np.testing.assert_allclose(flat(one), flat(theta), rtol=1e-7, atol=1e-9)
    if name not in (*KINDS, STUDENT_T):
        return
    s = plain.compute.full(theta)
    wide, _ = masked.widened(s, plain.bound.centre)
    if name == "spherical":  # only the sum of the squares over the columns matters
        assert other.bound.m_step(wide).covariances == pytest.approx(plain.bound.m_step(s).covariances)
    else:
        np.testing.assert_allclose(wide, other.compute.full(theta), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("name", ["bernoulli", "gaussian", "categorical", "mixed", STUDENT_T, *KINDS[:3]])
@pytest.mark.filterwarnings("ignore:All .* steps of the run were rejected")
def test_methods_agree_with_the_reference(name, method):
    options = {"reg_covar": 1e-2} if name in KINDS else {"smoothing": 1.0}
    H, model = with_holes(rows_of(name)), model_of(name, **options)
    theta0 = bound_of(model, H).initial_theta(np.random.default_rng(0))
    found, expected = (
        swiftem.run(model, H, method, theta0=theta0, n_iter=25, seed=0, kernels=kernels)
        for kernels in ("auto", "reference")
    )
    np.testing.assert_allclose(flat(found.theta), flat(expected.theta), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", ["poisson", "gaussian", "categorical"])
def test_rows_without_holes_need_no_masses(name):
    model = model_of(name)
    bound = bound_of(model, rows_of(name))
    assert complete(bound.family) == bound.family
    assert (
        complete(bound_of(model, with_holes(rows_of(name))).family)
        != bound_of(model, with_holes(rows_of(name))).family
    )


def test_the_variance_of_all_columns_is_over_the_observed_cells():
    rng = np.random.default_rng(0)
    X = rng.normal([5.0, -3.0], [1.0, 4.0], size=(4000, 2))
    X[rng.random(4000) < 0.8, 1] = np.nan
    model = models.MixtureModel(1, "gaussian(covariance='spherical')", smoothing=0.0, missing="ignore")
    result = swiftem.run(model, X, methods.EM(), n_iter=3, seed=0)
    away = X - np.nanmean(X, axis=0)
    np.testing.assert_allclose(result.theta.params["means"][0], np.nanmean(X, axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.theta.params["variances"][0], np.nanmean(away**2), rtol=1e-10)


def test_families_without_independent_columns_take_no_missing_cells():
    for name, kind in FAMILIES.items():
        assert kind().takes_missing == (name not in ("student-t", "von-mises-fisher")), name
    H = with_holes(rows_of("gaussian"))
    with pytest.raises(ValueError, match=r"must not be missing in columns of family 'student-t', got .* row"):
        models.MixtureModel(2, "student-t", missing="ignore").bind(ArraySource(H, allow_missing=True))
    blocks = {"student-t": [0, 1], "poisson": [2, 3]}
    mixed = np.column_stack([rows_of("gaussian")[:, :2], with_holes(rows_of("poisson"))[:, 2:]])
    bound = models.MixtureModel(2, blocks, missing="ignore").bind(ArraySource(mixed, allow_missing=True))
    assert isinstance(bound.family.families[1], Observed)
    assert not isinstance(bound.family.families[0], Observed)
    theta = bound.initial_theta(np.random.default_rng(0))
    problem = Problem(bound.model, bound.source, bound=bound)
    _, values = em(problem, theta, 10)
    assert (np.diff(values) < 1e-10).all()


def test_statistics_of_complete_rows_in_the_form_for_holes():
    family = observed(read_family({"poisson": [0, 2], "categorical(levels=(3,))": [1]}))
    X = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 6.0]])
    plain = models.MixtureModel(2, complete(family)).bind(ArraySource(X), centre=np.zeros(5))
    wide = models.MixtureModel(2, family).bind(ArraySource(X), centre=np.zeros(8))
    batch, r = plain.source.take([0, 1]), np.array([[0.3, 0.7], [0.5, 0.5]])
    s = plain.unpack(plain.statistics(batch, r, batch.weight))
    expected = wide.unpack(wide.statistics(batch, r, batch.weight))
    np.testing.assert_allclose(widened(family, s.weights, s.sums), expected.sums, rtol=1e-14)


def test_a_family_with_a_base_must_have_it_by_column():
    class Odd(Poisson):
        def log_bases(self, y):
            return None

        def log_base(self, y):
            return -np.ones(len(y))

    with pytest.raises(ValueError, match=r"family 'poisson' must define log_bases"):
        Observed(Odd()).log_base(np.array([[1.0, np.nan]]))


def test_methods_that_remember_rows_remember_their_statistics(tmp_path):
    H, model = with_holes(normal_rows()), normal_model("full", reg_covar=1e-2)
    bound = bound_of(model, H)
    method = methods.IncrementalEM(batch_size=50)
    result = swiftem.run(model, H, method, n_iter=5, seed=0)
    assert result.state.method.memory.shape == (N, bound.size)
    limit = 50_000_000
    small = swiftem.run(model, H, method, n_iter=5, seed=0, memory_limit=limit, scratch=tmp_path)
    np.testing.assert_array_equal(small.theta.means, result.theta.means)
    with pytest.raises(MemoryLimitError, match="memory_limit must be at least"):
        swiftem.run(model, H, method, n_iter=5, seed=0, memory_limit=1000, scratch=tmp_path)


def test_unit_variances_take_no_missing_cells():
    with pytest.raises(ValueError, match="missing must be 'error' for covariance='unit'"):
        models.GaussianMixtureModel(2, missing="ignore")
    with pytest.raises(ValueError, match="missing must be"):
        models.GaussianMixtureModel(2, covariance="full", missing="drop")


def test_draws_share_the_weight_of_the_row():
    """A row whose observed cell is far has a small u: its missing cells vary more than the marginal does."""
    family = ObservedT(StudentT(covariance="diag"))
    params = {
        "means": np.zeros((1, 2)), "scales": np.ones((1, 2)), "degrees_of_freedom": np.array([3.0]),
    }  # fmt: skip
    given = np.tile([12.0, np.nan], (60_000, 1))
    found = family.drawn(given, params, np.zeros(len(given), dtype=int), np.random.default_rng(0))
    assert (found[:, 0] == 12.0).all()
    # y_2 | y_1 is a t with ν + 1 degrees of freedom and scale (ν + δ) / (ν + 1).
    expected = np.sqrt((3.0 + 144.0) / 4.0) * stats.t(4.0).ppf([0.1, 0.25, 0.75, 0.9])
    np.testing.assert_allclose(np.quantile(found[:, 1], [0.1, 0.25, 0.75, 0.9]), expected, rtol=0.03)


def test_what_must_be_complete():
    with pytest.raises(ValueError, match=r"got a missing .* give student-t\(covariance='diag'\)"):
        swiftem.Mixture(2, family="student-t", missing="ignore").fit(with_holes(rows_of(STUDENT_T)))
    y = np.full((5, 2), np.sqrt(0.5))
    y[2, 1] = np.nan
    with pytest.raises(ValueError, match="in row 2: a direction with a missing coordinate has no unit"):
        swiftem.Mixture(2, family="von-mises-fisher", missing="ignore").fit(y)
