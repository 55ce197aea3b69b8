"""Heats of a race: with fewer components than the data have, candidates end in many places."""

from types import SimpleNamespace

import numpy as np
import pytest
from mixture_data import blobs
from swiftem.mixture.starts.sample import plan_race

import swiftem
from benchmarks.optima_data import generated
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.kernels.threads import get_threads, set_threads
from swiftem.mixture.starts import race as racing
from swiftem.mixture.starts.race import race
from swiftem.models import GaussianMixtureModel


@pytest.fixture(scope="module")
def rows():
    """Return 20,000 rows of fifteen components."""
    X = generated(131, 25_000, 5, 15, 0.1)[:20_000]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def problem_of(X, count, kind="full"):
    return Problem(GaussianMixtureModel(count, covariance=kind, reg_covar=1e-6), ArraySource(X))


def test_seeds_end_in_the_same_place_with_fewer_components_than_the_data_have(rows):
    """Candidates that are compared before em has converged left all of these seeds 0.07 below."""
    scores = [swiftem.GaussianMixture(5, random_state=seed).fit(rows).score(rows) for seed in (1, 2, 6, 9)]
    assert max(scores) - min(scores) < 1e-3
    assert min(scores) > -5.93


@pytest.mark.parametrize(
    ("n", "d", "count", "kind", "found"),
    [
        (20_000, 5, 5, "full", (4, 50, 8)),
        (20_000, 5, 5, "diag", (2, 30, 0)),
        (20_000, 3, 5, "full", (4, 50, 0)),  # a fit of scikit-learn is quick
        (120_000, 3, 5, "full", (4, 50, 8)),
        (10_000, 5, 5, "full", (4, 50, 0)),
        (20_000, 16, 20, "full", (2, 20, 0)),  # the last round would take most of the evaluations
        (3000, 5, 5, "full", (2, 16, 0)),
    ],
)
def test_what_a_race_takes(n, d, count, kind, found):
    problem = problem_of(np.random.default_rng(0).normal(size=(n, d)), count, kind)
    plan = plan_race(problem, int(0.75 * min(n, 26_000)))
    assert (plan.finalists, plan.passes, plan.again) == found
    assert plan.rows <= plan.many <= 0.75 * n
    assert plan.finalists * plan.passes * plan.many <= plan.work / 3


def heats(monkeypatch, problem, values, gain=0.0):
    """Return the winner of heats that end with given values; the first moves of all gain ``gain``."""
    theta = problem.bound.initial_theta(np.random.default_rng(0))
    asked = [
        [racing._Candidate(theta, f"{number}.{k}", value) for k, value in enumerate(one)]
        for number, one in enumerate(values)
    ]
    seen = SimpleNamespace(heats=0, moved=[])

    def heat(self, count):
        seen.heats += 1
        return asked[seen.heats - 1]

    def moved(self, left, moves):
        seen.moved.append(left[0].kind)
        return left[0]._replace(value=left[0].value + gain, moves=int(gain > 0.0))

    monkeypatch.setattr(racing._Race, "_heat", heat)
    monkeypatch.setattr(racing._Race, "_moved", moved)
    monkeypatch.setattr(racing._Race, "_whole", lambda self, best, tol: best)
    return race(problem, 0, moves=20), seen


@pytest.mark.parametrize(
    ("values", "gain", "kind", "moved"),
    [
        ([[0.0, -1e-4, -2e-4]], 0.0, "0.0", ["0.0"]),  # all agree
        ([[0.0, -1.0]], 0.5, "0.0", ["0.0"]),  # moves gain
        ([[0.0, -0.02], [-1e-4, -2.0]], 0.0, "0.0", ["0.0", "0.1"]),  # the same place again
        ([[0.0, -1e-4, -0.02], [-0.03]], 0.0, "0.0", ["0.0", "0.2"]),  # the best of those that differ
        ([[0.0, -1.0], [-0.1, -2.0]], 0.0, "0.0", ["0.0"]),  # which is too bad
        ([[0.0, -1.0], [1.0, -2.0]], 0.0, "1.0", ["0.0", "1.0"]),
    ],
)
def test_a_second_heat_follows_if_candidates_differ_and_no_move_gains(
    monkeypatch, rows, values, gain, kind, moved
):
    won, seen = heats(monkeypatch, problem_of(rows, 5), values, gain)
    assert (won.kind, seen.moved, seen.heats) == (kind, moved, len(values))
    assert won.candidates == 8 * len(values)


def test_the_last_round_has_more_candidates_and_passes(monkeypatch, rows):
    """A heat of eight: four of them continue with 50 passes on the rows of moves."""
    taken = []

    def improved(self, left, on, passes):
        taken.append((len(left), on.source.n, passes))
        return left

    monkeypatch.setattr(racing._Race, "_improved", improved)
    problem = problem_of(rows, 5)
    assert race(problem, 0, moves=0).candidates in (8, 16)
    assert taken[0] == (4, 4000, 50)


def test_candidates_that_agree_are_enough():
    X, _ = blobs(20_000, 5, 3, apart=8.0)
    assert race(problem_of(X, 3), 0, moves=20).candidates == 8


def test_two_heats_are_the_same_at_any_number_of_threads(rows):
    before, found = get_threads(), []
    assert race(problem_of(rows, 5), 1, moves=20).candidates == 16
    try:
        for threads in (1, 3):
            set_threads(threads)
            found.append(race(problem_of(rows, 5), 1, moves=20, n_init=2))
    finally:
        set_threads(before)
    assert found[0].kind == found[1].kind
    for one, other in zip(found[0].theta, found[1].theta, strict=True):
        np.testing.assert_array_equal(one, other)
