"""Models of rows with missing cells: against densities of the observed cells, and complete data."""

import warnings

import numpy as np
import pytest
from scipy import stats

import swiftem
from swiftem import methods, models
from swiftem.core.checks import MemoryLimitError
from swiftem.core.compute import Placement
from swiftem.core.problem import Problem
from swiftem.data import ArraySource, BlockSource, NpySource
from swiftem.mixture.families import FAMILIES, Poisson, read_family
from swiftem.mixture.families.observed import Observed, complete, observed, widened

N, D, M = 600, 4, 3
KINDS = ("full", "tied", "diag", "spherical")
COLUMNS = (
    "bernoulli", "poisson", "binomial(trials=6)", "exponential", "gamma", "inverse-gaussian", "log-normal",
    "gaussian", "gaussian(covariance='spherical')", "categorical", "mixed",
)  # fmt: skip
METHODS = (
    methods.OnlineEM(batch_size=50), methods.IncrementalEM(batch_size=50),
    methods.VarianceReducedEM(batch_size=50), methods.FastIncrementalEM(batch_size=50),
    methods.SpiderEM(batch_size=50), methods.OptFIEM(batch_size=50),
)  # fmt: skip


def family_of(name):
    mixed = {"gaussian": [1, 3], "poisson": [0], "categorical": [2]}
    return read_family(mixed if name == "mixed" else name)


def rows_of(name, seed=0):
    """Return complete rows (N, D) of a family with three components."""
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


# --- independent columns -------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", COLUMNS)
def test_em_is_monotone_and_its_limit_is_stationary(name):
    H, weight = with_holes(rows_of(name)), np.random.default_rng(2).uniform(0.5, 2.0, N)
    problem = Problem(model_of(name), ArraySource(H, weight, allow_missing=True))
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    values = []
    for _ in range(60):
        values.append(problem.compute.objective(theta))
        theta = problem.bound.m_step(problem.compute.full(theta))
    assert (np.diff(values) < 1e-11).all()
    assert values[0] - values[-1] > 0.01
    if name == "gamma":  # its M-step is Newton's
        return
    for _ in range(1500):
        theta = problem.bound.m_step(problem.compute.full(theta))
    best = problem.compute.objective(theta)  # no step in a parameter is better
    for block in theta.params.values() if name == "mixed" else [theta.params]:
        for key, value in block.items():
            if key == "probabilities" and value.ndim == 3:
                continue
            for factor in (1.0 - 1e-3, 1.0 + 1e-3):
                moved = {**block, key: np.clip(value * factor, 0.0, 1.0) if "prob" in key else value * factor}
                params = moved
                if name == "mixed":
                    own = next(part for part in theta.params if theta.params[part] is block)
                    params = {**theta.params, own: moved}
                assert problem.compute.objective(theta._replace(params=params)) > best - 1e-7


@pytest.mark.parametrize("name", COLUMNS)
def test_every_kernel_has_the_sums_of_the_reference(name):
    H, weight = with_holes(rows_of(name)), np.random.default_rng(2).uniform(0.5, 2.0, N)
    source = ArraySource(H, weight, allow_missing=True)
    plain = Problem(model_of(name), source, placement=Placement.named("reference"))
    theta = plain.bound.m_step(plain.compute.full(plain.bound.initial_theta(np.random.default_rng(0))))
    expected, value = plain.compute.full(theta), plain.compute.objective(theta)
    for kernels in ("auto", "numpy"):
        found = Problem(plain.model, source, bound=plain.bound, placement=Placement.named(kernels)).compute
        np.testing.assert_allclose(found.full(theta), expected, rtol=1e-11, atol=1e-12)
        assert found.objective(theta) == pytest.approx(value, rel=1e-12)
        seen = found.evaluate(theta, responsibilities=True)
        np.testing.assert_allclose(
            seen.responsibilities, plain.compute.evaluate(theta, responsibilities=True).responsibilities,
            rtol=1e-9, atol=1e-12,
        )  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_complete_rows_have_the_same_optimum(name):
    X = rows_of(name)
    plain = Problem(models.MixtureModel(M, family_of(name)), ArraySource(X))
    theta = one = plain.bound.initial_theta(np.random.default_rng(0))
    masked = plain.model.learnt(plain.source).with_holes()
    other = Problem(masked, ArraySource(X, allow_missing=True))
    assert other.bound.family != plain.bound.family
    for _ in range(25):
        theta = plain.bound.m_step(plain.compute.full(theta))
        one = other.bound.m_step(other.compute.full(one))
    assert other.compute.objective(one) == pytest.approx(plain.compute.objective(theta), abs=1e-10)
    np.testing.assert_allclose(
        np.concatenate([np.ravel(part) for part in _leaves(one)]),
        np.concatenate([np.ravel(part) for part in _leaves(theta)]), rtol=1e-8, atol=1e-10,
    )  # fmt: skip


def _leaves(theta):
    def flat(params):
        return [
            leaf for part in params.values() for leaf in (flat(part) if isinstance(part, dict) else [part])
        ]

    return [theta.weights, *flat(theta.params)]


@pytest.mark.parametrize("name", ["poisson", "gaussian", "categorical"])
def test_rows_without_holes_need_no_masses(name):
    model = model_of(name)
    bound = bound_of(model, rows_of(name))
    assert complete(bound.family) == bound.family
    assert (
        complete(bound_of(model, with_holes(rows_of(name))).family)
        != bound_of(model, with_holes(rows_of(name))).family
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("name", ["bernoulli", "gaussian", "categorical", "mixed"])
def test_methods_agree_with_the_reference(name, method):
    H, model = with_holes(rows_of(name)), model_of(name, smoothing=1.0)
    theta0 = bound_of(model, H).initial_theta(np.random.default_rng(0))
    runs = [
        swiftem.run(model, H, method, theta0=theta0, n_iter=30, seed=0, kernels=kernels)
        for kernels in ("auto", "reference")
    ]
    for found, expected in zip(_leaves(runs[0].theta), _leaves(runs[1].theta), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["poisson", "gaussian(covariance='spherical')", "categorical"])
def test_weights_are_repeated_rows(name):
    H = with_holes(rows_of(name))
    counts = np.random.default_rng(5).integers(0, 4, N)
    model = model_of(name)
    twice = bound_of(model, np.repeat(H, counts, axis=0))
    once = bound_of(model, H, counts)
    theta = twice.initial_theta(np.random.default_rng(0))
    for bound in (once, twice):
        assert bound.mean == pytest.approx(twice.mean, rel=1e-12)
        assert bound.kappa == twice.kappa
    a, b = (Problem(model, bound.source, bound=bound).compute.full(theta) for bound in (once, twice))
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


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
    values = []
    for _ in range(10):
        values.append(problem.compute.objective(theta))
        theta = bound.m_step(problem.compute.full(theta))
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


# --- full, tied, diagonal and spherical covariances ----------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_e_step_is_that_of_scipy_for_the_observed_cells(kind):
    H = with_holes(normal_rows())
    bound = bound_of(normal_model(kind), H)
    theta = bound.initial_theta(np.random.default_rng(0))
    for _ in range(3):
        batch = bound.source.take(np.arange(N))
        theta = bound.m_step(bound.statistics(batch, bound.posterior(batch, theta)[0], batch.weight / N))
    batch = bound.source.take(np.arange(80))
    rows, log_likelihood = bound.posterior(batch, theta)
    for i in range(80):
        o = ~np.isnan(H[i])
        joint = theta.weights.copy()
        for m in range(M):
            if o.any():
                covariance = matrix(theta, kind, m)[np.ix_(o, o)]
                joint[m] *= stats.multivariate_normal(theta.means[m][o], covariance).pdf(H[i][o])
        assert log_likelihood[i] == pytest.approx(np.log(joint.sum()), abs=1e-9)
        np.testing.assert_allclose(rows[i, :M], joint / joint.sum(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_completed_statistics_are_means_over_draws(kind):
    """Conditional means and covariances are those of rows drawn from the joint distribution."""
    bound = bound_of(normal_model(kind), with_holes(normal_rows()))
    theta = bound.initial_theta(np.random.default_rng(0))
    rng = np.random.default_rng(3)
    a = rng.normal(size=(D, D))
    covariance = a @ a.T
    covariances = np.stack([covariance] * M) if kind == "full" else covariance
    theta = bound.model.theta(weights=theta.weights, means=theta.means, covariances=covariances)
    row = theta.means[1] + rng.normal(size=D)
    row[[1, 3]] = np.nan
    o, u = [0, 2], [1, 3]
    draws = rng.multivariate_normal(theta.means[1], covariance, size=400_000)
    # Regression of the missing on the observed cells.
    x = draws[:, o] - theta.means[1][o]
    slope = np.linalg.lstsq(x, draws[:, u] - theta.means[1][u], rcond=None)[0]
    left = np.cov((draws[:, u] - theta.means[1][u] - x @ slope).T)
    source = ArraySource(row[None], allow_missing=True)
    rows, _ = bound.posterior(source.take([0]), theta)
    parts = bound.unpack(rows[0])
    r = parts.weights[1]
    expected = parts.sums[1] / r + bound.centre
    np.testing.assert_allclose(expected[o], row[o], rtol=1e-12)
    np.testing.assert_allclose(
        expected[u], theta.means[1][u] + (row[o] - theta.means[1][o]) @ slope, rtol=2e-2, atol=2e-2
    )
    if kind == "full":
        from swiftem.mixture.covariance import from_vech

        second = from_vech(parts.squares[1], D) / r
        found = second - np.outer(expected - bound.centre, expected - bound.centre)
        np.testing.assert_allclose(found[np.ix_(u, u)], left, rtol=2e-2, atol=2e-2)
        np.testing.assert_allclose(found[np.ix_(o, o)], 0.0, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kernel_of_gaussians_has_the_sums_of_the_reference(kind, weighted):
    H = with_holes(normal_rows())
    weight = np.random.default_rng(2).uniform(0.5, 2.0, N) if weighted else None
    source = ArraySource(H, weight, allow_missing=True)
    plain = Problem(normal_model(kind), source, placement=Placement.named("reference"))
    theta = plain.bound.m_step(plain.compute.full(plain.bound.initial_theta(np.random.default_rng(0))))
    expected, value = plain.compute.full(theta), plain.compute.objective(theta)
    of_rows = plain.compute.evaluate(theta, responsibilities=True, labels=True)
    for kernels in ("auto", "numpy"):
        found = Problem(plain.model, source, bound=plain.bound, placement=Placement.named(kernels)).compute
        np.testing.assert_allclose(found.full(theta), expected, rtol=1e-10, atol=1e-10)
        assert found.objective(theta) == pytest.approx(value, rel=1e-12)
        seen = found.evaluate(theta, responsibilities=True, labels=True)
        np.testing.assert_allclose(seen.log_likelihood, of_rows.log_likelihood, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(seen.responsibilities, of_rows.responsibilities, rtol=1e-8, atol=1e-12)
        np.testing.assert_array_equal(seen.labels, of_rows.labels)
        batch = source.take(np.array([5, 3, 5, 99]))
        np.testing.assert_allclose(
            found.rows(batch, theta), plain.compute.rows(batch, theta), rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("prior", [None, models.NormalInverseWishart(7.0, 2.0, mean_precision=0.5)])
@pytest.mark.parametrize("kind", KINDS)
def test_em_of_gaussians_is_monotone(kind, prior):
    problem = Problem(
        normal_model(kind, prior=prior), ArraySource(with_holes(normal_rows()), allow_missing=True)
    )
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    values = []
    for _ in range(60):
        values.append(problem.compute.objective(theta))
        theta = problem.bound.m_step(problem.compute.full(theta))
    assert (np.diff(values) < 1e-11).all()
    assert values[0] - values[-1] > 0.1
    best = problem.compute.objective(theta)
    for factor in (1.0 - 3e-3, 1.0 + 3e-3):
        away = theta.means - problem.bound.centre
        moved = theta._replace(means=problem.bound.centre + factor * away)
        assert problem.compute.objective(moved) > best - 1e-6
        options = {"weights": theta.weights, "means": theta.means, "covariances": factor * theta.covariances}
        assert problem.compute.objective(problem.model.theta(**options)) > best - 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_complete_rows_of_gaussians_have_the_same_optimum(kind):
    X, prior = normal_rows(), models.NormalInverseWishart(7.0, 2.0, mean_precision=0.5)
    plain = Problem(
        models.GaussianMixtureModel(M, covariance=kind, prior=prior, reg_covar=1e-6), ArraySource(X)
    )
    model = normal_model(kind, prior=prior, reg_covar=1e-6).with_holes()
    other = Problem(model, ArraySource(X, allow_missing=True))
    assert other.bound.code != plain.bound.code
    theta = one = plain.bound.initial_theta(np.random.default_rng(0))
    for _ in range(25):
        theta = plain.bound.m_step(plain.compute.full(theta))
        one = other.bound.m_step(other.compute.full(one))
    assert other.compute.objective(one) == pytest.approx(plain.compute.objective(theta), abs=1e-10)
    for found, expected in zip(one, theta, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    s, centre = plain.compute.full(theta), plain.bound.centre
    wide, _ = model.widened(s, centre)
    if kind == "spherical":  # only the sum of the squares over the columns matters
        assert other.bound.m_step(wide).covariances == pytest.approx(plain.bound.m_step(s).covariances)
    else:
        np.testing.assert_allclose(wide, other.compute.full(theta), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_methods_on_gaussians_agree_with_the_reference(kind, method):
    H, model = with_holes(normal_rows()), normal_model(kind, reg_covar=1e-2)
    theta0 = bound_of(model, H).initial_theta(np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # steps that leave the domain
        runs = [
            swiftem.run(model, H, method, theta0=theta0, n_iter=25, seed=0, kernels=kernels)
            for kernels in ("auto", "reference")
        ]
    for found, expected in zip(runs[0].theta, runs[1].theta, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


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


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_stored_rows_have_the_sums_of_an_array(kind, tmp_path):
    H = with_holes(normal_rows())
    np.save(tmp_path / "rows.npy", H)
    model = normal_model(kind)
    array = Problem(model, ArraySource(H, allow_missing=True))
    theta = array.bound.initial_theta(np.random.default_rng(0))
    for source in (
        NpySource(tmp_path / "rows.npy", allow_missing=True),
        BlockSource(lambda: iter(np.array_split(H, 7)), allow_missing=True),
    ):
        stored = Problem(model, source)
        np.testing.assert_allclose(stored.bound.centre, array.bound.centre, rtol=1e-13)
        np.testing.assert_allclose(
            stored.compute.full(theta), array.compute.full(theta), rtol=1e-10, atol=1e-10
        )
        np.testing.assert_allclose(
            stored.compute.evaluate(theta).log_likelihood, array.compute.evaluate(theta).log_likelihood
        )


def test_rows_of_one_pattern_cost_one_factorisation(monkeypatch):
    from swiftem.mixture.compute import conditionals

    H = np.random.default_rng(0).normal(size=(1500, 5))
    H[:1000, 2] = np.nan
    problem = Problem(normal_model("full"), ArraySource(H, allow_missing=True))
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    counted = []
    cholesky = np.linalg.cholesky
    monkeypatch.setattr(
        conditionals.np.linalg, "cholesky", lambda a: counted.append(a.shape[:-2]) or cholesky(a)
    )
    problem.compute.full(theta)
    assert counted == [(2, M)]


def test_unit_variances_take_no_missing_cells():
    with pytest.raises(ValueError, match="missing must be 'error' for covariance='unit'"):
        models.GaussianMixtureModel(2, missing="ignore")
    with pytest.raises(ValueError, match="missing must be"):
        models.GaussianMixtureModel(2, covariance="full", missing="drop")
