"""The experiment on the theory: what it measures, how it watches, what Ctrl-C leaves."""

from dataclasses import replace
from math import isfinite, isnan

import numpy as np
import pytest

import swiftem
from paper import theory
from paper.experiments import theory as module
from paper.experiments.theory import (
    LOCAL_STEPS,
    em_limit,
    fit_rate,
    local_constants,
    local_rates,
    mixture_data,
    practice_run,
    theorem_run,
    theory_in_numbers,
)
from paper.theory.family import family_of

MODEL = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
Y = mixture_data(60, np.random.default_rng(0))
FOUND = theory.constants(MODEL, Y)
START = swiftem.run(MODEL, Y, swiftem.methods.EM(), theta0=MODEL.theta(means=[[1.0], [-1.0]]), n_iter=0).s


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(module, "ITERATIONS", 200)
    monkeypatch.setattr("paper.experiments.theory.MOST_EPOCHS", 20)


@pytest.mark.usefixtures("short")
def test_rows():
    experiment = theory_in_numbers(sizes=[20, 40], runs=2)
    assert experiment.name == "theory"
    assert not experiment.interrupted
    count = {part: [row for row in experiment.rows if row.part == part] for part in ("theorem", "local")}
    assert len(count["theorem"]) == 2 * 2 * 3
    assert {row.method for row in count["local"]} == set(LOCAL_STEPS)
    for row in count["theorem"]:
        assert row.inside
        assert row.kind == "bound"
        assert 0 < row.measured < row.right_side
    steps = [row for row in experiment.rows if row.part == "step"]
    assert {row.kind for row in steps} == {"bound", "estimate"}
    assert all(row.gamma < 1e-9 for row in steps)


@pytest.mark.usefixtures("short")
def test_seeds_decide():
    once, again, other = (str(theory_in_numbers(sizes=[20], runs=1, seed=seed).rows) for seed in (0, 0, 1))
    assert once == again != other


@pytest.mark.usefixtures("short")
def test_the_measured_mean_is_over_all_k(monkeypatch):
    """With as many draws as iterations, one in each part of the range: the exact mean, by hand."""
    monkeypatch.setattr(module, "EPOCHS", 2)
    monkeypatch.setattr(module, "K_DRAWS", 120)
    row = theorem_run(MODEL, Y, "iem", FOUND, START, 0, 0)
    rng = np.random.default_rng([0, 60, 0, 2])
    rng.random(120)
    path = swiftem.run(
        MODEL, Y, swiftem.methods.IncrementalEM(), s0=START, n_iter=121, seed=rng, record_every=1
    ).path
    squares = [(theory.gradient_objective(MODEL, Y, iterate.theta) ** 2).sum() for iterate in path]
    assert row.n_iter == 120
    assert row.measured == pytest.approx(np.mean(squares[1:121]), rel=1e-9)
    assert row.at_start == pytest.approx(squares[0], rel=1e-9)
    first, last = (swiftem.objective(MODEL, Y, path[k].theta) for k in (0, 121))
    assert row.right_side == pytest.approx(2 * 60 * FOUND.L_e.value / 120 * (first - last), rel=1e-9)


@pytest.mark.usefixtures("short")
def test_of_sem_vr_the_number_of_iterations_is_a_multiple_of_m():
    row = theorem_run(MODEL, Y, "sem-vr", FOUND, START, 0, 0)
    theorem = theory.VarianceReducedTheorem(FOUND)
    assert row.n_iter % theorem.epoch_length == 0
    assert row.gamma == theorem.gamma


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_a_run_that_leaves_the_set_is_not_inside(name, monkeypatch):
    """A start outside S_ρ, and steps so large that nothing is known between two looks."""
    outside = START + np.array([0.0, 0.0, 3.0, -3.0])
    assert theory.distance_to_S0(MODEL, Y, outside) > FOUND.rho
    assert not theorem_run(MODEL, Y, name, FOUND, outside, 0, 0).inside
    monkeypatch.setattr(theory.THEOREMS[name], "gamma", property(lambda self: 0.5))
    assert not theorem_run(MODEL, Y, name, FOUND, START, 0, 0).inside


@pytest.mark.usefixtures("short")
def test_iem_where_the_proof_may_leave_the_set_is_not_inside():
    assert theorem_run(MODEL, Y, "iem", FOUND, START, 0, 0).inside
    less = replace(FOUND, L_e=FOUND.L_e._replace(value=FOUND.L_e.value / 100))
    assert not theorem_run(MODEL, Y, "iem", less, START, 0, 0).inside


def test_iem_and_the_point_that_the_proof_goes_to():
    """What is proven for all iterates, looked at along a run."""
    theorem = theory.IncrementalTheorem(FOUND)
    path = swiftem.run(MODEL, Y, theorem.method(), s0=START, n_iter=300, seed=0, record_every=1).path
    assert all(theorem.holds_at(MODEL, Y, iterate.theta) for iterate in path[1:])


def test_the_default_step_goes_farther():
    row = practice_run(MODEL, Y, "fiem", START, 0, 0)
    assert row.gamma == pytest.approx(60 ** (-2 / 3))
    assert row.measured < 1e-6 * row.at_start
    assert isnan(row.right_side)


@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.3])
def test_fit_rate(delta):
    k = np.arange(0, 2000, 10)
    with np.errstate(under="ignore"):
        error = (1 - delta) ** k
    assert fit_rate(k, 1e-3 * error) == pytest.approx(delta, rel=1e-6)


def test_fit_rate_of_rounding_is_none():
    assert isnan(fit_rate(np.arange(10), np.full(10, 1e-30)))


def test_local_constants():
    """λ from the Hessian of V: at s*, ∇²V = B(I − J_F), so λ is the smallest eigenvalue of B⁻¹∇²V."""
    limit = em_limit(MODEL, Y, START)
    family, source = family_of(MODEL, Y)
    s = family.coordinates(limit.s)
    assert theory.stationarity(MODEL, Y, s).gradient < 1e-25
    step = 1e-5 * np.eye(3)
    hessian = np.array(
        [(theory.gradient_V(MODEL, Y, s + e) - theory.gradient_V(MODEL, Y, s - e)) / 2e-5 for e in step]
    )
    expected = np.linalg.eigvals(np.linalg.solve(theory.B(MODEL, Y, s), hessian)).real.min()
    assert limit.lam == pytest.approx(expected, rel=1e-5)
    around = 0.05 * np.linalg.norm(family.coordinates(START) - s)
    lam, L_s, change = local_constants(family, source, s, around)
    assert (lam, L_s, lam / change) == (limit.lam, limit.L_s, limit.near)
    assert limit.near > around  # B2 holds at the start
    batch = source.take(np.arange(source.n))
    each = [
        family.each_statistics(batch, family.bound.posterior(batch, family.theta(s + sign * 1e-4 * e))[0])
        for e in np.eye(3)[:2]
        for sign in (1, -1)
    ]
    slopes = [
        np.linalg.norm((up - down) / 2e-4, axis=1).max()
        for up, down in zip(each[::2], each[1::2], strict=True)
    ]
    assert max(slopes) <= limit.L_s * (1 + 1e-6)


def test_the_local_rate_is_that_of_the_mean():
    """With a small step ‖ŝ − s*‖² falls by 2γλ an iteration."""
    rows = theory_in_numbers(sizes=[200], runs=1).rows
    limit = em_limit(MODEL, mixture_data(200, np.random.default_rng([0, 200])), _start(200))
    row = next(row for row in rows if row.method == "fiem proposition")
    assert row.measured == pytest.approx(2 * row.gamma * limit.lam, rel=0.2)
    assert row.measured > row.right_side > 0
    assert isfinite(next(row for row in rows if row.method == "fiem default").measured)


def test_a_run_that_is_too_far_from_the_limit_is_not_inside():
    limit = em_limit(MODEL, Y, START)
    assert all(row.inside for row in local_rates(MODEL, Y, START, limit, 0, 0))
    small = limit._replace(near=1e-6)
    assert not any(row.inside for row in local_rates(MODEL, Y, START, small, 0, 0))


def _start(n):
    y = mixture_data(n, np.random.default_rng([0, n]))
    theta0 = MODEL.theta(means=[[1.0], [-1.0]])
    return swiftem.run(MODEL, y, swiftem.methods.EM(), theta0=theta0, n_iter=0).s


@pytest.mark.usefixtures("short")
def test_ctrl_c_keeps_complete_sizes(ctrl_c):
    experiment = theory_in_numbers(sizes=[20, 40], runs=1, progress=ctrl_c("n = 40"))
    assert experiment.interrupted
    assert {row.n for row in experiment.rows} == {20}
