"""Models of compiled functions, and runs of them in both lanes."""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from gate_cases import waiting_times
from helpers import assert_close, leaves, loop_of, make_method

import swiftem
from swiftem import models, schedules

EPSILON = 1e-3


class Theta(NamedTuple):
    weights: np.ndarray
    rates: np.ndarray


tuple_model, _ = waiting_times()
tuple_e_step, tuple_m_step = tuple_model.expected_statistics, tuple_model.m_step
"""A mixture of two exponential distributions; the columns of y are parts of a waiting time."""


@numba.njit
def named_e_step(y, theta):
    return tuple_e_step(y, (theta.weights, theta.rates))


@numba.njit
def named_m_step(s):
    weights, rates = tuple_m_step(s)
    return Theta(weights, rates)


@numba.njit
def array_e_step(y, theta):
    return tuple_e_step(y, (theta[0], theta[1]))


@numba.njit
def array_m_step(s):
    theta = np.empty((2, 2))
    theta[0], theta[1] = tuple_m_step(s)
    return theta


@numba.njit
def in_domain(s):
    return np.all(s + EPSILON > 0)


@numba.njit
def float_e_step(y, theta):
    """A Gaussian's mean, where half of each sample is missing."""
    rows = np.empty((len(y), 1), dtype=np.float32)
    rows[:, 0] = 0.5 * (y + theta)
    return rows.T.copy().T, -0.5 * (y - theta) ** 2


@numba.njit
def float_m_step(s):
    return s[0]


@numba.njit
def view_e_step(y, theta):
    """A Gaussian's mean; rows and parameters are views of what the functions are given."""
    return y[:, np.newaxis], -0.5 * (y - theta[0]) ** 2


@numba.njit
def view_m_step(s):
    return s[:1]


@numba.njit
def half_e_step(y, theta):
    """As ``float_e_step``, for parameters that are views of the statistics."""
    return (0.5 * (y + theta[0])).reshape(-1, 1), -0.5 * (y - theta[0]) ** 2


START = np.array([0.4, 0.6]), np.array([0.5, 2.0])
MODELS = {
    "NamedTuple": (named_e_step, named_m_step, Theta(*START)),
    "tuple": (tuple_e_step, tuple_m_step, START),
    "array": (array_e_step, array_m_step, np.array(START)),
    "float": (float_e_step, float_m_step, 3.0),
    "views": (view_e_step, view_m_step, np.array([3.0])),
    "theta a view": (half_e_step, view_m_step, np.array([3.0])),
}


@dataclass
class Own:
    """A model with data, a start, and options of the run."""

    model: models.FunctionModel
    y: np.ndarray
    theta0: object
    options: dict

    def run(self, method, kernels="auto", **options):
        options = {"theta0": self.theta0, "n_iter": 60, "seed": 0} | self.options | options
        return swiftem.run(self.model, self.y, method, kernels=kernels, **options)


def own(kind="tuple", n=31, d=None, guard=None, dtype=np.float64, **options):
    e_step, m_step, theta0 = MODELS[kind]
    parts = {"initial_theta": lambda y, rng: theta0, "penalty": lambda theta: 0.0}
    if guard is not None:
        parts["in_domain"] = guard
    model = models.FunctionModel(expected_statistics=e_step, m_step=m_step, **parts)
    rng = np.random.default_rng(0)
    size = n if d is None else (n, d)
    y = np.where(rng.random(size) < 0.5, 1.0, 20.0) * rng.exponential(size=size) + 0.1
    return Own(model, y.astype(dtype), theta0, options)


def compare(problem, method, lane="FunctionsLoop", **options):
    """Run both lanes and compare all that they record; ``lane`` is the loop that is not the reference's."""
    options = {"record_every": 7} | options
    weight = problem.options.get("sample_weight")
    assert loop_of(problem.model, problem.y, method, weight) == lane
    actual, expected = (problem.run(method, kernels, **options) for kernels in ("auto", "reference"))
    counts = [(r.passes, r.n_iter, r.rejected, r.status) for r in (actual, expected)]
    assert counts[0] == counts[1]
    assert type(actual.theta) is type(expected.theta)
    everything = [
        leaves(([(it.theta, it.s) for it in r.path], r.theta, r.s, r.state.method))
        for r in (actual, expected)
    ]
    for one, other in zip(*everything, strict=True):
        assert_close(one, other)
    return expected


def some(name, **options):
    options = {"step_size": schedules.power(0.4, 0.3), "epoch_length": 11} | options
    return make_method(name, **options)
