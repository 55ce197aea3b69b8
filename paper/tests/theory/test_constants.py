"""Bounds hold at sampled points, are not far from them, and say what they are."""

from functools import cache

import numpy as np
import pytest

import swiftem
from paper import theory
from paper.experiments.gmm_precision import gmm_data
from paper.theory.constants import Constant, Constants, component_cells, weaker
from paper.theory.family import family_of, matrix_B
from paper.theory.sets import Polygon, sample_S_rho
from swiftem import models

Y = gmm_data(150, np.random.default_rng(3)) + 0.4
MIXTURES = {
    "ones": (models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), Y),
    "small": (models.GaussianMixtureModel(2, delta=1e-3, epsilon=1e-3), Y),
    "unequal": (models.GaussianMixtureModel(2, delta=0.1, epsilon=0.6), Y),
    "positive": (models.GaussianMixtureModel(2, delta=0.5, epsilon=0.2), np.abs(Y) + 1.0),
    "known": (models.GaussianMixtureModel(2, delta=0.5, epsilon=0.5, known_weights=(0.2, 0.8)), Y),
}
PROBLEMS = MIXTURES
problems = pytest.mark.parametrize("problem", list(PROBLEMS))
UPPER = ["C_S", "C_S_residual", "C_phi", "L_phi", "L_p", "L_theta", "L_B", "upsilon_max"]
LEMMAS = ["L_e", "L_s", "L_V"]


@cache
def bounds(name):
    return theory.constants(*PROBLEMS[name])


@cache
def estimates(name):
    return theory.estimate_constants(*PROBLEMS[name], n_points=100, rng=np.random.default_rng(1))


@problems
def test_every_bound_holds_at_sampled_points(problem):
    bound, seen = bounds(problem), estimates(problem)
    for name in UPPER + LEMMAS:
        assert seen.named()[name].value <= bound.named()[name].value * (1 + 1e-6), name
    assert seen.upsilon_min.value >= bound.upsilon_min.value * (1 - 1e-9)
    assert {constant.kind for constant in bound.named().values()} == {"bound"}
    assert {seen.named()[name].kind for name in UPPER + LEMMAS} == {"estimate"}


@problems
def test_the_lemmas_hold_at_sampled_points(problem):
    """L_e, L_s and L_V as they are seen themselves, below the bounds and what is composed from estimates."""
    bound, composed = bounds(problem), estimates(problem)
    seen = theory.estimate_smoothness(*PROBLEMS[problem], n_points=100, rng=np.random.default_rng(1))
    for name, (value, kind, _) in seen._asdict().items():
        assert 0 < value <= bound.named()[name].value, name
        assert value <= composed.named()[name].value, name
        assert kind == "estimate"


@pytest.mark.parametrize("problem", ["ones", "unequal"])
def test_bounds_of_the_mixture_are_not_far_off(problem):
    """A formula that gained a factor would show here; what is composed from them aside."""
    bound, seen = bounds(problem), estimates(problem)
    for name in UPPER:
        assert bound.named()[name].value <= 10 * seen.named()[name].value, name
    assert bound.upsilon_min.value >= 0.1 * seen.upsilon_min.value


@problems
def test_exact_ones_by_brute_force(problem):
    """C_Z and the diameter of a sample's statistics, from all z."""
    family, source = family_of(*PROBLEMS[problem])
    batch = source.take(np.arange(source.n))
    corners = [family.each_statistics(batch, np.tile(unit, (source.n, 1))) for unit in np.eye(family.columns)]
    found = bounds(problem)
    assert found.C_Z.value == pytest.approx(sum(np.linalg.norm(c, axis=1) for c in corners).max())
    widest = max(np.linalg.norm(one - other, axis=1).max() for one in corners for other in corners)
    assert found.C_S_sample.value == pytest.approx(widest)


@pytest.mark.parametrize("problem", list(MIXTURES))
def test_how_far_apart_statistics_of_a_mixture_are(problem):
    """Their means by a mean of diameters; ρ in max-norm is at most ρ√(2(M−1)), once or at both ends."""
    model, y = MIXTURES[problem]
    M, found = model.n_components, bounds(problem)
    # Corners are (e_m, y·e_m) of components 0 to M − 2, and zero.
    unit = np.eye(M)[:, : M - 1]
    corners = np.concatenate([unit[None].repeat(len(y), 0), y[:, None, None] * unit], axis=2)
    diameters = np.linalg.norm(corners[:, :, None] - corners[:, None], axis=3).max(axis=(1, 2))
    around = found.rho * np.sqrt(2 * (M - 1))
    assert found.C_S.value == pytest.approx(diameters.mean() + 2 * around, rel=1e-12)
    assert found.C_S_residual.value == pytest.approx(diameters.mean() + around, rel=1e-12)


@problems
def test_lemmas_compose_them(problem):
    value = {name: constant.value for name, constant in bounds(problem).named().items()}
    assert value["L_e"] == pytest.approx(
        value["C_phi"] * value["C_Z"] * value["L_p"] + value["C_S_sample"] * value["L_phi"]
    )
    assert value["L_s"] == pytest.approx(value["C_Z"] * value["L_p"] * value["L_theta"])
    assert value["L_V"] == pytest.approx(
        value["upsilon_max"] * (1 + value["L_s"]) + value["L_B"] * value["C_S_residual"]
    )
    assert bounds(problem).L_v.value == max(value["L_V"], value["L_s"])


@problems
def test_lemma_semigrad_with_the_constants(problem):
    found = bounds(problem)
    family, source = family_of(*PROBLEMS[problem])
    rng = np.random.default_rng(2)
    for _ in range(30):
        s = sample_S_rho(family, source, found.rho, rng)
        h, gradient = theory.residual(*PROBLEMS[problem], s), theory.gradient_V(*PROBLEMS[problem], s)
        assert gradient @ h >= found.upsilon_min.value * (h @ h) * (1 - 1e-9)
        assert h @ h >= gradient @ gradient / found.upsilon_max.value**2 * (1 - 1e-9)


@problems
def test_lemma_smooth_with_the_constants(problem):
    """Between points far apart, too, which the estimates are not made of."""
    found = bounds(problem)
    family, source = family_of(*PROBLEMS[problem])
    batch = source.take(np.arange(source.n))
    rng = np.random.default_rng(4)
    for _ in range(30):
        s, other = (sample_S_rho(family, source, found.rho, rng) for _ in range(2))
        way = np.linalg.norm(s - other)
        each = [
            family.each_statistics(batch, family.bound.posterior(batch, family.theta(x))[0])
            for x in (s, other)
        ]
        assert np.linalg.norm(each[0] - each[1], axis=1).max() <= found.L_s.value * way
        change = np.subtract(*(theory.gradient_V(*PROBLEMS[problem], x) for x in (s, other)))
        assert np.linalg.norm(change) <= found.L_V.value * way


@problems
def test_the_box_holds_the_parameters(problem):
    found = bounds(problem)
    family, source = family_of(*PROBLEMS[problem])
    rng = np.random.default_rng(6)
    for _ in range(200):
        theta = family.theta(sample_S_rho(family, source, found.rho, rng))
        assert found.box.holds(theta)
    assert not found.box.holds(family.from_vector(family.vector(theta) + 100.0))


@pytest.mark.parametrize("name", ["ones", "small", "unequal", "positive", "known"])
def test_bounds_hold_on_a_grid_up_to_the_edge(name):
    """Two Gaussians, all of S_ρ: corners, too, which samples do not reach."""
    model, data = MIXTURES[name]
    bound = bounds(name)
    family, _ = family_of(model, data)
    polygon, rho = Polygon(data), bound.rho
    seen = {key: 0.0 for key in ("upsilon_max", "L_theta", "L_B", "C_phi", "L_p")}
    smallest, count = np.inf, 0
    y = np.array([data.min(), 0.0, np.median(data), data.max()])
    weights = np.linspace(-rho, 1 + rho, 31)
    heights = np.concatenate([[0.0], np.linspace(0, 1, 7)])
    for weight in weights:
        low = polygon.lowest(weight - rho, weight + rho) - rho
        high = polygon.highest(weight - rho, weight + rho) + rho
        for height in heights:
            s = np.array([weight, low + height * (high - low), data.mean()])
            assert polygon.holds(s, rho * (1 + 1e-9) + 1e-12)
            s[0] = np.clip(weight, -rho * (1 - 1e-6), 1 + rho * (1 - 1e-6))  # room for differences
            step = 1e-7 * rho
            moved = [s + step * np.array([np.cos(a), np.sin(a), 0.0]) for a in np.linspace(0, np.pi, 9)]
            theta, B = family.theta(s), matrix_B(family, s)
            count += 1
            seen["upsilon_max"] = max(seen["upsilon_max"], np.linalg.norm(B, 2))
            smallest = min(smallest, np.linalg.eigvalsh(B)[0])
            seen["C_phi"] = max(seen["C_phi"], np.linalg.norm(family.jacobian_phi(theta), 2))
            for near in moved:
                there = family.vector(family.theta(near)) - family.vector(theta)
                seen["L_theta"] = max(seen["L_theta"], np.linalg.norm(there) / step)
                seen["L_B"] = max(seen["L_B"], np.linalg.norm(matrix_B(family, near) - B, 2) / step)
            slopes = posterior_slopes(family, theta, y)
            seen["L_p"] = max(seen["L_p"], slopes)
    assert count == 31 * 8
    for key, value in seen.items():
        assert value <= bound.named()[key].value * (1 + 1e-5), key
    assert smallest >= bound.upsilon_min.value * (1 - 1e-9) - 1e-12


def posterior_slopes(family, theta, y):
    """Return the largest gradient of a posterior probability in θ, written out for two components."""
    weights, means = theta.weights, theta.means[:, 0]
    joint = weights * np.exp(-0.5 * (y[:, None] - means) ** 2)
    p = joint[:, 0] / joint.sum(axis=1)
    parts = [(y - means[0]) ** 2, (y - means[1]) ** 2]
    if family.known is None:
        parts.append(np.full(len(y), (1 / weights[0] + 1 / weights[1]) ** 2))
    return (p * (1 - p) * np.sqrt(sum(parts))).max()


def test_the_range_of_the_means_is_reached():
    """Largest μ on S_ρ, from all thresholds: one component takes the samples above."""
    rho, delta = 0.25, 0.5
    y = np.sort(Y)[::-1]
    count = np.arange(len(y) + 1)
    sums = np.concatenate([[0.0], np.cumsum(y)])
    largest = ((sums / len(y) + rho) / (count / len(y) - rho + delta)).max()
    cells = component_cells(Y, rho, delta, 0.5)
    assert largest <= cells.mu_range[1] <= 1.01 * largest


def test_known_weights_have_no_theorem_2():
    found = bounds("known")
    assert found.upsilon_min == Constant(0.0, "bound", "weights are known: B has rank M")
    for theorem in (theory.VarianceReducedTheorem, theory.FastIncrementalTheorem):
        with pytest.raises(ValueError, match=r"^Theorem 2 does not apply: .*weights are known"):
            theorem(found)
    assert theory.IncrementalTheorem(found).right_hand_side(n_iter=10, decrease=1.0).value > 0


def test_one_estimate_makes_an_estimate():
    bound, guess = Constant(1.0, "bound", ""), Constant(1.0, "estimate", "")
    assert weaker(bound, bound) == "bound"
    assert weaker(bound, guess, bound) == "estimate"
    seen = theory.estimate_constants(*MIXTURES["ones"], n_points=5)
    for theorem, n_iter in ((theory.IncrementalTheorem(seen), 5), (theory.FastIncrementalTheorem(seen), 5)):
        assert theorem.right_hand_side(n_iter=n_iter, decrease=1.0).kind == "estimate"


def test_it_prints_as_a_table():
    text = str(bounds("ones"))
    assert text.count("\n") == 14
    assert "upsilon_min" in text


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (models.GaussianMixtureModel(2, delta=0.0), Y, r"^delta and epsilon of the model must be positive"),
        (models.GaussianMixtureModel(3), Y, r"^model must be the paper's GaussianMixtureModel\(2"),
        (models.GaussianMixtureModel(2, covariance="full"), Y, r"^model must be the paper's"),
        (models.PLSAModel(2), np.eye(3), r"^model must be the paper's"),
        (models.GaussianMixtureModel(2), Y.reshape(-1, 2), r"^data must be numbers \(n,\)"),
        (
            models.GaussianMixtureModel(2),
            swiftem.data.ArraySource(Y, np.full(len(Y), 2.0)),
            r"^data must be numbers \(n,\) without weights",
        ),
    ],
)
def test_bad_input(model, data, message):
    with pytest.raises((TypeError, ValueError), match=message):
        theory.constants(model, data)


def test_at_least_one_point():
    assert isinstance(bounds("ones"), Constants)
    for estimate in (theory.estimate_constants, theory.estimate_smoothness):
        with pytest.raises(ValueError, match=r"^n_points must be at least 1"):
            estimate(*MIXTURES["ones"], n_points=0)
