"""Splits and merges, whose gains and costs are computed on the rows of the components concerned."""

import numpy as np
import pytest
from swiftem.mixture.starts.halves import Seen, halves_of, losses_of_merges
from swiftem.mixture.starts.split import Gaussians

import swiftem
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.mixture.starts import halves as halving
from swiftem.mixture.starts.candidate_starts import gaussians
from swiftem.mixture.starts.collapsed_components import on_few_values
from swiftem.mixture.starts.split_and_merge import merged, moved, proposals
from swiftem.models import GaussianMixtureModel

KINDS = "full", "diag", "spherical"


def problem_of(X, count, kind="full", weight=None):
    return Problem(GaussianMixtureModel(count, covariance=kind, reg_covar=1e-6), ArraySource(X, weight))


def parts_of_groups(X, labels, kind):
    """Return weights, means and covariances of a kind of groups of rows."""
    weights, means, covariances = [], [], []
    for k in range(labels.max() + 1):
        own = X[labels == k]
        weights.append(len(own) / len(X))
        means.append(own.mean(axis=0))
        full = np.cov(own.T, bias=True)
        covariances.append(
            {"full": full, "diag": np.diag(full), "spherical": np.trace(full) / len(full)}[kind]
        )
    return np.array(weights), np.array(means), np.array(covariances)


def groups(n=6000, kind="full"):
    """Return rows of five groups, and labels by which the first two groups are one component."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0, 0], [3, 2, 0], [12, 0, 0], [0, 12, 0], [0, 0, 12]])
    shapes = 0.5 * np.eye(3) + 0.4 * rng.normal(size=(5, 3, 3))
    if kind != "full":
        shapes = np.eye(3) * (0.7 if kind == "spherical" else rng.uniform(0.5, 1.0, size=(5, 1, 3)))
        shapes = np.broadcast_to(shapes, (5, 3, 3))
    labels = rng.integers(0, 5, n)
    X = centres[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, 3)))
    return X, labels, np.maximum(labels - 1, 0)


def log_likelihood(X, kind, weights, means, covariances):
    mixture = swiftem.GaussianMixture.from_parameters(weights, means, covariances, covariance_type=kind)
    return mixture.score(X)


@pytest.mark.parametrize("kind", KINDS)
def test_a_component_of_two_groups_is_split_and_the_gain_is_a_bound(kind):
    X, labels, joined = groups(kind=kind)
    problem = problem_of(X, 4, kind)
    weights, means, covariances = parts_of_groups(X, joined, kind)
    theta = problem.model.theta(weights=weights, means=means, covariances=covariances)
    seen = Seen.by(theta, problem, len(X))
    found = halves_of(problem.bound, theta, seen, seen)
    best = found[0]
    assert best.k == 0
    assert best.gain > 10 * max(one.gain for one in found[1:])
    at = np.argsort(best.means[:, 0])
    np.testing.assert_allclose(best.means[at], parts_of_groups(X, labels, kind)[1][:2], atol=0.15)
    after = log_likelihood(
        X, kind, np.concatenate([weights[:1] * best.share, weights[1:]]),
        np.concatenate([best.means, means[1:]]), np.concatenate([best.covariances, covariances[1:]]),
    )  # fmt: skip
    gained = after - log_likelihood(X, kind, weights, means, covariances)
    assert 0.9 * gained < best.gain <= gained + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_those_of_em_written_out(kind, monkeypatch):
    """One start, and em for two weighted components in plain NumPy, in the coordinates of the data."""
    X = groups(900)[0]
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2.0, len(X))
    problem = problem_of(X, 1, kind, weight)
    given = parts_of_groups(X, np.zeros(len(X), dtype=int), kind)
    theta = problem.model.theta(weights=given[0], means=given[1], covariances=given[2])
    monkeypatch.setattr(halving, "_first", lambda z, w: (z[:, :1] > 0.0).astype(float))
    seen = Seen.by(theta, problem, len(X))
    one = halves_of(problem.bound, theta, seen, seen)[0]

    factor = theta.precisions_cholesky[0]
    z = (X - theta.means[0]) @ factor if kind == "full" else (X - theta.means[0]) * factor
    back = np.linalg.inv(factor) if kind == "full" else np.eye(3) / factor
    r, share = (z[:, 0] > 0.0).astype(float), weight / weight.sum()
    d, more, floor = 3, 3 / weight.sum(), 1e-6
    for _ in range(halving.FIRST + halving.PASSES):
        densities, means, covariances, shares = [], [], [], []
        for part in (r, 1.0 - r):
            own = part * share
            mean = own @ z / own.sum()
            scatter = (z - mean).T @ ((z - mean) * own[:, None])
            if kind == "spherical":
                scatter = np.trace(scatter) / d * np.eye(d)
            elif kind == "diag":
                scatter = np.diag(np.diag(scatter))
            # In the coordinates of the component, reg_covar is added to the data's covariance.
            covariance = (scatter + more * np.eye(d)) / (own.sum() + more)
            covariance += (
                floor * np.linalg.inv(back) @ np.linalg.inv(back).T
                if kind != "full"
                else (floor * factor.T @ factor)
            )
            away = z - mean
            square = (away @ np.linalg.inv(covariance) * away).sum(axis=1)
            densities.append(own.sum() * np.exp(-0.5 * square) / np.sqrt(np.linalg.det(covariance)))
            shares.append(own.sum())
            means.append(theta.means[0] + mean @ back)
            covariances.append(back.T @ covariance @ back)
        r = densities[0] / (densities[0] + densities[1])
    np.testing.assert_allclose(one.share, shares, rtol=1e-8)
    np.testing.assert_allclose(one.means, means, rtol=1e-7, atol=1e-9)
    expected = np.array(covariances)
    if kind != "full":
        expected = np.einsum("mjj->mj", expected)
        expected = expected[:, 0] if kind == "spherical" else expected
    np.testing.assert_allclose(one.covariances, expected, rtol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_merge_costs_is_a_bound(kind):
    X, labels, _ = groups()
    problem = problem_of(X, 5, kind)
    parts = parts_of_groups(X, labels, kind)
    theta = problem.model.theta(weights=parts[0], means=parts[1], covariances=parts[2])
    seen, mixture = Seen.by(theta, problem, len(X)), gaussians(problem.bound, theta)
    before = log_likelihood(X, kind, *parts)
    for pair in ((0, 1), (1, 4)):
        both = merged(Gaussians(kind, *(part[list(pair)] for part in parts)), 0, 1)
        (cost,) = losses_of_merges(problem.bound, both, [pair], seen)
        lost = before - log_likelihood(X, kind, *merged(mixture, *pair)[1:])
        assert 0.0 < lost <= cost + 1e-6
        assert cost < 1.1 * lost


def test_parts_of_a_narrow_component_gain_nothing_below_reg_covar():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) * [1.0, 1.0, 1e-5]
    problem = problem_of(X, 1)
    covariance = np.cov(X.T, bias=True) + 1e-6 * np.eye(3)
    theta = problem.model.theta(weights=[1.0], means=[X.mean(axis=0)], covariances=[covariance])
    seen = Seen.by(theta, problem, len(X))
    assert halves_of(problem.bound, theta, seen, seen)[0].gain < 0.01


def test_several_moves_are_done_at_once():
    rng = np.random.default_rng(0)
    centres = np.arange(8) * 20.0
    X = np.concatenate([rng.normal(m, 1.0, size=(400, 2)) for m in centres])
    problem = problem_of(X, 8)
    # Groups 0 and 1 have two components each, 2 and 3 share one, and so do 4 and 5.
    means = np.array([0.0, 0.0, 20.0, 20.0, 50.0, 90.0, 120.0, 140.0])
    wide = np.array([0, 0, 0, 0, 100.0, 100.0, 0, 0])
    theta = problem.model.theta(
        weights=[1 / 16] * 4 + [1 / 4] * 2 + [1 / 8] * 2, means=np.repeat(means[:, None], 2, axis=1),
        covariances=np.eye(2) + wide[:, None, None] * np.ones((2, 2)),
    )  # fmt: skip
    found = proposals(problem, problem, theta, 4)
    assert sorted((one.pair, one.split.k) for one in found.sure[0]) in (
        [((0, 1), 4), ((2, 3), 5)],
        [((0, 1), 5), ((2, 3), 4)],
    )
    assert [len(moves) for moves in found.sure] == [2, 1]
    np.testing.assert_allclose(np.sort(moved(problem, theta, found.sure[0]).means[:, 0]), centres, atol=1.0)


def test_nothing_is_tried_if_no_split_gains():
    X, labels, _ = groups(12_000)
    problem, parts = problem_of(X[:6000], 5), parts_of_groups(X, labels, "full")
    theta = problem.model.theta(weights=parts[0], means=parts[1], covariances=parts[2])
    fresh = problem_of(X[6000:], 5)
    assert proposals(problem, fresh, theta, 4) == ([], [])


def test_many_components_are_found_whatever_the_seed():
    """The data of benchmarks/mixture_fit.py in 10 dimensions: every fit must find all 24 components."""
    rng = np.random.default_rng(3)
    d, count, n = 10, 24, 12_000
    labels = rng.choice(count, n, p=rng.dirichlet(np.full(count, 5.0)))
    means = 0.7 * rng.normal(size=(count, d))
    shapes = 0.4 * np.eye(d) + 0.8 * rng.normal(size=(count, d, d)) / np.sqrt(d)
    X = means[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d)))
    ends = [swiftem.GaussianMixture(count, random_state=seed).fit(X).score(X) for seed in range(3)]
    assert max(ends) - min(ends) < 0.01
    assert max(ends) > log_likelihood(X, "full", *parts_of_groups(X, labels, "full")) - 0.01


def test_a_narrow_component_has_not_collapsed_and_one_on_repeated_values_has():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(3000, 2))
    narrow = np.stack([5.0 + rng.normal(size=1000), 1e-3 * rng.normal(size=1000)], axis=1)
    repeated = narrow * [1.0, 0.0]
    few = np.stack([5.0 + rng.normal(size=5), 1e-3 * rng.normal(size=5)], axis=1)
    for rows, collapsed in ((narrow, []), (repeated, [1]), (few, [1])):
        X = np.concatenate([wide, rows])
        problem = problem_of(X, 2)
        weights, means, covariances = parts_of_groups(X, np.repeat([0, 1], [3000, len(rows)]), "full")
        covariances = covariances + 1e-6 * np.eye(2)
        theta = problem.model.theta(weights=weights, means=means, covariances=covariances)
        assert on_few_values(problem.bound, theta, X.var(axis=0), problem.source, len(X)) == collapsed
