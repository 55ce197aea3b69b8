"""Accelerated em: an independent implementation, published examples, the guard, resuming, bad arguments."""

import itertools
from dataclasses import dataclass

import helpers
import numpy as np
import pytest
from scipy.optimize import brentq

import swiftem
from swiftem import methods, models
from swiftem.core.checks import MemoryLimitError
from swiftem.methods.accelerated import ACCELERATIONS
from swiftem.testing import check_method

EM = methods.EM()
both = pytest.mark.parametrize("name", ACCELERATIONS)

# Days with 0, 1, ..., 9 deaths of women over 80 in the London Times (Hasselblad 1969).
DEATHS, DAYS = np.arange(10.0), np.array([162, 267, 271, 185, 111, 61, 27, 8, 3, 1.0])


def squarem(em, objective, s, n_iter):
    """SQUAREM from its equations: yields em's step from each accepted point; ``em`` is G."""
    best, leap, largest, past = np.inf, None, 4.0, []
    for _ in range(n_iter):
        if leap is not None and objective(leap) > best + 1e-12 * (1 + abs(best)):
            past, leap, largest = [s], None, max(1.0, largest / 2)
            yield s
            continue
        x = s if leap is None else leap
        best, s, leap = objective(x), em(x), None
        past = [*past, s] if len(past) else [x, s]
        if len(past) == 3:
            r, v = past[1] - past[0], past[2] - 2 * past[1] + past[0]
            alpha = min(np.linalg.norm(r) / np.linalg.norm(v), largest)
            past = past[1:]
            if alpha > 1:
                if alpha == largest:
                    largest *= 4
                leap = s - r - (r + v) + 2 * alpha * r + alpha**2 * v
                past = [leap]
            elif largest == 1:
                largest = 4.0
        yield s


def anderson(em, objective, s, n_iter, order=10):
    """Damped Anderson acceleration from its equations, by singular values and a root finder."""
    best, leap, largest, turned, degree = np.inf, None, 4.0, 0.0, 0
    xs, fs = [], []
    for _ in range(n_iter):
        if leap is not None and objective(leap) > best + 1e-12 * (1 + abs(best)):
            xs, fs, leap, degree = [], [], None, max(-50, degree - 5)
            largest = max(1.0, largest / 2) if turned else largest
            yield s
            continue
        x = s if leap is None else leap
        largest *= 4 if leap is not None and turned >= largest else 1
        best, s, leap = objective(x), em(x), None
        xs, fs = [*xs, x][-order - 1 :], [*fs, s - x][-order - 1 :]
        if len(xs) > 1:
            moves, changes, f = np.diff(xs, axis=0), np.diff(fs, axis=0), fs[-1]
            u, d, vt = np.linalg.svd(changes.T, full_matrices=False)
            used = d > 1e-7 * d[0]
            d, along = d[used], (u.T @ f)[used]
            share = 1 / (1 + 1.2 ** (25 - degree))

            def excess(log, d=d, along=along, share=share):
                return ((d * along / (d**2 + np.exp(log))) ** 2).sum() / ((along / d) ** 2).sum() - share

            size = brentq(excess, 2 * np.log(d[-1]) - 40, 2 * np.log(d[0]) + 40, xtol=1e-13, rtol=1e-15)
            leap = s - (moves + changes).T @ (vt[used].T @ (d * along / (d**2 + np.exp(size))))
            turned = 0.0
            if (leap - s) @ f < 0:
                alpha = min(np.linalg.norm(moves[-1]) / np.linalg.norm(changes[-1]), largest)
                leap, turned = (s + (alpha - 1) * f, alpha) if alpha > 1 else (None, 0.0)
            largest = 4.0 if largest == 1 else largest
            degree += leap is not None
        yield s


SMALL = 1e-3
"""Penalties of the paper's mixture of two unit variances."""


def m_step(s):
    return (s[:2] + SMALL) / (s[:2].sum() + 2 * SMALL), s[2:] / (s[:2] + SMALL)


def statistics(y, theta):
    joint = theta[0] * np.exp(-0.5 * (y[:, None] - theta[1]) ** 2) / np.sqrt(2 * np.pi)
    r = joint / joint.sum(axis=1, keepdims=True)
    return np.hstack([r, r * y[:, None]]), np.log(joint.sum(axis=1))


def penalty(theta):
    return SMALL / 2 * (theta[1] ** 2).sum() - SMALL * np.log(theta[0]).sum()


@pytest.mark.parametrize(("name", "by_hand"), [("squarem", squarem), ("anderson", anderson)])
@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_the_trajectory_is_that_of_an_independent_implementation(name, by_hand, kernels):
    rng = np.random.default_rng(0)
    y = rng.normal(size=400) + np.where(rng.random(400) < 0.5, 0.6, -0.6)
    model = models.GaussianMixtureModel(2, delta=SMALL, epsilon=SMALL)
    theta0 = model.theta(weights=[0.3, 0.7], means=[[0.2], [-0.1]])

    def em(s):
        return statistics(y, m_step(s))[0].mean(axis=0)

    def objective(s):
        return penalty(m_step(s)) - statistics(y, m_step(s))[1].mean()

    options = {"order": 2} if name == "anderson" else {}  # half of four statistics
    first = statistics(y, (theta0.weights, theta0.means.ravel()))[0].mean(axis=0)
    expected = list(by_hand(em, objective, first, 40, **options))
    assert any((one == other).all() for one, other in itertools.pairwise(expected)), "a leap is taken back"
    result = swiftem.run(
        model, y, methods.Accelerated(EM, name), theta0=theta0, n_iter=41, record_every=1, kernels=kernels
    )
    # The first pass of a run is at parameters that are not an M-step. After about 50 passes nothing is left
    # to gain, and rounding decides which leaps are taken back.
    helpers.assert_close([iterate.s for iterate in result.path[2:]], expected)
    plain = swiftem.run(model, y, EM, theta0=theta0, n_iter=41)
    assert objective(result.s) < objective(plain.s) - 1e-9


@both
def test_contract(name):
    check_method(methods.Accelerated(EM, name))


def passes_to(optimum, model, data, method, theta0, **options):
    """Return the passes until the objective is within 1e-10 of the optimum, and the result."""
    near = []

    def look(iterate):
        near.append(swiftem.objective(model, data, iterate.theta, **options) < optimum + 1e-10)
        return near[-1]

    result = swiftem.run(
        model, data, method, theta0=theta0, n_iter=5000, record=lambda i: None, callback=look, **options
    )
    assert near[-1], "it did not get there"
    return result.passes, result


def test_deaths_of_women_over_80_take_em_thousands_of_passes():
    """Varadhan and Roland 2008, section 7.1: the maximum likelihood estimate, and how far em is from it."""
    model = models.MixtureModel(2, "poisson", smoothing=0.0)
    theta0 = model.theta(weights=[0.3, 0.7], rates=[[1.0], [2.5]])
    data, options = DEATHS, {"sample_weight": DAYS}
    squared = swiftem.run(
        model, data, methods.Accelerated(EM, "squarem"), theta0=theta0, n_iter=400, **options
    )
    np.testing.assert_allclose(squared.theta.weights[0], 0.3599, atol=5e-5)
    np.testing.assert_allclose(squared.theta.params["rates"].ravel(), [1.256, 2.663], atol=5e-4)
    optimum = swiftem.objective(model, data, squared.theta, **options)
    plain, _ = passes_to(optimum, model, data, EM, theta0, **options)
    assert plain > 1000
    for name in ACCELERATIONS:
        quick, result = passes_to(optimum, model, data, methods.Accelerated(EM, name), theta0, **options)
        assert quick < plain / 10, name
        np.testing.assert_allclose(result.theta.weights[0], 0.3599, atol=2e-3)


@both
def test_no_point_leaves_the_domain(name):
    rng, points = np.random.default_rng(1), []
    y = rng.normal(size=300) + np.where(rng.random(300) < 0.35, 1.5, -1.0)
    model = models.FunctionModel(
        lambda y, rng: (np.array([0.5, 0.5]), np.array([0.4, -0.4])),
        statistics,
        lambda s: points.append(s[:2].min()) or m_step(s),
        penalty,
        in_domain=lambda s: bool(s[:2].min() > 0.3),
    )
    swiftem.run(model, y, methods.Accelerated(EM, name), n_iter=60, seed=0)
    assert min(points) > 0.3


@both
def test_statistics_outside_the_domain_are_rejected_as_by_em(name):
    y = np.array([-1.0, 1.0, 50.0])
    model = models.GaussianMixtureModel(2, covariance="full", reg_covar=0.0)
    theta0 = model.theta(means=[[0.0], [50.0]], covariances=[[[1.0]], [[1.0]]])
    with pytest.warns(UserWarning, match="rejected"):
        result = swiftem.run(model, y, methods.Accelerated(EM, name), theta0=theta0, n_iter=5)
    assert result.rejected == 5


class Line:
    """The statistics of a model with one number, up to a limit."""

    def __init__(self, limit=np.inf):
        self.limit = limit

    def scale(self, s):
        return np.ones_like(s)

    def in_domain(self, s):
        return bool(s[0] <= self.limit)


def test_a_leap_out_of_the_domain_is_halved():
    scheme = methods.Squarem()
    state = scheme.begin(np.array([0.0]))
    for k, s in enumerate([0.0, 1.0, 1.9]):
        state = scheme.advance(state, np.array([s]), -float(k), Line(5.0))
    assert state.point == pytest.approx([2 * 2 * 1.0 - 2**2 * 0.1])  # a step of 4 would lead to 6.4
    assert state.largest == 2.0


def test_the_rate_is_the_slowest_of_all_passes():
    """A large step may leave a slow direction as it is, and the next passes do not show it."""
    scheme, s, step, rates = methods.Squarem(), np.array([0.0]), 1.0, []
    state = scheme.begin(s)
    for k, rate in enumerate([0.5] * 4 + [0.97] * 4 + [0.5] * 4):
        state = scheme.advance(state, s, -float(k), Line(), plain=True)
        rates.append(state.rate)
        s, step = s + step, rate * step  # em's next step is ``rate`` times as large
    np.testing.assert_allclose(rates, [np.inf] * 2 + [0.5] * 4 + [0.97] * 6)


def test_the_names_of_both():
    assert methods.Accelerated(EM, "squarem").name == "em+squarem"
    assert methods.Accelerated(EM, methods.Anderson(order=3)).name == "em+anderson"


def test_an_order_of_its_own_has_fewer_vectors():
    rng = np.random.default_rng(0)
    y, model = rng.normal(size=(200, 2)), models.GaussianMixtureModel(3, covariance="full")
    result = swiftem.run(model, y, methods.Accelerated(EM, methods.Anderson(order=3)), n_iter=9, seed=0)
    assert result.state.method.steps.moves.shape == (3, len(result.s))
    assert result.state.method.steps.pairs == 3


def test_the_memory_of_anderson_is_in_the_budget(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.npy"
    np.save(path, rng.normal(size=(500, 100)))
    model = models.GaussianMixtureModel(20, covariance="full")  # statistics of 0.8 MB
    swiftem.run(model, path, EM, n_iter=1, seed=0, memory_limit="70MB")
    with pytest.raises(MemoryLimitError, match=r"em\+anderson"):
        swiftem.run(model, path, methods.Accelerated(EM, "anderson"), n_iter=1, seed=0, memory_limit="70MB")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((methods.OnlineEM(), "squarem"), TypeError, "method must be a method of full passes.*draw samples"),
        (("em", "squarem"), TypeError, "method must be a method of full passes.*got 'em'"),
        ((methods.Accelerated(EM, "squarem"), "squarem"), TypeError, "method must be a method of full"),
        ((EM, "fast"), ValueError, "acceleration must be 'squarem' or 'anderson', got 'fast'"),
        ((EM, ["squarem"]), ValueError, "acceleration must be 'squarem' or 'anderson'"),
    ],
)
def test_bad_arguments(given, error, message):
    with pytest.raises(error, match=message):
        methods.Accelerated(*given)


def test_bad_order():
    with pytest.raises(ValueError, match="order must be at least 1"):
        methods.Anderson(order=0)


def test_a_damped_method_is_refused():
    @dataclass(frozen=True)
    class Damped(methods.EM):
        step_size: float = 0.5

    with pytest.raises(ValueError, match=r"method must have step_size 1, got 0\.5"):
        methods.Accelerated(Damped(), "squarem")
