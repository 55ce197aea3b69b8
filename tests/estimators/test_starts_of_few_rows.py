"""Starts of fits to few rows, and em of several mixtures at once."""

import tracemalloc
import warnings

import numpy as np
import pytest
from mixture_data import assert_same_model, blobs
from swiftem.mixture.starts.sample import is_scarce
from swiftem.mixture.starts.together import Together

import swiftem
from swiftem.core.compute import Placement
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.fit.stopping import MULTIPLE, Remaining
from swiftem.methods import Squarem
from swiftem.mixture.starts import few, find, halves, kinds, split
from swiftem.mixture.starts.candidate_starts import KINDS, start
from swiftem.mixture.starts.collapsed_components import at_floor
from swiftem.mixture.starts.em_of_candidates import accelerated
from swiftem.mixture.starts.find_starts import kind_of_start
from swiftem.mixture.starts.settings import StartSettings
from swiftem.models import GaussianMixtureModel, NormalInverseWishart


def grid(n=400, seed=0):
    """Return rows of 16 clusters, of which k-means with one start misses some."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(16, n, p=rng.dirichlet(np.full(16, 2.0)))
    return np.stack(np.divmod(labels, 4), axis=1) * 5.0 + rng.normal(size=(n, 2))


def fit(X, n_components, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return swiftem.GaussianMixture(n_components, **{"random_state": 0, **parameters}).fit(X)


def problem_of(X, n_components, kind="full"):
    model = GaussianMixtureModel(n_components, covariance=kind, reg_covar=1e-6)
    return Problem(model, ArraySource(X), placement=Placement.named("numpy"))


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("weighted", [False, True])
def test_several_mixtures_at_once_are_those_one_by_one(kind, weighted):
    X, _ = blobs(1500, 3, 4, apart=1.0)
    weight = np.random.default_rng(0).random(1500) + 0.5 if weighted else None
    model = GaussianMixtureModel(5, covariance=kind, reg_covar=1e-6)
    problem = Problem(model, ArraySource(X, weight))
    starts = [start(name, problem, np.random.default_rng(k)) for k, name in enumerate(KINDS)]
    together = Together(problem)
    found = together.improve(starts, 30, 1e-4)
    single = [accelerated(problem, theta, 30, 1e-4) for theta in starts]
    assert [passes for _, passes in found] == [passes for _, passes in single]
    assert len({passes for _, passes in found}) > 1  # some leave before the others
    for (one, _), (other, _) in zip(found, single, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(one.means, other.means, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(one.covariances, other.covariances, rtol=1e-6, atol=1e-7)
    objectives = [problem.compute.objective(theta) for theta, _ in found]
    np.testing.assert_allclose(together.objectives([theta for theta, _ in found]), objectives, rtol=1e-12)


def test_models_whose_components_depend_on_each_other_are_not_served():
    X, _ = blobs(300, 2, 3)
    assert Together.serves_problem(problem_of(X, 3))
    assert not Together.serves_problem(problem_of(X, 3, "tied"))
    prior = NormalInverseWishart(degrees_of_freedom=6, scale=4.0)
    model = GaussianMixtureModel(3, covariance="full", prior=prior)
    assert not Together.serves_problem(Problem(model, ArraySource(X)))


def test_rows_far_from_narrow_components_are_refused():
    X, _ = blobs(300, 2, 2)
    model = GaussianMixtureModel(2, covariance="full", reg_covar=1e-6)
    theta = model.theta(means=[[0.0, 0.0], [1e7, 0.0]], covariances=[1e-9 * np.eye(2)] * 2)
    with pytest.raises(ValueError, match="too far"):
        Together(Problem(model, ArraySource(X))).improve([theta], 3, 1e-4)


def test_the_best_of_several_starts():
    X = grid()
    found = np.array([fit(X, 16, random_state=seed).score(X) for seed in range(6)])
    single = np.array([fit(X, 16, random_state=seed, init_params="kmeans").score(X) for seed in range(6)])
    assert (found >= single - 1e-3).all()
    assert found.min() > single.mean()
    assert found.mean() > single.mean() + 0.01


def test_more_starts_are_no_worse():
    X = grid()
    for seed in range(4):
        more = fit(X, 16, random_state=seed, n_init=6)
        # Fits end within their tolerance.
        assert more.score(X) >= fit(X, 16, random_state=seed).score(X) - 2e-3


@pytest.mark.parametrize("method", ["em", "sem-vr"])
def test_where_starts_agree_the_fit_is_that_of_the_first(method):
    X, _ = blobs(300, 2, 3, apart=8.0)
    options = {"method": method, "tol": 1e-3}
    assert_same_model(fit(X, 3, **options), fit(X, 3, init_params="kmeans", **options))


def test_no_more_components_collapse_than_from_the_first_start():
    """Rows of which many repeat: components on them gain a likelihood without bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    X[:120] = X[rng.integers(120, 126, size=120)]
    problem = problem_of(X, 6)
    first = few.make_start(problem, StartSettings(), np.random.RandomState(0)).theta
    spread = X.var(axis=0)
    on_repeats = problem.model.theta(
        weights=np.full(6, 1 / 6), means=X[120:126], covariances=np.array([1e-6 * np.eye(2)] * 6)
    )
    rows = Together(problem)
    values = few._values(problem, rows, [first, on_repeats])
    counts = [at_floor(problem.bound, theta, spread).any(axis=1).sum() for theta in (first, on_repeats)]
    assert counts[0] < counts[1] == 6
    assert values[1] == -np.inf
    assert np.isfinite(values[0])
    assert np.isfinite(few._values(problem, rows, [on_repeats, first])).all()


def test_as_many_components_may_collapse_as_in_half_of_the_candidates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    problem = problem_of(X, 3)
    wide = problem.model.theta(weights=np.full(3, 1 / 3), means=X[:3], covariances=[np.eye(2)] * 3)
    narrow = [
        wide._replace(
            covariances=np.array([1e-6 * np.eye(2)] * count + [np.eye(2)] * (3 - count)),
            precisions_cholesky=np.array([1e3 * np.eye(2)] * count + [np.eye(2)] * (3 - count)),
        )
        for count in (1, 1, 2)
    ]
    values = few._values(problem, Together(problem), [wide, *narrow])
    assert np.isfinite(values).tolist() == [True, True, True, False]


def one_by_one(z, w, m, count, rng):
    """Return the labels of k-means from greedy k-means++, a run at a time, with the same draws."""
    trials = 2 + int(np.log(m))
    drawn = [rng.random((count, trials if k else 1)) for k in range(m)]
    found = []
    for run in range(count):
        centres = np.empty((0, z.shape[1]))
        near = np.ones(len(z))
        for k in range(m):
            best = np.inf
            for u in drawn[k][run]:
                row = min(
                    int(np.searchsorted(np.cumsum(w * near), u * (w * near).sum(), "right")), len(z) - 1
                )
                tried = np.vstack([centres, z[row]])
                away = ((z[:, None] - tried) ** 2).sum(axis=2).min(axis=1)
                if w @ away < best:
                    best, kept, kept_near = w @ away, tried, away
            centres, near = kept, kept_near
        for _ in range(kinds.SHORT):
            labels = ((z[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
            for k in range(m):
                if (labels == k).any():
                    centres[k] = np.average(z[labels == k], axis=0, weights=w[labels == k])
        found.append(((z[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1))
    return np.array(found)


@pytest.mark.parametrize("weighted", [False, True])
def test_k_means_of_all_are_those_one_by_one(weighted):
    rng = np.random.default_rng(3)
    z = rng.normal(size=(150, 3)) + 2.0 * rng.integers(0, 3, size=(150, 1))
    weight = rng.random(150) + 0.1 if weighted else None
    found = kinds.run_k_means(z, weight, 6, 5, kinds.SHORT, np.random.default_rng(7))
    expected = one_by_one(z, np.ones(150) if weight is None else weight, 6, 5, np.random.default_rng(7))
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found, axis=0)) > 1


def test_k_means_of_rows_that_are_all_the_same():
    found = kinds.run_k_means(np.zeros((20, 2)), None, 3, 2, kinds.SHORT, np.random.default_rng(0))
    assert found.shape == (2, 20)
    assert found.max() == 0


def test_the_longer_a_pass_takes_the_fewer_candidates():
    rng = np.random.default_rng(0)
    quick, slow = (problem_of(rng.normal(size=(n, d)), 20, "diag") for n, d in ((150, 5), (900, 60)))
    assert few.candidates(quick) == few.MOST
    assert few.candidates(slow) == few.LEAST


def test_few_rows_per_estimated_number_are_few():
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(1400, 60)), rng.normal(size=(1400, 3))
    assert is_scarce(problem_of(wide, 5, "diag"))
    assert not is_scarce(problem_of(narrow, 5, "diag"))
    assert not is_scarce(problem_of(rng.normal(size=(5000, 60)), 20, "diag"))
    assert not is_scarce(problem_of(rng.normal(size=(4999, 30)), 60, "diag"))  # a pass takes long
    for rows, kind in ((wide, "few"), (narrow, "race")):
        assert kind_of_start(problem_of(rows, 5, "diag"), StartSettings()) == kind


@pytest.mark.parametrize("lost", [0, 3], ids=["the first", "another"])
def test_candidates_without_an_m_step_are_left_out(monkeypatch, lost):
    X = grid()
    problem = problem_of(X, 16)
    thetas = [start(KINDS[3], problem, np.random.default_rng(k)) for k in range(5)]
    rows = Together(problem)
    improve = Together.improve

    def fails(self, group, passes, tol):
        if any(theta is thetas[lost] for theta in group):
            raise ValueError("no M-step")
        return improve(self, group, passes, tol)

    monkeypatch.setattr(Together, "improve", fails)
    assert len(few._after(rows, thetas, 3)) == (0 if lost == 0 else 4)


def test_threads_do_not_change_the_start():
    X, found = grid(900), []
    for threads in (1, 2):
        swiftem.set_threads(threads)
        try:
            found.append(fit(X, 16))
        finally:
            swiftem.set_threads(None)
    assert_same_model(*found)


def test_when_the_starts_are_compared(monkeypatch):
    X, _ = blobs(300, 2, 3)
    calls = []
    monkeypatch.setattr(
        find, "best_of_few",
        lambda *given: calls.append(1) or few.best_of_few(*given),
    )  # fmt: skip
    fit(X, 3)
    assert len(calls) == 1
    fit(X, 1)
    fit(X, 3, init_params="kmeans")
    fit(X, 3, means_init=X[:3])
    fit(X, 3, covariance_type="tied")
    assert len(calls) == 1


@pytest.mark.parametrize("n", [26_000, 26_001], ids=["of all rows", "of a sample"])
def test_after_a_race_em_finishes(n):
    X, _ = blobs(n, 3, 4, apart=1.0)
    assert fit(X, 4).method_ == "em"
    assert fit(X[:5000], 4, method="sem-vr", tol=1.0).method_ == "sem-vr"


def test_after_a_race_on_a_sample_the_end_is_closer(monkeypatch):
    estimator = swiftem.mixture.estimator
    made, plain = [], estimator.Fitting
    monkeypatch.setattr(estimator, "Fitting", lambda *given: made.append(plain(*given)) or made[-1])
    X, _ = blobs(26_001, 2, 3)
    fit(X, 3)
    fit(X[:26_000], 3)
    fit(X, 3, method="em")
    assert [one.multiple for one in made] == [estimator.AFTER_SAMPLE, MULTIPLE, MULTIPLE]
    assert isinstance(made[0].plan.acceleration, Squarem)
    bounds = (-1.0, -0.5, -0.45, -0.449)
    assert [Remaining(1e-2, 1000, multiple=m).small for m in (MULTIPLE, 0.5)] == [8e-2, 5e-3]
    for multiple, expected in ((MULTIPLE, True), (0.5, False)):
        remaining = Remaining(1e-2, 1000, multiple=multiple)
        assert [remaining.is_small(bound) for bound in bounds][-1] == expected


@pytest.mark.parametrize("given", [{"init_params": "k-means++"}, {"batch_size": 100}, {"step_size": 0.1}])
def test_without_a_race_or_with_steps_of_the_user_many_rows_are_fitted_by_another_method(given):
    X, _ = blobs(30_000, 3, 4, apart=1.0)
    assert fit(X, 4, tol=1.0, **given).method_ == "sem-vr"


def peak_of(call):
    """Return the most bytes that arrays have during a call, without those of modules and kernels."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


WIDE = np.random.default_rng(0).normal(size=(40, 6000)) + np.repeat([1.0, 0.0], 20)[:, None]
MATRIX = 8 * WIDE.shape[1] ** 2


@pytest.mark.parametrize("kind", ["diag", "spherical"])
@pytest.mark.parametrize("prior", [None, NormalInverseWishart(degrees_of_freedom=6100, scale=1.0)])
def test_fits_of_few_rows_and_many_columns_need_no_matrix_of_columns(kind, prior):
    assert peak_of(lambda: fit(WIDE, 2, covariance_type=kind, prior=prior)) < MATRIX
    labels = fit(WIDE, 2, covariance_type=kind, prior=prior).predict(WIDE)
    assert len(set(labels[:20])) == len(set(labels[20:])) == 1
    assert labels[0] != labels[-1]


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_splits_of_few_rows_and_many_columns_need_no_matrix_of_columns(kind):
    def select():
        return swiftem.select(WIDE, [1, 2], kind, random_state=0)

    assert peak_of(select) < MATRIX
    assert select().best.n_components == 2


def test_stochastic_fits_of_few_rows_and_many_columns_need_no_matrix_of_columns():
    assert peak_of(lambda: fit(WIDE, 2, covariance_type="diag", method="sem", max_iter=2)) < MATRIX


def test_axes_of_few_rows_are_those_of_the_large_matrix():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(8, 30)) * np.linspace(1.0, 3.0, 30)
    values, vectors = split.axes_of_few(z)
    large, of_large = np.linalg.eigh(z.T @ z)
    np.testing.assert_allclose(values, large[-8:], rtol=1e-10)
    np.testing.assert_allclose(np.abs((vectors * of_large[:, -8:]).sum(axis=0)), 1.0, rtol=1e-10)
    # Whitened rows have the same distances by either route.
    white, more = kinds.scaled_rows(z, "white"), kinds.scaled_rows(np.vstack([z] * 4), "white")[:8]
    np.testing.assert_allclose(white @ white.T, more @ more.T, atol=1e-8)
    # Parts along the longest tail are the same rows, on either side.
    weight = np.full(8, 1 / 8)
    once, four_times = halves._first(z, weight), halves._first(np.vstack([z] * 4), np.full(32, 1 / 32))[:8]
    for column in (1, 2, 3):
        assert set(once[:, column]) == {0.0, 1.0}
        assert abs((once[:, column] == four_times[:, column]).sum() - 4) == 4


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_matrices_that_the_memory_cannot_hold_are_refused(kind):
    X = np.zeros((3, 100_000))
    with pytest.raises(ValueError, match=r"covariance_type must be 'diag' or 'spherical' for 100000 columns"):
        swiftem.GaussianMixture(2, covariance_type=kind).fit(X)
