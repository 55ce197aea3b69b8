"""The compiled lanes of the mixture do what the plain loop does, to rounding, whatever the sizes."""

import helpers
import numpy as np
import pytest
from helpers import choose_compute

import swiftem
from swiftem import methods, models, schedules
from swiftem.core.compute import Compute
from swiftem.data import ArraySource
from swiftem.kernels.loop import CompiledLoop
from swiftem.kernels.threads import set_threads
from swiftem.mixture.compute.one_sample import OneSampleLoop
from swiftem.mixture.compute.passes import PassesCompute
from swiftem.mixture.compute.steps import StepsLoop

RNG = np.random.default_rng(11)
STOCHASTIC = ["sem", "iem", "sem-vr", "fiem"]


def case(n, d, M, b, *, step=0.1, weights=False, scale=1.5, offset=0.0, known=False, delta=1e-3, epoch=None):
    return locals()


CASES = {
    "one row": case(1, 1, 1, 1),
    "prime sizes": case(97, 2, 3, 1),
    "three in a batch": case(97, 2, 3, 3, weights=True),
    "batch larger than data": case(7, 3, 2, 20),
    "one component": case(31, 2, 1, 4, weights=True),
    "schedule": case(53, 1, 2, 1, step=schedules.inverse(3, 10)),
    "any function": case(53, 1, 2, 2, step=lambda k: 1 / (k + 1)),
    "first step one": case(53, 1, 2, 1, step=schedules.power(1.0, 0.6)),
    "known weights": case(53, 1, 2, 1, known=True),
    "samples far from all means": case(41, 2, 2, 1, scale=100.0, weights=True),
    "samples far from the origin": case(41, 2, 2, 2, offset=1e3, delta=1e-9),
    "rejected steps": case(41, 1, 3, 1, step=0.6, delta=1e-6),
    "short epochs": case(41, 1, 2, 1, epoch=5),
    "mini-batch": case(401, 16, 32, 128),
    "mini-batch, weights": case(401, 16, 32, 128, weights=True, step=0.05),
    "mini-batch, larger than data": case(60, 8, 20, 200),
    "mini-batch, offset": case(401, 16, 32, 128, offset=1e3, delta=1e-9),
    "mini-batch, far": case(300, 8, 40, 64, scale=80.0),
    "mini-batch, rejected": case(300, 8, 40, 64, step=0.4, delta=1e-5),
    "mini-batch, known weights": case(300, 8, 40, 64, known=True),
}


def make(n, d, M, b, step, weights, scale, offset, known, delta, epoch):
    y = scale * RNG.normal(size=(n, d)) + offset
    model = models.GaussianMixtureModel(
        M, delta=delta, epsilon=delta, known_weights=RNG.dirichlet(np.ones(M)) if known else None
    )
    theta0 = model.theta(means=y[RNG.integers(n, size=M)] + RNG.normal(size=(M, d)))
    return model, y, theta0, RNG.random(n) + 0.1 if weights else None


def both(name, settings, n_iter=150, **options):
    model, y, theta0, sample_weight = make(**settings)
    method = helpers.make_method(
        name, batch_size=settings["b"], step_size=settings["step"], epoch_length=settings["epoch"]
    )
    return [
        swiftem.run(
            model, y, method, theta0=theta0, n_iter=n_iter, seed=3, sample_weight=sample_weight,
            record_every=7, kernels=kernels, **options,
        )
        for kernels in ("auto", "reference")
    ]  # fmt: skip


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
@pytest.mark.parametrize("name", STOCHASTIC)
def test_same_trajectory(name, settings):
    compiled, plain = both(name, settings)
    assert (compiled.rejected, compiled.passes) == (plain.rejected, plain.passes)
    for ours, theirs in zip(compiled.path, plain.path, strict=True):
        assert (ours.k, ours.passes, ours.rejected) == (theirs.k, theirs.passes, theirs.rejected)
        helpers.assert_close(ours.s, theirs.s)
        helpers.assert_close(ours.theta.means, theirs.theta.means)
        helpers.assert_close(ours.theta.weights, theirs.theta.weights)


@pytest.mark.parametrize("name", ["sem", "sem-vr"])
def test_a_far_sample_in_the_middle_of_a_stretch(name):
    """From there on the careful loop continues: what was done before it is not done again."""
    model, y, theta0, _ = make(**CASES["prime sizes"])
    y[17] += 500.0
    draws = RNG.integers(17, size=60)
    draws[30] = 17
    method = helpers.make_method(name, step_size=0.1)
    compiled, plain = (
        swiftem.run(model, y, method, theta0=theta0, n_iter=60, seed=0, draws=draws, kernels=kernels)
        for kernels in ("auto", "reference")
    )
    helpers.assert_close(compiled.s, plain.s)


def test_some_cases_reject_steps():
    assert both("fiem", CASES["rejected steps"])[0].rejected > 0
    assert both("fiem", CASES["mini-batch, rejected"])[0].rejected > 0


@pytest.mark.parametrize(("name", "lane"), [("rejected steps", OneSampleLoop), ("mini-batch", StepsLoop)])
def test_lanes_are_taken(name, lane, monkeypatch):
    """Without this, a lane that is never chosen would pass every other test."""
    taken = []
    monkeypatch.setattr(
        CompiledLoop, "advance", lambda self, now, stop: taken.append(type(self)) or setattr(now, "k", stop)
    )
    model, y, theta0, _ = make(**CASES[name])
    for method in ("sem", "iem", "sem-vr", "fiem", "spider"):
        chosen = helpers.make_method(method, batch_size=CASES[name]["b"])
        swiftem.run(model, y, chosen, theta0=theta0, n_iter=1, seed=0)
    assert taken == [lane] * 5


def test_an_empty_component_stays_empty():
    y = np.concatenate([RNG.normal(size=50), RNG.normal(size=50) + 4])
    model = models.GaussianMixtureModel(3)
    theta0 = model.theta(weights=[0.5, 0.5, 0.0], means=[[0.0], [4.0], [1e3]])
    for name in STOCHASTIC:
        compiled, plain = (
            swiftem.run(
                model,
                y,
                helpers.make_method(name, step_size=0.05),
                theta0=theta0,
                n_iter=200,
                seed=1,
                kernels=k,
            )
            for k in ("auto", "reference")
        )
        helpers.assert_close(compiled.s, plain.s)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("layout", ["C", "F", "read-only", "strided"])
def test_kinds_of_arrays(dtype, layout):
    y = np.round(10 * RNG.normal(size=(40, 2))).astype(dtype)
    plain = y.astype(np.float64)
    if layout == "F":
        y = np.asfortranarray(y)
    elif layout == "strided":
        y = np.repeat(y, 2, axis=0)[::2]
    elif layout == "read-only":
        y.flags.writeable = False
    model = models.GaussianMixtureModel(2)
    options = {"theta0": model.theta(means=plain[:2]), "n_iter": 60, "seed": 0}
    for name in STOCHASTIC:
        method = helpers.make_method(name, step_size=0.1)
        expected = swiftem.run(model, plain, method, **options)
        np.testing.assert_array_equal(swiftem.run(model, y, method, **options).s, expected.s)


@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize("b", [1, 3, 128])
@pytest.mark.parametrize("kind", [methods.IncrementalEM, methods.FastIncrementalEM])
def test_the_centre_is_the_mean_of_what_is_stored_also_in_float32(kind, b, kernels):
    settings = CASES["mini-batch" if b == 128 else "prime sizes"]
    model, y, theta0, _ = make(**settings)
    step = {"step_size": 0.05} if kind is methods.FastIncrementalEM else {}
    method = kind(batch_size=b, memory_dtype="float32", **step)
    result = swiftem.run(model, y, method, theta0=theta0, n_iter=300, seed=0, kernels=kernels)
    centre, memory = result.state.method
    assert memory.dtype == np.float32
    stored = memory.astype(np.float64)
    expected = np.concatenate([stored.mean(axis=0), (stored.T @ y).ravel() / len(y)])
    np.testing.assert_allclose(centre, expected, atol=1e-13 * max(1.0, np.abs(y).max()))
    double = swiftem.run(
        model, y, kind(batch_size=b, **step), theta0=theta0, n_iter=300, seed=0, kernels=kernels
    )
    np.testing.assert_allclose(result.s, double.s, atol=1e-4)


def test_a_state_goes_from_one_kernel_to_the_other():
    model, y, theta0, _ = make(**CASES["prime sizes"])
    for name in STOCHASTIC:
        method = helpers.make_method(name, step_size=0.1, epoch_length=13)
        whole = swiftem.run(model, y, method, theta0=theta0, n_iter=100, seed=0)
        first = swiftem.run(model, y, method, theta0=theta0, n_iter=40, seed=0, kernels="reference")
        rest = swiftem.run(model, y, method, theta0=first.theta, s0=first.s, state=first.state, n_iter=60)
        helpers.assert_close(rest.s, whole.s)


def test_records_are_not_changed_afterwards():
    model, y, theta0, _ = make(**CASES["prime sizes"])
    for name in STOCHASTIC:
        result = swiftem.run(
            model, y, helpers.make_method(name, step_size=0.1), theta0=theta0, n_iter=50, seed=0,
            record_every=5, record=lambda iterate: (iterate, iterate.s.copy(), iterate.theta.means.copy()),
        )  # fmt: skip
        for iterate, s, means in result.path:
            np.testing.assert_array_equal(iterate.s, s)
            np.testing.assert_array_equal(iterate.theta.means, means)


# Full passes


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "M", "scale", "offset"),
    [(1, 1, 1, 1, 0), (4099, 3, 5, 1, 0), (20_011, 2, 3, 2, 1e6), (3001, 4, 7, 300, 0), (50, 1, 60, 1, 0)],
)
def test_full_passes(n, d, M, scale, offset, weights):
    y = scale * RNG.normal(size=(n, d)) + offset
    source = ArraySource(y, RNG.random(n) + 0.1 if weights else None)
    bound = models.GaussianMixtureModel(min(M, n)).bind(source)
    theta = bound.initial_theta(RNG)
    fast, plain = choose_compute("auto", bound, source), Compute(bound, source)
    assert type(fast) is PassesCompute
    helpers.assert_close(fast.full(theta), plain.full(theta))
    (s, memory), (s_plain, memory_plain) = fast.remember(theta), plain.remember(theta)
    helpers.assert_close(s, s_plain)
    helpers.assert_close(memory, memory_plain)
    assert fast.objective(theta) == pytest.approx(plain.objective(theta), rel=1e-12)
    assert fast.evaluations == plain.evaluations == 2 * n


def test_full_passes_do_not_depend_on_the_number_of_threads():
    y = RNG.normal(size=(70_001, 4))
    source = ArraySource(y)
    bound = models.GaussianMixtureModel(16).bind(source)
    theta = bound.initial_theta(RNG)
    results = []
    try:
        for threads in (1, 2, 3, 8):
            set_threads(threads)
            e_step = choose_compute("auto", bound, source)
            results.append((e_step.full(theta), e_step.remember(theta)[1], e_step.objective(theta)))
    finally:
        set_threads(None)
    for s, memory, value in results[1:]:
        np.testing.assert_array_equal(s, results[0][0])
        np.testing.assert_array_equal(memory, results[0][1])
        assert value == results[0][2]


def test_no_subnormal_responsibilities():
    """They would slow the matrix products down several times."""
    y = np.linspace(-60, 60, 500)[:, None]
    source = ArraySource(y)
    model = models.GaussianMixtureModel(3)
    bound = model.bind(source)
    _, memory = choose_compute("auto", bound, source).remember(model.theta(means=[[-30.0], [0.0], [30.0]]))
    assert ((memory == 0) | (memory > 1e-21)).all()
    assert (memory == 0).any()
