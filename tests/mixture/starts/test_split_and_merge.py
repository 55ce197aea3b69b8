"""Which component is split, which two are merged, and what that promises."""

import numpy as np
import pytest

import swiftem
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.mixture.candidates import split_component
from swiftem.mixture.starts.split_and_merge import (
    Anatomy,
    axes_of,
    merge_costs,
    proposed_moves,
    split_parts,
    theta_of,
)
from swiftem.models import GaussianMixtureModel, MixtureModel

KINDS = ("full", "tied", "diag", "spherical")


def made(parts, kind):
    return swiftem.GaussianMixture.from_parameters(*parts, covariance_type=kind)


def clusters(centres, n=400, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(centre, scale, size=(n, len(centre))) for centre in centres])


def fitted(X, kind, count, **parameters):
    return swiftem.GaussianMixture(
        count, covariance_type=kind, random_state=0, method="em", **parameters
    ).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_the_component_that_covers_two_clusters_is_split(kind):
    centres = [[0.0, 0.0], [20.0, 0.0], [20.0, 5.0]]
    X = clusters(centres)
    weights, means, _ = split_component(fitted(X, kind, 2), X)
    assert weights.sum() == pytest.approx(1)
    found = means[np.lexsort((means[:, 1], means[:, 0].round()))]
    np.testing.assert_allclose(found, centres, atol=0.5)
    np.testing.assert_allclose(weights, 1 / 3, atol=0.03)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 10])
def test_the_log_likelihood_rises_at_once(kind, d):
    rng = np.random.default_rng(d)
    X = clusters(4.0 * np.arange(6)[:, None] + rng.normal(size=(6, d)))
    mixture = fitted(X, kind, 1)
    for _ in range(3):
        parts = made(split_component(mixture, X), kind)
        assert parts.score(X) > mixture.score(X)
        mixture = parts.set_params(warm_start=True, method="em", tol=1e-7, max_iter=3000).fit(X)


def test_a_component_without_rows_has_no_parts():
    X = clusters([[0.0, 0.0], [9.0, 0.0]])
    model = GaussianMixtureModel(3, covariance="diag")
    means = [[0.0, 0.0], [9.0, 0.0], [1e3, 1e3]]
    theta = model.theta(weights=[0.5, 0.4, 0.1], means=means, covariances=np.full((3, 2), 0.25))
    rows = Anatomy(Problem(model, ArraySource(X)), theta)
    assert len(rows.rows_of(2)[0].y) == 0
    assert {parts.k for parts in split_parts(rows, rows)} == {0, 1}


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_heavy_tails_are_split_by_scale(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1)) * np.where(rng.random((3000, 1)) < 0.5, 0.3, 3.0)
    _, means, covariances = split_component(fitted(X, kind, 1), X)
    assert abs(means[0, 0] - means[1, 0]) < 0.5
    assert covariances.max() > 10 * covariances.min()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_count(kind):
    X = clusters([[0.0, 0.0], [20.0, 0.0], [20.0, 5.0], [0.0, 5.0]])
    weight = np.where(X[:, 0] < 10, 1.0, 0.01)  # the pair on the right hardly counts
    by_sides = (X[:, 0] > 10).astype(int)
    mixture = swiftem.GaussianMixture(2, covariance_type=kind, init_params=lambda *_: by_sides)
    mixture.fit(X, sample_weight=weight)
    _, means, _ = split_component(mixture, X, weight)
    left = means[means[:, 0] < 10]
    assert len(left) == 2
    assert np.ptp(left[:, 1]) == pytest.approx(5, abs=0.5)


@pytest.mark.filterwarnings("ignore:Components that sit on few")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "X", [np.repeat(np.eye(3), 20, axis=0), np.zeros((30, 2)), np.eye(2)], ids=["three", "one", "two rows"]
)
def test_rows_that_repeat_give_a_mixture(kind, X):
    mixture = fitted(X, kind, 1)
    parts = made(split_component(mixture, X), kind)  # from_parameters refuses what is not a mixture
    assert np.isfinite(parts.score(X))


def models():
    """Yield problems whose components 0 and 1 are one, and whose component 2 is two, with their θ."""
    rng = np.random.default_rng(0)
    for name in (*KINDS, "holes", "poisson", "student-t"):
        X = np.concatenate([rng.normal(m, 1.0, size=(500, 2)) for m in (4.0, 24.0, 44.0)])
        labels = np.repeat([0, 2, 2], 500)
        labels[:250] = 1
        if name == "poisson":
            X = rng.poisson(X.clip(0.0)).astype(float)
        if name == "holes":
            X[rng.random(X.shape) < 0.05] = np.nan
            X[np.isnan(X).all(axis=1)] = 0.0
        if name in ("poisson", "student-t"):
            model = MixtureModel(3, name)
        else:
            kind = "full" if name == "holes" else name
            model = GaussianMixtureModel(
                3, covariance=kind, reg_covar=1e-6, missing="ignore" if name == "holes" else "error"
            )
        source = ArraySource(X, allow_missing=name == "holes")
        problem = Problem(model, source)
        start = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        means = np.array([start[labels == k].mean(axis=0) for k in range(3)])
        if name == "poisson":
            theta = model.theta(rates=means)
        elif name == "student-t":
            theta = model.theta(means=means, scales=[np.eye(2) * (1, 1, 100)[k] for k in range(3)],
                                degrees_of_freedom=[30.0] * 3)  # fmt: skip
        else:
            shapes = {
                "full": [np.eye(2), np.eye(2), 100.0 * np.eye(2)], "tied": 20.0 * np.eye(2),
                "diag": [[1.0] * 2, [1.0] * 2, [100.0] * 2], "spherical": [1.0, 1.0, 100.0],
            }  # fmt: skip
            theta = model.theta(means=means, covariances=shapes[model.covariance])
        yield name, problem, theta


@pytest.mark.parametrize("case", list(models()), ids=lambda case: case[0])
def test_the_best_move_is_the_one_that_is_needed(case):
    _, problem, theta = case
    sure, others = proposed_moves(problem, problem, theta, 4, 1e-4)
    assert sure
    before = problem.compute.objective(theta)
    moved = min((move.theta for move in sure), key=problem.compute.objective)
    assert problem.compute.objective(moved) < before - 0.1
    means = np.sort((moved.means if hasattr(moved, "means") else next(iter(moved.params.values())))[:, 0])
    np.testing.assert_allclose(means, [4.0, 24.0, 44.0], atol=1.5)
    assert len(others) <= 4
    assert proposed_moves(problem, problem, theta, 4, 100.0) == ([], [])  # no split gains so much


@pytest.mark.parametrize("case", list(models()), ids=lambda case: case[0])
def test_statistics_of_the_components_are_those_of_the_mixture(case):
    name, problem, theta = case
    if name == "holes":
        pytest.skip("they are of completed rows")
    rows = Anatomy(problem, theta)
    whole = problem.bound.m_step(problem.compute.full(theta))
    found = theta_of(rows.bound, rows.statistics)
    np.testing.assert_allclose(found.weights, whole.weights, rtol=1e-9)
    if hasattr(found, "means"):
        np.testing.assert_allclose(found.covariances, whole.covariances, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_gains_and_costs_are_what_they_promise(kind):
    """A split gains at least what it promises; a merge costs at most that, before em."""
    centres = [[0.0, 0.0], [6.0, 0.0], [6.0, 3.0]]
    X = clusters(centres)
    problem = Problem(GaussianMixtureModel(2, covariance=kind, reg_covar=1e-6), ArraySource(X))
    mixture = fitted(X, kind, 2)
    theta = mixture._theta(2)
    rows = Anatomy(problem, theta)
    best = split_parts(rows, rows)[0]
    parts = made(split_component(mixture, X), kind)
    assert 0.0 < best.gain <= parts.score(X) - mixture.score(X) + 0.02
    (cost, pair), *_ = merge_costs(rows, rows, 3)
    assert pair == (0, 1)
    one = fitted(X, kind, 1)
    assert cost == pytest.approx(mixture.score(X) - one.score(X), rel=0.1)


def test_axes_of_few_rows_are_those_of_the_large_matrix():
    z = np.random.default_rng(1).normal(size=(8, 30)) * np.linspace(1.0, 3.0, 30)
    values, vectors = axes_of(z)
    large, of_large = np.linalg.eigh(z.T @ z)
    np.testing.assert_allclose(values, large[-8:], rtol=1e-10)
    np.testing.assert_allclose(np.abs((vectors * of_large[:, -8:]).sum(axis=0)), 1.0, rtol=1e-10)
