"""Steps, epoch lengths and right-hand sides, written out once more; and runs that use them."""

from math import e, floor

import numpy as np
import pytest

import swiftem
from paper import theory
from paper.experiments.gmm_precision import gmm_data
from swiftem import methods, models

Y = gmm_data(200, np.random.default_rng(3))
MODEL = models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
FOUND = theory.constants(MODEL, Y)
V_MIN, V_MAX, L = FOUND.upsilon_min.value, FOUND.upsilon_max.value, FOUND.L_v.value
START = np.array([0.3, 0.1, Y.mean()])


def with_upsilon(value):
    from dataclasses import replace

    return replace(FOUND, upsilon_min=FOUND.upsilon_min._replace(value=value))


@pytest.mark.parametrize("upsilon", [1e-6, 0.1, 1.0, 30.0])
def test_mu_is_the_root(upsilon):
    mu = theory.VarianceReducedTheorem(with_upsilon(upsilon)).mu
    u2 = upsilon**2
    assert 2 * (e - 1) * u2 * mu**2 + (1 + (e - 1) * u2) * mu == pytest.approx(0.5, rel=1e-12)
    assert mu > 0
    # What the proof needs: 1 − μ − μ(1 + 2μ)(e − 1)υ² ≥ 1/2.
    assert 1 - mu - mu * (1 + 2 * mu) * (e - 1) * u2 == pytest.approx(0.5)


def test_sem_vr():
    theorem = theory.VarianceReducedTheorem(FOUND)
    mu, n = theorem.mu, 200
    assert theorem.gamma == pytest.approx(mu * V_MIN / (L * n ** (2 / 3)))
    assert theorem.epoch_length == floor(n / (2 * mu**2 * V_MIN**2 + mu))
    m = theorem.epoch_length
    found = theorem.right_hand_side(n_iter=3 * m, decrease=0.2)
    assert found.value == pytest.approx(n ** (2 / 3) * 2 * L / (mu * 3 * m) * (V_MAX / V_MIN) ** 2 * 0.2)
    assert found.kind == "bound"
    with pytest.raises(ValueError, match=rf"^n_iter must be a multiple of the epoch length m = {m}"):
        theorem.right_hand_side(n_iter=m + 1, decrease=0.2)


@pytest.mark.parametrize(("upsilon", "alpha"), [(0.1, 6.0), (1.25, 6.0), (2.0, 9.0)])
def test_fiem(upsilon, alpha):
    theorem = theory.FastIncrementalTheorem(with_upsilon(upsilon))
    n = 200
    assert theorem.alpha == alpha
    assert theorem.gamma == pytest.approx(upsilon / (alpha * L * n ** (2 / 3)))
    found = theorem.right_hand_side(n_iter=70, decrease=0.2)
    assert found.value == pytest.approx(n ** (2 / 3) * alpha**2 * L / 70 * (V_MAX / upsilon) ** 2 * 0.2)


def test_iem():
    theorem = theory.IncrementalTheorem(FOUND)
    found = theorem.right_hand_side(n_iter=70, decrease=0.2)
    assert found.value == pytest.approx(200 * 2 * FOUND.L_e.value / 70 * 0.2)
    assert theorem.termination(70) == swiftem.RandomTermination(70, earliest=1)
    assert theorem.method() == methods.IncrementalEM()


@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_the_method_of_a_theorem(name):
    theorem = theory.THEOREMS[name](FOUND)
    method = theorem.method()
    by_hand = methods.METHODS[name](step_size=theorem.gamma)
    if name == "sem-vr":
        by_hand = methods.VarianceReducedEM(step_size=theorem.gamma, epoch_length=theorem.epoch_length)
    runs = [swiftem.run(MODEL, Y, m, s0=[0.3, 0.7, 0.1, 0.0], n_iter=2000, seed=0) for m in (method, by_hand)]
    np.testing.assert_array_equal(runs[0].s, runs[1].s)
    assert theorem.termination(9) == swiftem.RandomTermination(9)


@pytest.mark.parametrize("name", ["iem", "sem-vr", "fiem"])
def test_the_theorem_holds_for_runs(name):
    """Mean over seeds and over all K, at iterates that were checked to lie in the set."""
    theorem = theory.THEOREMS[name](FOUND)
    n_iter = 2 * theorem.epoch_length if name == "sem-vr" else 400
    s0 = np.array([START[0], 1 - START[0], START[1], START[2] - START[1]])
    squares, decreases = [], []
    for seed in range(2):
        result = swiftem.run(
            MODEL, Y, theorem.method(), s0=s0, n_iter=n_iter + (name == "iem"), seed=seed, record_every=1
        )
        for iterate in result.path[1:-1] if name == "iem" else result.path[:-1]:
            assert theory.distance_to_S0(MODEL, Y, iterate.s) <= FOUND.rho
            if name == "iem":
                assert theorem.holds_at(MODEL, Y, iterate.theta)
                squares.append((theory.gradient_objective(MODEL, Y, iterate.theta) ** 2).sum())
            else:
                squares.append(theory.stationarity(MODEL, Y, iterate.s).gradient)
        decreases.append(
            swiftem.objective(MODEL, Y, result.path[0].theta) - swiftem.objective(MODEL, Y, result.theta)
        )
        assert len(squares) == (seed + 1) * n_iter
    bound = theorem.right_hand_side(n_iter=n_iter, decrease=float(np.mean(decreases)))
    assert 0 < np.mean(squares) <= bound.value


def test_iem_far_out_is_not_covered():
    theorem = theory.IncrementalTheorem(FOUND)
    assert not theorem.holds_at(MODEL, Y, MODEL.theta(means=[[50.0], [0.0]]))


@pytest.mark.parametrize("name", ["iem", "fiem"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_iter": 0, "decrease": 1.0}, r"^n_iter must be at least 1"),
        ({"n_iter": 5, "decrease": np.nan}, r"^decrease must be finite"),
    ],
)
def test_bad_input(name, options, message):
    with pytest.raises(ValueError, match=message):
        theory.THEOREMS[name](FOUND).right_hand_side(**options)
