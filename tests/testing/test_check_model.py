"""check_model accepts models of one's own and finds what is broken."""

import runpy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import swiftem
from swiftem import methods, models
from swiftem.testing import check_model

EXAMPLES = Path(__file__).parents[2] / "examples"
ExponentialMixture = runpy.run_path(str(EXAMPLES / "exponential_mixture.py"))["ExponentialMixture"]
Y = np.random.default_rng(0).exponential(np.repeat([1.0, 40.0], 40))


def initial(y, rng):
    return rng.normal(size=1)


def statistics_of_mean(y, theta):
    return y[:, None], -0.5 * (y - theta[0]) ** 2 - 0.5 * np.log(2 * np.pi)


def mean(s):
    return s / 1.1


def ridge(theta):
    return 0.05 * float(theta[0] ** 2)


FOUR_FUNCTIONS = models.FunctionModel(initial, statistics_of_mean, mean, ridge)


def test_accepts_a_class():
    check_model(ExponentialMixture(), Y)
    check_model(ExponentialMixture(n_components=3), Y)


def test_accepts_four_functions_also_local_ones():
    check_model(FOUR_FUNCTIONS, Y)
    check_model(models.FunctionModel(initial, statistics_of_mean, lambda s: s.copy(), lambda theta: 0.0), Y)


@pytest.mark.parametrize("name", methods.METHODS)
def test_all_methods_fit_a_model_of_ones_own(name):
    model = ExponentialMixture()
    theta0 = model.initial_theta(Y, np.random.default_rng(1))
    best = swiftem.run(model, Y, methods.EM(), theta0=theta0, n_iter=500)
    method = methods.METHODS[name]()
    result = swiftem.run(model, Y, method, theta0=theta0, n_iter=50 * method.epoch(len(Y)), seed=0)
    tolerance = 1e-2 if name == "sem" else 1e-5
    assert swiftem.objective(model, Y, result.theta) < swiftem.objective(model, Y, best.theta) + tolerance


@dataclass(frozen=True)
class Broken(ExponentialMixture):
    how: str = ""

    def initial_theta(self, y, rng):
        if self.how == "own randomness":
            rng = np.random.default_rng()
        return super().initial_theta(y, rng)

    def expected_statistics(self, y, theta):
        rows, loglik = super().expected_statistics(y, theta)
        if self.how == "batch-dependent":
            rows = rows / rows.sum(axis=0)
        if self.how == "writes to y":
            y *= 2.0
        if self.how == "loglik of another model":
            loglik = -loglik
        if self.how == "loglik with a term too many":
            loglik = loglik - 0.1 * theta.rates.sum()
        if self.how == "NaN":
            rows = rows * np.nan
        if self.how == "no loglik":
            loglik = loglik[:, None]
        return rows, loglik

    def m_step(self, s):
        theta = super().m_step(s)
        if self.how == "penalty forgotten in the M-step":
            theta = theta._replace(rates=theta.rates * 1.2)
        if self.how == "view":
            return theta._replace(weights=s[:2])
        if self.how == "writes to s":
            s *= 1.0
        return theta

    def penalty(self, theta):
        if self.how == "penalty of the wrong sign":
            return -super().penalty(theta)
        if self.how == "no penalty":
            return 0.0
        return np.inf if self.how == "infinite penalty" else super().penalty(theta)

    def in_domain(self, s):
        if self.how == "domain too small":
            return False
        return True if self.how == "NaN allowed" else super().in_domain(s)


def test_accepts_what_is_not_broken():
    check_model(Broken(), Y)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("own randomness", "from rng"),
        ("batch-dependent", "must not depend on the others"),
        ("loglik of another model", "must not increase the objective"),
        ("penalty forgotten in the M-step", "must not increase the objective"),
        ("penalty of the wrong sign", "must not"),
        ("no penalty", "must not"),
        ("loglik with a term too many", "must not"),
        ("view", "not views of s"),
        ("NaN", "finite rows"),
        ("infinite penalty", "penalty must be finite"),
        ("domain too small", "in_domain must hold"),
        ("NaN allowed", "must not hold for NaN"),
    ],
)
def test_says_what_is_broken(how, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_model(Broken(how=how), Y)


@pytest.mark.parametrize("how", ["writes to y", "writes to s"])
def test_arguments_cannot_be_written_to(how):
    with pytest.raises(ValueError, match="read-only"):
        check_model(Broken(how=how), Y)


def test_shapes_of_a_users_e_step_are_checked_at_once():
    with pytest.raises(ValueError, match=r"shape \(b, q\) and \(b,\)"):
        swiftem.run(Broken(how="no loglik"), Y, methods.EM(), n_iter=1, seed=0)


def test_what_is_slightly_off_shows_where_em_comes_to_rest():
    """Descent alone would not find it: from here EM does not move."""
    start = ExponentialMixture().initial_theta(Y, np.random.default_rng(0))
    rest = swiftem.run(ExponentialMixture(), Y, methods.EM(), theta0=start, n_iter=500).theta
    check_model(Broken(), Y, theta0=rest)
    for how in ("penalty of the wrong sign", "no penalty", "loglik with a term too many"):
        with pytest.raises(AssertionError, match="where EM converges"):
            check_model(Broken(how=how), Y, theta0=rest)
