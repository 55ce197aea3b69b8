"""A user's functions that return the wrong thing: one sentence names the function and says what is right."""

import helpers
import numba
import numpy as np
import pytest
from helpers import assert_refused

import swiftem
from swiftem import models

Y = np.arange(7.0)
WANTED = r"must return arrays of shape \(b, q\) and \(b,\) for b = \d samples"


def initial_theta(y, rng):
    return rng.normal()


def expected_statistics(y, theta):
    return y.reshape(-1, 1), -0.5 * (y - theta) ** 2


def m_step(s):
    return s[0]


FUNCTIONS = {
    "initial_theta": initial_theta,
    "expected_statistics": expected_statistics,
    "m_step": m_step,
    "penalty": lambda theta: 0.0,
}


class Given(models.ExponentialFamilyModel):
    """A model whose methods are functions that it is given."""

    def __init__(self, functions):
        self.functions = functions

    def initial_theta(self, y, rng):
        return self.functions["initial_theta"](y, rng)

    def expected_statistics(self, y, theta):
        return self.functions["expected_statistics"](y, theta)

    def m_step(self, s):
        return self.functions["m_step"](s)

    def penalty(self, theta):
        return self.functions["penalty"](theta)

    def in_domain(self, s):
        return self.functions.get("in_domain", lambda s: True)(s)


def run(name, *, make=lambda functions: models.FunctionModel(**functions), **changed):
    method = helpers.make_method(name, batch_size=2)
    return swiftem.run(make(FUNCTIONS | changed), Y, method, n_iter=4, seed=0)


E_STEPS = {
    "one array": (lambda y, theta: y[:, None], r", got an array of shape \(7, 1\)"),
    "one vector": (lambda y, theta: y, r", got an array of shape \(7,\)"),
    "None": (lambda y, theta: None, ", got None"),
    "a number": (lambda y, theta: 1.0, ", got a number"),
    "a triple": (lambda y, theta: (y[:, None], y, y), r", got a tuple of 3 \(an array of shape \(7, 1\)"),
    "a dict": (lambda y, theta: {"rows": y, "values": y}, ", got an object of type dict"),
    "rows of one dimension": (lambda y, theta: (y, y), r", got \(7,\) and \(7,\)"),
    "rows of three dimensions": (lambda y, theta: (y[:, None, None], y), r", got \(7, 1, 1\) and \(7,\)"),
    "the wrong way round": (lambda y, theta: (y, y[:, None]), r", got \(7,\) and \(7, 1\)"),
    "another length": (lambda y, theta: (y[:1, None], y[:1]), r", got \(1, 1\) and \(1,\)"),
    "no statistics": (lambda y, theta: (y[:, None][:, :0], y), r", got \(7, 0\) and \(7,\)"),
    "no log-likelihood": (lambda y, theta: (y[:, None], None), ", of real numbers, got dtypes float64 and"),
    "texts": (lambda y, theta: ("rows", "values"), ", of real numbers, got dtypes <U"),
    "complex": (lambda y, theta: (y[:, None] * 1j, y), ", of real numbers, got dtypes complex128 and"),
}  # fmt: skip


@pytest.mark.parametrize(
    "make", [lambda functions: models.FunctionModel(**functions), Given], ids=["functions", "class"]
)
@helpers.parametrize_cases(E_STEPS)
def test_e_step(case, make):
    function, got = case
    for name in ("em", "fiem"):
        assert_refused(
            lambda name=name: run(name, make=make, expected_statistics=function),
            "expected_statistics",
            WANTED + got,
        )


@pytest.mark.parametrize("name", helpers.STOCHASTIC)
def test_another_number_of_statistics_for_other_samples(name):
    assert_refused(
        lambda: run(name, expected_statistics=lambda y, theta: (np.ones((len(y), len(y))), y)),
        "expected_statistics",
        "with the same q for all samples, got 7 and 2",
    )


M_STEPS = {
    "a tuple of two": (lambda s: (s[0], s[0]), "such as a number, .* got a tuple of 2"),
    "a text": (lambda s: "mean", "such as a number, .* got an object of type str"),
    "a dict": (lambda s: {}, "such as a number, .* got an object of type dict"),
    "another shape": (lambda s: np.ones((3, 1)), r"such as a number, .* got an array of shape \(3, 1\) "),
    "None": (lambda s: None, "^m_step must return the parameters, got None.$"),
}  # fmt: skip


@helpers.parametrize_cases(M_STEPS)
def test_m_step(case):
    function, right = case
    assert_refused(lambda: run("em", m_step=function), "m_step", right)


OTHERS = {
    "in_domain, None": ("in_domain", lambda s: None, "True or False, got None"),
    "in_domain, array": ("in_domain", lambda s: s > 0, r"True or False, got an array of shape \(1,\)"),
    "in_domain, text": ("in_domain", lambda s: "yes", "True or False, got an object of type str"),
    "initial_theta, None": ("initial_theta", lambda y, rng: None, "return the parameters, got None"),
}


@helpers.parametrize_cases(OTHERS)
def test_others(case):
    name, function, right = case
    assert_refused(lambda: run("em", **{name: function}), name, right)


@pytest.mark.parametrize("value", [None, "none", np.ones(2)], ids=["None", "text", "array"])
def test_penalty(value):
    model = models.FunctionModel(**FUNCTIONS | {"penalty": lambda theta: value})
    assert_refused(lambda: swiftem.objective(model, Y, 1.0), "penalty", "must return a number, got ")


@pytest.mark.parametrize("name", [*FUNCTIONS, "in_domain"])
def test_what_is_no_function(name):
    assert_refused(lambda: models.FunctionModel(**FUNCTIONS | {name: 3}), name, "must be a function, got 3")


def one_array(y, theta):
    return y.reshape(-1, 1) - theta


def pair(s):
    return s[0], s[0]


def nothing(s):
    pass


def no_code(y, theta):
    return np.stack([y, y], 5).nowhere, y


COMPILED = {
    "one array": ("expected_statistics", one_array, rf"{WANTED}, got an array of shape \(7, 1\)"),
    "a pair": ("m_step", pair, "such as a number, .* got a tuple of 2"),
    "None": ("m_step", nothing, "must return the parameters, got None"),
    "what does not compile": (
        "expected_statistics",
        no_code,
        "must compile for parameters that are a number",
    ),
}


@pytest.mark.parametrize("name", ["em", "sem"])
@helpers.parametrize_cases(COMPILED)
def test_compiled_functions(case, name):
    which, function, right = case
    both = {"expected_statistics": expected_statistics, "m_step": m_step, which: function}
    assert_refused(lambda: run(name, **{key: numba.njit(each) for key, each in both.items()}), which, right)


def test_errors_within_a_user_s_function_are_the_user_s():
    def broken(y, theta):
        return y[99], y

    with pytest.raises(IndexError, match="index 99 is out of bounds"):
        run("em", expected_statistics=broken)


def test_parameters_of_another_form_that_work_are_no_error():
    assert run("em", m_step=lambda s: (s[0],)).theta[0] == pytest.approx(Y.mean())
    assert run("sem", initial_theta=lambda y, rng: [0.0]).status == "completed"
