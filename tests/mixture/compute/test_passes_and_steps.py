"""Mixtures with covariances: compiled passes and lanes do what plain NumPy does, to rounding."""

import helpers
import numpy as np
import pytest
from helpers import choose_compute

import swiftem
from swiftem import methods, models, posterior, schedules
from swiftem.core.algorithm import Algorithm1
from swiftem.core.compute import Compute
from swiftem.data import ArraySource
from swiftem.kernels.threads import set_threads
from swiftem.mixture.compute.numpy import NumpyCompute
from swiftem.mixture.compute.passes import PassesCompute
from swiftem.mixture.covariance import ESTIMATED

RNG = np.random.default_rng(11)
KINDS = list(ESTIMATED)
STOCHASTIC = ["sem", "iem", "sem-vr", "fiem"]
PRIOR = models.NormalInverseWishart(9.0, 0.5, mean_precision=0.2)


def case(n, d, M, b, *, step=0.05, weights=False, offset=0.0, options=None, epoch=None, spread=2.0):
    return locals()


CASES = {
    "one row": case(1, 1, 1, 1, options={"prior": PRIOR}),
    "one by one": case(97, 2, 3, 1, step=0.01, options={"prior": PRIOR, "concentration": 2.0}),
    "larger than data": case(29, 3, 2, 61, weights=True, options={"prior": PRIOR}),
    "one component": case(31, 2, 1, 4, weights=True, options={"reg_covar": 1e-3, "epsilon": 0.01}),
    "schedule": case(211, 5, 3, 23, step=schedules.inverse(1, 20), options={"prior": PRIOR}),
    "known weights": case(211, 2, 2, 17, options={"known_weights": [0.3, 0.7], "prior": PRIOR}),
    "rejected steps": case(60, 2, 3, 2, step=0.5),
    "short epochs": case(101, 2, 2, 7, epoch=5, options={"prior": PRIOR}),
    "several blocks": case(1201, 3, 5, 1100, offset=1e3, options={"prior": PRIOR}),
    "several parts": case(301, 33, 40, 130, options={"prior": models.NormalInverseWishart(40.0, 9.0)}),
    "far": case(301, 2, 3, 40, spread=1e4, options={"reg_covar": 1e-3}),
}


def make(kind, settings, seed=5):
    rng = np.random.default_rng(seed)
    n, d, M = settings["n"], settings["d"], settings["M"]
    y = rng.normal(size=(n, d)) + settings["spread"] * rng.normal(size=(M, d))[rng.integers(M, size=n)]
    y += settings["offset"]
    model = models.GaussianMixtureModel(M, covariance=kind, **(settings["options"] or {}))
    weight = rng.random(n) + 0.1 if settings["weights"] else None
    # A few steps of em: where components lie on each other, all methods magnify rounding.
    em = swiftem.run(model, y, methods.EM(), n_iter=3, seed=0, sample_weight=weight, kernels="reference")
    return model, y, em.theta, weight


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
@pytest.mark.parametrize("name", STOCHASTIC)
def test_same_trajectory(name, settings, kind):
    model, y, theta0, weight = make(kind, settings)
    method = helpers.make_method(
        name, batch_size=settings["b"], step_size=settings["step"], epoch_length=settings["epoch"]
    )
    compiled, plain = (
        swiftem.run(
            model, y, method, theta0=theta0, n_iter=30, seed=3, sample_weight=weight, record_every=7,
            kernels=kernels,
        )
        for kernels in ("auto", "reference")
    )  # fmt: skip
    assert (compiled.rejected, compiled.passes) == (plain.rejected, plain.passes)
    scale = np.abs(plain.s).max()
    for ours, theirs in zip(compiled.path, plain.path, strict=True):
        assert (ours.k, ours.passes, ours.rejected) == (theirs.k, theirs.passes, theirs.rejected)
        np.testing.assert_allclose(ours.s, theirs.s, rtol=1e-7, atol=1e-9 * scale)
        if settings["spread"] < 1e3:
            for one, other in zip(ours.theta, theirs.theta, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_some_cases_reject_steps():
    model, y, theta0, _ = make("full", CASES["rejected steps"])
    method = methods.FastIncrementalEM(step_size=0.5, batch_size=2)
    assert swiftem.run(model, y, method, theta0=theta0, n_iter=30, seed=3).rejected > 0


def test_lanes_are_taken(monkeypatch):
    from swiftem.mixture.compute.steps import StepsLoop

    taken = []
    for lane in (StepsLoop, Algorithm1):
        monkeypatch.setattr(
            lane, "advance", lambda self, now, stop: taken.append(type(self)) or setattr(now, "k", stop)
        )
    model, y, theta0, _ = make("diag", CASES["one by one"])
    taken.clear()
    for name in [*STOCHASTIC, "em"]:
        swiftem.run(model, y, helpers.make_method(name), theta0=theta0, n_iter=1, seed=0)
    assert taken == [StepsLoop] * len(STOCHASTIC) + [Algorithm1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", helpers.NAMES)
def test_a_run_in_two_parts_is_the_same_to_the_last_bit(name, kind):
    model, y, theta0, _ = make(kind, CASES["schedule"])
    method = helpers.make_method(name, step_size=0.05, batch_size=23, epoch_length=8)
    whole = swiftem.run(model, y, method, theta0=theta0, n_iter=30, seed=1)
    first = swiftem.run(model, y, method, theta0=theta0, n_iter=13, seed=1, record_every=5)
    rest = swiftem.run(model, y, method, theta0=first.theta, s0=first.s, state=first.state, n_iter=17)
    helpers.assert_same_result(rest, whole)


def test_a_state_goes_from_one_kernel_to_the_other():
    model, y, theta0, _ = make("full", CASES["schedule"])
    for name in STOCHASTIC:
        method = helpers.make_method(name, step_size=0.05, batch_size=23)
        whole = swiftem.run(model, y, method, theta0=theta0, n_iter=30, seed=0)
        first = swiftem.run(model, y, method, theta0=theta0, n_iter=13, seed=0, kernels="reference")
        rest = swiftem.run(model, y, method, theta0=first.theta, s0=first.s, state=first.state, n_iter=17)
        np.testing.assert_allclose(rest.s, whole.s, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_centre_is_the_mean_of_what_is_stored_also_in_float32(kind, kernels):
    model, y, theta0, _ = make(kind, CASES["schedule"])
    bound = model.bind(ArraySource(y))
    for method in (
        methods.IncrementalEM(batch_size=23, memory_dtype="float32"),
        methods.FastIncrementalEM(step_size=0.05, batch_size=23, memory_dtype="float32"),
    ):
        result = swiftem.run(model, y, method, theta0=theta0, n_iter=40, seed=0, kernels=kernels)
        centre, memory = result.state.method
        assert memory.dtype == np.float32
        batch = bound.source.take(np.arange(len(y)))
        expected = bound.statistics(batch, memory.astype(np.float64), np.full(len(y), 1.0 / len(y)))
        np.testing.assert_allclose(centre, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [
        *((np.float32, layout) for layout in ("C", "strided")),
        # Other types, for which kernels are compiled again.
        *(pytest.param(np.float32, layout, marks=pytest.mark.slow) for layout in ("F", "read-only")),
        *((np.int64, layout) for layout in ("C", "F", "read-only", "strided")),
    ],
)
def test_kinds_of_arrays(dtype, layout):
    """What is not in C order, or of integers, is converted: passes by chunks, batches one by one."""
    y = np.round(10 * RNG.normal(size=(40, 2))).astype(dtype)
    plain = y.astype(np.float64)
    if layout == "F":
        y = np.asfortranarray(y)
    elif layout == "strided":
        y = np.repeat(y, 2, axis=0)[::2]
    elif layout == "read-only":
        y.flags.writeable = False
    model = models.GaussianMixtureModel(2, covariance="full", prior=models.NormalInverseWishart(3.0, 1.0))
    for name in ("em", "sem"):
        method = helpers.make_method(name, step_size=0.1, batch_size=5)
        ours, theirs = (swiftem.run(model, data, method, n_iter=20, seed=0) for data in (y, plain))
        np.testing.assert_allclose(ours.s, theirs.s, rtol=1e-9)
        if name == "em":
            np.testing.assert_array_equal(ours.s, theirs.s)


# Full passes


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "M", "spread", "offset"),
    [(2, 1, 1, 1, 0), (4099, 3, 5, 1, 0), (2011, 2, 3, 2, 1e6), (997, 4, 7, 1e6, 0), (130, 31, 67, 3, 0)],
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernels", ["auto", "numpy"])
def test_full_passes(kernels, kind, n, d, M, spread, offset, weights):
    model, y, theta, weight = make(
        kind, case(n, d, M, 1, spread=spread, offset=offset, weights=weights, options={"reg_covar": 1.0})
    )
    source = ArraySource(y, weight)
    bound = model.bind(source)
    fast, plain = choose_compute(kernels, bound, source), Compute(bound, source)
    assert type(fast) is (PassesCompute if kernels == "auto" else NumpyCompute)
    value = fast.objective(theta)
    expected = plain.full(theta)
    close = {"rtol": 1e-9, "atol": 1e-11 * np.abs(expected).max()}
    for _ in range(2):  # the second pass knows how far samples are, and products that stay the same
        np.testing.assert_allclose(fast.full(theta), expected, **close)
    assert fast.objective(theta) == pytest.approx(value, rel=1e-9)
    assert value == pytest.approx(plain.objective(theta), rel=1e-11)
    (s, memory), (s_plain, memory_plain) = fast.remember(theta), plain.remember(theta)
    np.testing.assert_allclose(s, s_plain, **close)
    np.testing.assert_allclose(memory, memory_plain, atol=1e-9)
    assert fast.evaluations == 3 * n
    batch = fast.take(RNG.integers(n, size=50))
    rows = fast.rows(batch, theta)
    np.testing.assert_allclose(rows, plain.rows(batch, theta), atol=1e-9)
    for ours, theirs in ((fast.mean, plain.mean), (fast.share, plain.share)):
        np.testing.assert_allclose(ours(batch, rows), theirs(batch, rows), **close)


@pytest.mark.parametrize("kind", KINDS)
def test_full_passes_do_not_depend_on_the_number_of_threads(kind):
    model, y, theta, _ = make(kind, case(30_001, 4, 6, 1))
    source = ArraySource(y)
    bound = model.bind(source)
    results = []
    try:
        for threads in (1, 2, 3, 8):
            set_threads(threads)
            e_step = choose_compute("auto", bound, source)
            s, memory = e_step.remember(theta)
            free = e_step.objective(theta)
            results.append((e_step.full(theta), s, memory, free, *e_step.evaluate(theta, labels=True)[::2]))
    finally:
        set_threads(None)
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_posterior_of_fewer_rows_than_components(kernels):
    model, y, theta, _ = make("tied", case(200, 2, 5, 1))
    everything = posterior(model, y, theta, responsibilities=True, labels=True, kernels=kernels)
    for i in range(3):
        one = posterior(model, y[i : i + 1], theta, responsibilities=True, labels=True, kernels=kernels)
        np.testing.assert_allclose(one.log_likelihood, everything.log_likelihood[i : i + 1], rtol=1e-12)
        np.testing.assert_allclose(one.responsibilities, everything.responsibilities[i : i + 1], atol=1e-12)
        assert one.labels == everything.labels[i]
    assert posterior(model, y, theta, kernels=kernels)[1:] == (None, None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernels", ["auto", "numpy"])
def test_a_start_by_responsibilities(kernels, kind):
    """Shares of given rows add up to the statistics whose M-step is the start."""
    model, y, theta, weight = make(kind, case(5000, 3, 4, 1, weights=True))
    source = ArraySource(y, weight)
    bound = model.bind(source)
    fast, plain = choose_compute(kernels, bound, source), Compute(bound, source)
    whole = next(source.blocks(5000))
    rows = plain.evaluate(theta, responsibilities=True).responsibilities
    np.testing.assert_allclose(fast.share(whole, rows), plain.full(theta), rtol=1e-9, atol=1e-12)
    labels = rows.argmax(axis=1)
    first = bound.m_step(fast.share(whole, np.eye(4)[labels]))
    np.testing.assert_allclose(first.means[2], np.average(y[labels == 2], 0, weight[labels == 2]), rtol=1e-9)
    if kernels == "auto":
        with pytest.raises(ValueError, match="rows must have 4 columns"):
            fast.share(whole, np.ones((5000, 3)))


def test_no_subnormal_responsibilities():
    """They would slow the matrix products down several times."""
    model = models.GaussianMixtureModel(3, covariance="diag")
    source = ArraySource(np.linspace(-60, 60, 500)[:, None])
    theta = model.theta(means=[[-30.0], [0.0], [30.0]], covariances=np.ones((3, 1)))
    _, memory = choose_compute("auto", model.bind(source), source).remember(theta)
    assert ((memory == 0) | (memory > 1e-21)).all()
    assert (memory == 0).any()
