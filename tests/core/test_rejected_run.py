"""A run whose every step was rejected says so, by a warning and by its status."""

import helpers
import numba
import numpy as np
import pytest

import swiftem
from swiftem import methods, models

Y = np.arange(7.0)
MEAN = {
    "initial_theta": lambda y, rng: rng.normal(),
    "expected_statistics": lambda y, theta: (y[:, None], -0.5 * (y - theta) ** 2),
    "m_step": lambda s: s[0],
    "penalty": lambda theta: 0.0,
}
NOT_FINITE = "All 4 steps of the run were rejected, as the E-step gives statistics that are not finite: theta"
OUTSIDE = "All 4 steps of the run were rejected, as their statistics left the model's domain: theta"


def nan_statistics(y, theta):
    return y.reshape(-1, 1) * np.nan, y * theta


def first(s):
    return s[0]


NAN = models.FunctionModel(**MEAN | {"expected_statistics": nan_statistics})
COMPILED = models.FunctionModel(
    **MEAN | {"expected_statistics": numba.njit(nan_statistics), "m_step": numba.njit(first)}
)
NEVER = models.FunctionModel(**MEAN, in_domain=lambda s: False)


def run(model, name="em", **options):
    return swiftem.run(
        model, Y, helpers.make_method(name, batch_size=2), **{"n_iter": 4, "seed": 0} | options
    )


@pytest.mark.parametrize("name", helpers.NAMES)
@pytest.mark.parametrize("model", [NAN, COMPILED, NEVER], ids=["NaN", "compiled NaN", "outside"])
def test_it_is_said(model, name):
    with pytest.warns(
        UserWarning, match=f"^{OUTSIDE if model is NEVER else NOT_FINITE} is the initial one.$"
    ) as said:
        result = run(model, name)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert (result.status, result.rejected, result.n_iter) == ("rejected", 4, 4)
    assert result.theta == run(model, n_iter=0).theta


def in_domain_at_call(number):
    """Return a model whose domain is asked for several times, and is there once."""
    calls = []
    return models.FunctionModel(**MEAN, in_domain=lambda s: calls.append(1) or len(calls) == number)


def test_one_step_is_enough():
    result = run(in_domain_at_call(2))
    assert (result.status, result.rejected) == ("completed", 3)


def test_no_steps_are_no_rejection():
    assert run(NAN, n_iter=0).status == "completed"


def test_steps_before_a_resumed_run_do_not_count():
    begun = run(models.FunctionModel(**MEAN), n_iter=3)
    with pytest.warns(UserWarning, match=OUTSIDE):
        rest = run(  # the first call is about s0
            in_domain_at_call(1),
            theta0=begun.theta,
            s0=begun.s,
            state=begun.state._replace(rejected=2),
            seed=None,
        )
    assert (rest.status, rest.rejected, rest.n_iter) == ("rejected", 6, 7)
    with pytest.warns(UserWarning, match=OUTSIDE):
        begun = run(NEVER)
    rest = run(models.FunctionModel(**MEAN), theta0=begun.theta, s0=Y[:1], state=begun.state, seed=None)
    assert (rest.status, rest.rejected) == ("completed", 4)


def test_a_killed_run_says_it_as_well(tmp_path):
    """What the run before has rejected belongs to the same run."""

    def die(iterate):
        if iterate.k == 2:
            raise RuntimeError

    kept = {"checkpoint": tmp_path, "checkpoint_every": 1, "record_every": 1}
    with pytest.raises(RuntimeError):
        run(NEVER, callback=die, **kept)
    with pytest.warns(UserWarning, match=OUTSIDE):
        assert run(NEVER, resume=True, **kept).status == "rejected"


def test_a_callback_that_stops_the_run_has_seen_it():
    result = run(NAN, record_every=1, callback=lambda iterate: iterate.rejected == 2)
    assert (result.status, result.n_iter) == ("stopped", 2)
    assert run(NAN, record_every=1, callback=lambda iterate: iterate.rejected == 4).status == "rejected"


@pytest.mark.parametrize("name", helpers.NAMES)
def test_parameters_that_are_no_numbers_are_refused(name):
    model = models.FunctionModel(**MEAN | {"m_step": lambda s: s[0] * np.nan})
    helpers.assert_refused(lambda: run(model, name), "m_step", "numbers, got NaN: in_domain must be False")


def test_the_library_s_models(recwarn):
    """A step of 1 on single rows leaves no covariance."""
    model = models.GaussianMixtureModel(2, covariance="full")
    data = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(UserWarning, match="All 20 steps of the run were rejected, as their statistics left"):
        result = swiftem.run(model, data, methods.OnlineEM(step_size=1.0), n_iter=20, seed=0)
    assert result.status == "rejected"
