"""The theorems in numbers: what is measured, how runs are watched, Ctrl-C; both verdicts of each claim."""

from dataclasses import replace
from math import isfinite, isnan, nan

import numpy as np
import pytest

import swiftem
from paper import theory
from paper.experiments import theory as module
from paper.experiments.experiment import Experiment
from paper.experiments.theory import (
    LOCAL_STEPS,
    TheoryRow,
    draw,
    em_limit,
    fit_rate,
    local_rates,
    practice_run,
    theorem_run,
    theory_in_numbers,
    theory_section,
)
from paper.theory.family import family_of

MODEL = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
SAMPLE = draw(60, 0)
Y, START = SAMPLE.y, SAMPLE.start
FOUND = theory.constants(MODEL, Y)
SIZES = (100, 1000, 10_000)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(module, "ITERATIONS", 200)
    monkeypatch.setattr(module, "MOST_EPOCHS", 20)


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
def test_the_measured_mean_is_over_all_k(monkeypatch):
    """With as many draws as iterations, one in each part of the range: the exact mean, by hand."""
    monkeypatch.setattr(module, "EPOCHS", 2)
    monkeypatch.setattr(module, "K_DRAWS", 120)
    row = theorem_run(SAMPLE, "iem", FOUND, 0, 0)
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
    row = theorem_run(SAMPLE, "sem-vr", FOUND, 0, 0)
    theorem = theory.VarianceReducedTheorem(FOUND)
    assert row.n_iter % theorem.epoch_length == 0
    assert row.gamma == theorem.gamma


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_a_run_that_leaves_the_set_is_not_inside(name, monkeypatch):
    """A start outside S_ρ, and steps so large that nothing is known between two looks."""
    outside = START + np.array([0.0, 0.0, 3.0, -3.0])
    assert theory.distance_to_S0(MODEL, Y, outside) > FOUND.rho
    assert not theorem_run(SAMPLE._replace(start=outside), name, FOUND, 0, 0).inside
    monkeypatch.setattr(theory.THEOREMS[name], "gamma", property(lambda self: 0.5))
    assert not theorem_run(SAMPLE, name, FOUND, 0, 0).inside


@pytest.mark.usefixtures("short")
def test_iem_where_the_proof_may_leave_the_set_is_not_inside():
    assert theorem_run(SAMPLE, "iem", FOUND, 0, 0).inside
    less = replace(FOUND, L_e=FOUND.L_e._replace(value=FOUND.L_e.value / 100))
    assert not theorem_run(SAMPLE, "iem", less, 0, 0).inside


def test_iem_and_the_point_that_the_proof_goes_to():
    """What is proven for all iterates, looked at along a run."""
    theorem = theory.IncrementalTheorem(FOUND)
    path = swiftem.run(MODEL, Y, theorem.method(), s0=START, n_iter=300, seed=0, record_every=1).path
    assert all(theorem.holds_at(MODEL, Y, iterate.theta) for iterate in path[1:])


def test_the_default_step_goes_farther():
    row = practice_run(SAMPLE, "fiem", 0, 0)
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
    limit = em_limit(SAMPLE)
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
    limit = em_limit(draw(200, 0))
    row = next(row for row in rows if row.method == "fiem proposition")
    assert row.measured == pytest.approx(2 * row.gamma * limit.lam, rel=0.2)
    assert row.measured > row.right_side > 0
    assert isfinite(next(row for row in rows if row.method == "fiem default").measured)


def test_a_run_that_is_too_far_from_the_limit_is_not_inside():
    limit = em_limit(SAMPLE)
    assert all(row.inside for row in local_rates(SAMPLE, limit, 0, 0))
    small = limit._replace(near=1e-6)
    assert not any(row.inside for row in local_rates(SAMPLE, small, 0, 0))


def rows(sizes=SIZES, runs=2, measured=0.01, right=10.0, growth=0.0, inside=True, kind="bound", rate=-1.0):
    """Return rows of an experiment in which everything is as the paper says, unless told otherwise."""
    found = []
    for n in sizes:
        size = (n / sizes[0]) ** growth
        for method in ("sem-vr", "fiem"):
            found.append(TheoryRow("step", method, n, 0, 1e-14 / n, 0, nan, nan, nan, "bound", False))
            if n <= 1000:
                found.append(TheoryRow("step", method, n, 0, 1e-9 / n, 0, nan, nan, nan, "estimate", False))
        for run in range(runs):
            for method in ("iem", "sem-vr", "fiem"):
                gamma = 1.0 if method == "iem" else 1e-5 * n ** (-2 / 3)
                values = (gamma, 1000 * n, 0.02, measured * size, right * size, kind, inside)
                found.append(TheoryRow("theorem", method, n, run, *values))
            for method in ("sem-vr", "fiem"):
                found.append(
                    TheoryRow("practice", method, n, run, n ** (-2 / 3), 20 * n, 0.02, 1e-20, nan, "", True)
                )
            for name in LOCAL_STEPS:
                proposed = 0.1 / n if name == "fiem proposition" else nan
                gamma = 0.1 * n**rate / 2 if name == "fiem proposition" else 1 / n
                found.append(
                    TheoryRow("local", name, n, run, gamma, 10 * n, nan, n**rate, proposed, "", inside)
                )
    return found


def section(found, interrupted=False):
    return theory_section(Experiment("theory", {}, tuple(found), interrupted))


def test_what_the_paper_says_agrees(check, verdicts):
    found = check(section(rows()), draw=True)
    assert verdicts(found) == ["agrees", "agrees", "agrees"]
    assert "All runs were checked" in found.findings[1].note
    assert found.findings[2].measured.startswith("slopes of δ on n: −1.00 (")
    assert [picture.name for picture in found.pictures] == ["theory"]
    assert len([*found.all_tables()]) == 3


@pytest.mark.parametrize(
    ("options", "place", "verdict"),
    [
        ({"measured": 11.0}, 0, "disagrees"),
        ({"measured": 11.0}, 1, "disagrees"),
        ({"rate": -2 / 3}, 2, "disagrees"),
        ({"rate": -1.3}, 2, "disagrees"),
        ({"inside": False}, 0, "open"),
        ({"inside": False}, 1, "open"),
        ({"inside": False}, 2, "open"),
    ],
)
def test_verdicts(options, place, verdict, check, verdicts):
    assert verdicts(check(section(rows(**options))))[place] == verdict


def test_a_rate_below_the_propositions_disagrees(verdicts):
    found = [
        row._replace(right_side=3.0 / row.n) if row.method == "fiem proposition" else row for row in rows()
    ]
    assert verdicts(section(found))[2] == "disagrees"


@pytest.mark.parametrize(("power", "verdict"), [(1.0, "agrees"), (1.3, "disagrees"), (0.5, "disagrees")])
def test_the_propositions_rate_goes_with_its_step(power, verdict, verdicts):
    """The step may fall faster than 1/n, as L_s grows; δ must fall as the step does."""
    found = [
        row._replace(gamma=0.05 * row.n**-1.3, measured=row.n ** (-1.3 * power), right_side=1e-9)
        if row.method == "fiem proposition"
        else row
        for row in rows()
    ]
    assert verdicts(section(found))[2] == verdict


def test_nothing_is_asserted_of_runs_that_left(check, verdicts):
    found = check(section(rows(inside=False)))
    assert "6 runs may have left the theorem's set" in found.findings[0].note


def test_one_size_has_no_slopes(check, verdicts):
    found = check(section(rows(sizes=(1000,)), interrupted=True), draw=True)
    assert verdicts(found) == ["agrees", "agrees"]
