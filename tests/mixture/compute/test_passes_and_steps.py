"""Compiled passes and lanes of mixtures do what plain NumPy does, to rounding, whatever the sizes."""

import helpers
import numpy as np
import pytest
from helpers import choose_compute

import swiftem
from swiftem import methods, models, posterior, schedules
from swiftem.core.compute import Compute
from swiftem.data import ArraySource
from swiftem.kernels.threads import set_threads
from swiftem.mixture.compute.numpy import NumpyCompute
from swiftem.mixture.compute.passes import PassesCompute
from swiftem.mixture.covariance import ESTIMATED

RNG = np.random.default_rng(11)
KINDS = list(ESTIMATED)
ALL = ["unit", *KINDS]
STOCHASTIC = ["sem", "iem", "sem-vr", "fiem"]
PRIOR = models.NormalInverseWishart(9.0, 0.5, mean_precision=0.2)
every_kind = pytest.mark.parametrize("kind", KINDS)


def case(n, d, M, b, **options):
    return {"n": n, "d": d, "M": M, "b": b, "weights": False, "epoch": None, "offset": 0.0, **options}


def unit(n, d, M, b, *, step=0.1, delta=1e-3, scale=1.5, known=False, **options):
    return case(n, d, M, b, step=step, delta=delta, scale=scale, known=known, **options)


def estimated(n, d, M, b, *, step=0.05, spread=2.0, **options):
    around = {name: options.pop(name) for name in ("weights", "epoch", "offset") if name in options}
    return case(n, d, M, b, step=step, spread=spread, options=options, **around)


UNIT = {
    "one row": unit(1, 1, 1, 1),
    "prime sizes": unit(97, 2, 3, 1),
    "three in a batch": unit(97, 2, 3, 3, weights=True),
    "batch larger than data": unit(7, 3, 2, 20),
    "one component": unit(31, 2, 1, 4, weights=True),
    "schedule": unit(53, 1, 2, 1, step=schedules.inverse(3, 10)),
    "any function": unit(53, 1, 2, 2, step=lambda k: 1 / (k + 1)),
    "first step one": unit(53, 1, 2, 1, step=schedules.power(1.0, 0.6)),
    "known weights": unit(53, 1, 2, 1, known=True),
    "samples far from all means": unit(41, 2, 2, 1, scale=100.0, weights=True),
    "samples far from the origin": unit(41, 2, 2, 2, offset=1e3, delta=1e-9),
    "rejected steps": unit(41, 1, 3, 1, step=0.6, delta=1e-6),
    "short epochs": unit(41, 1, 2, 1, epoch=5),
    "mini-batch": unit(401, 16, 32, 128),
    "mini-batch, weights": unit(401, 16, 32, 128, weights=True, step=0.05),
    "mini-batch, larger than data": unit(60, 8, 20, 200),
    "mini-batch, offset": unit(401, 16, 32, 128, offset=1e3, delta=1e-9),
    "mini-batch, far": unit(300, 8, 40, 64, scale=80.0),
    "mini-batch, rejected": unit(300, 8, 40, 64, step=0.4, delta=1e-5),
    "mini-batch, known weights": unit(300, 8, 40, 64, known=True),
}
OTHERS = {
    "one row": estimated(1, 1, 1, 1, prior=PRIOR),
    "one by one": estimated(97, 2, 3, 1, step=0.01, prior=PRIOR, concentration=2.0),
    "larger than data": estimated(29, 3, 2, 61, weights=True, prior=PRIOR),
    "one component": estimated(31, 2, 1, 4, weights=True, reg_covar=1e-3, epsilon=0.01),
    "schedule": estimated(211, 5, 3, 23, step=schedules.inverse(1, 20), prior=PRIOR),
    "known weights": estimated(211, 2, 2, 17, known_weights=[0.3, 0.7], prior=PRIOR),
    "rejected steps": estimated(60, 2, 3, 2, step=0.5),
    "short epochs": estimated(101, 2, 2, 7, epoch=5, prior=PRIOR),
    "several blocks": estimated(1201, 3, 5, 1100, offset=1e3, prior=PRIOR),
    "several parts": estimated(301, 33, 40, 130, prior=models.NormalInverseWishart(40.0, 9.0)),
    "far": estimated(301, 2, 3, 40, spread=1e4, reg_covar=1e-3),
}
CASES = {("unit", name): settings for name, settings in UNIT.items()} | {
    (kind, name): settings for kind in KINDS for name, settings in OTHERS.items()
}


def make(kind, settings, seed=6):
    """Return a model, rows, a start and weights."""
    rng = np.random.default_rng(seed)
    n, d, M, weights, offset = (settings[name] for name in ("n", "d", "M", "weights", "offset"))
    weight = rng.random(n) + 0.1 if weights else None
    if kind == "unit":
        y, delta = settings["scale"] * rng.normal(size=(n, d)) + offset, settings["delta"]
        known = rng.dirichlet(np.ones(M)) if settings["known"] else None
        model = models.GaussianMixtureModel(M, delta=delta, epsilon=delta, known_weights=known)
        return model, y, model.theta(means=y[rng.integers(n, size=M)] + rng.normal(size=(M, d))), weight
    y = (
        rng.normal(size=(n, d))
        + settings["spread"] * rng.normal(size=(M, d))[rng.integers(M, size=n)]
        + offset
    )
    model = models.GaussianMixtureModel(M, covariance=kind, **settings["options"])
    # A few steps of em: where components lie on each other, all methods magnify rounding.
    em = swiftem.run(model, y, methods.EM(), n_iter=3, seed=0, sample_weight=weight, kernels="reference")
    return model, y, em.theta, weight


def some(kind):
    """Return a case for tests that need only one."""
    return make(kind, UNIT["prime sizes"] if kind == "unit" else OTHERS["schedule"])


def both(model, y, method, **options):
    return [swiftem.run(model, y, method, kernels=kernels, **options) for kernels in ("auto", "reference")]


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.parametrize("method", STOCHASTIC)
def test_same_trajectory(method, kind, name):
    settings = CASES[kind, name]
    model, y, theta0, weight = make(kind, settings)
    made = helpers.make_method(
        method, batch_size=settings["b"], step_size=settings["step"], epoch_length=settings["epoch"]
    )
    options = {"theta0": theta0, "n_iter": 150 if kind == "unit" else 30, "seed": 3, "record_every": 7}
    compiled, plain = both(model, y, made, sample_weight=weight, **options)
    assert (compiled.rejected, compiled.passes) == (plain.rejected, plain.passes)
    assert compiled.rejected > 0 or "rejected" not in name or method != "fiem" or kind not in ("unit", "full")
    scale = np.abs(plain.s).max()
    for ours, theirs in zip(compiled.path, plain.path, strict=True):
        assert (ours.k, ours.passes, ours.rejected) == (theirs.k, theirs.passes, theirs.rejected)
        if kind == "unit":
            rtol = 1e-7 if name == "mini-batch, rejected" else 1e-9  # where long steps magnify rounding
            for one, other in ((ours.s, theirs.s), *zip(ours.theta, theirs.theta, strict=True)):
                np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-3 * rtol)
            continue
        np.testing.assert_allclose(ours.s, theirs.s, rtol=1e-7, atol=1e-9 * scale)
        if settings["spread"] < 1e3:
            for one, other in zip(ours.theta, theirs.theta, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("method", ["sem", "sem-vr"])
def test_a_far_sample_in_the_middle_of_a_stretch(method):
    """From there on the careful loop continues: what was done before it is not done again."""
    model, y, theta0, _ = some("unit")
    y[17] += 500.0
    draws = RNG.integers(17, size=60)
    draws[30] = 17
    made = helpers.make_method(method, step_size=0.1)
    compiled, plain = both(model, y, made, theta0=theta0, n_iter=60, seed=0, draws=draws)
    helpers.assert_close(compiled.s, plain.s)


LANES = {("unit", 1): "OneSampleLoop", ("unit", 128): "StepsLoop", ("diag", 1): "StepsLoop"}
LANES |= {(f"missing {kind}", 1): "StepsLoop" for kind in KINDS}


@pytest.mark.parametrize(("kind", "b"), LANES)
def test_lanes_are_taken(kind, b):
    """Without this, a lane that is never chosen would pass every other test."""
    model, y, *_ = make(kind.split()[-1], UNIT["mini-batch"] if b > 1 else OTHERS["one by one"]
                               if kind != "unit" else UNIT["rejected steps"])  # fmt: skip
    if "missing" in kind:
        model = models.GaussianMixtureModel(3, covariance=kind.split()[1], missing="ignore", reg_covar=0.1)
        y[::7, 0] = np.nan
    names = (*STOCHASTIC, "spider", "opt-fiem", "em")
    found = [helpers.loop_of(model, y, helpers.make_method(name, batch_size=b)) for name in names]
    assert found == [LANES[kind, b]] * 5 + ["Algorithm1"] * 2


@every_kind
@pytest.mark.parametrize("name", helpers.NAMES)
def test_a_run_in_two_parts_is_the_same_to_the_last_bit(name, kind):
    model, y, theta0, _ = some(kind)
    method = helpers.make_method(name, step_size=0.05, batch_size=23, epoch_length=8)
    whole = swiftem.run(model, y, method, theta0=theta0, n_iter=30, seed=1)
    first = swiftem.run(model, y, method, theta0=theta0, n_iter=13, seed=1, record_every=5)
    rest = swiftem.run(model, y, method, theta0=first.theta, s0=first.s, state=first.state, n_iter=17)
    helpers.assert_same_result(rest, whole)


@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize(("kind", "b"), [("unit", 1), ("full", 23)])
def test_a_state_goes_from_one_kernel_to_the_other(kind, b, name):
    model, y, theta0, _ = some(kind)
    method = helpers.make_method(name, step_size=0.05, batch_size=b, epoch_length=13)
    whole = swiftem.run(model, y, method, theta0=theta0, n_iter=100, seed=0)
    first = swiftem.run(model, y, method, theta0=theta0, n_iter=40, seed=0, kernels="reference")
    rest = swiftem.run(model, y, method, theta0=first.theta, s0=first.s, state=first.state, n_iter=60)
    np.testing.assert_allclose(rest.s, whole.s, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize(("kind", "b"), [("unit", 1), ("unit", 3), ("unit", 128), *((k, 23) for k in KINDS)])
@pytest.mark.parametrize("method", [methods.IncrementalEM, methods.FastIncrementalEM])
def test_the_centre_is_the_mean_of_what_is_stored_also_in_float32(method, kind, b, kernels):
    model, y, theta0, _ = make("unit", UNIT["mini-batch"]) if b == 128 else some(kind)
    step = {"step_size": 0.05} if method is methods.FastIncrementalEM else {}
    single, double = (
        swiftem.run(
            model, y, method(batch_size=b, memory_dtype=dtype, **step), theta0=theta0, n_iter=100, seed=0,
            kernels=kernels,
        )
        for dtype in ("float32", "float64")
    )  # fmt: skip
    centre, memory = single.state.method
    assert memory.dtype == np.float32
    bound = model.bind(ArraySource(y))
    batch = bound.source.take(np.arange(len(y)))
    expected = bound.statistics(batch, memory.astype(np.float64), np.full(len(y), 1.0 / len(y)))
    np.testing.assert_allclose(centre, expected, atol=1e-12)
    np.testing.assert_allclose(single.s, double.s, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("layout", ["C", "F", "read-only", "strided"])
@pytest.mark.parametrize(("kind", "names"), [("unit", STOCHASTIC), ("full", ("em", "sem"))])
def test_kinds_of_arrays(dtype, layout, kind, names):
    """What is not in C order, or of integers, is converted: passes by chunks, batches one by one."""
    y = np.round(10 * RNG.normal(size=(40, 2))).astype(dtype)
    plain = y.astype(np.float64)
    if layout == "F":
        y = np.asfortranarray(y)
    elif layout == "strided":
        y = np.repeat(y, 2, axis=0)[::2]
    elif layout == "read-only":
        y.flags.writeable = False
    options = {} if kind == "unit" else {"prior": models.NormalInverseWishart(3.0, 1.0)}
    model = models.GaussianMixtureModel(2, covariance=kind, **options)
    for name in names:
        method = helpers.make_method(name, step_size=0.1, batch_size=1 if kind == "unit" else 5)
        ours, theirs = (swiftem.run(model, data, method, n_iter=40, seed=0) for data in (y, plain))
        np.testing.assert_allclose(ours.s, theirs.s, rtol=0.0 if kind == "unit" or name == "em" else 1e-9)


# Full passes

UNIT_PASSES = [
    (1, 1, 1, 1, 0),
    (4099, 3, 5, 1, 0),
    (20_011, 2, 3, 2, 1e6),
    (3001, 4, 7, 300, 0),
    (50, 1, 50, 1, 0),
]
PASSES = [(2, 1, 1, 1, 0), (4099, 3, 5, 1, 0), (2011, 2, 3, 2, 1e6), (997, 4, 7, 1e6, 0), (130, 31, 67, 3, 0)]
FORMS = [
    ("auto", "unit", UNIT_PASSES),
    *((form, kind, PASSES) for form in ("auto", "numpy") for kind in KINDS),
]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("kernels", "kind", "size"),
    [(form, kind, size) for form, kind, sizes in FORMS for size in sizes],
    ids=str,
)
def test_full_passes(kernels, kind, size, weights):
    n, d, M, spread, offset = size
    if kind == "unit":
        settings = unit(n, d, M, 1, scale=spread, offset=offset, weights=weights)
    else:
        settings = estimated(n, d, M, 1, spread=spread, offset=offset, weights=weights, reg_covar=1.0)
    model, y, theta, weight = make(kind, settings)
    source = ArraySource(y, weight)
    bound = model.bind(source)
    fast, plain = choose_compute(kernels, bound, source), Compute(bound, source)
    assert type(fast) is (PassesCompute if kernels == "auto" else NumpyCompute)
    value, expected = fast.objective(theta), plain.full(theta)
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


@pytest.mark.parametrize("kind", ALL)
def test_full_passes_do_not_depend_on_the_number_of_threads(kind):
    settings = unit(70_001, 4, 16, 1) if kind == "unit" else estimated(30_001, 4, 6, 1)
    model, y, theta, _ = make(kind, settings)
    source = ArraySource(y)
    bound = model.bind(source)
    results = []
    try:
        for threads in (1, 2, 3, 8):
            set_threads(threads)
            e_step = choose_compute("auto", bound, source)
            s, memory = e_step.remember(theta)
            found = [e_step.full(theta), s, memory, e_step.objective(theta)]
            results.append(found if kind == "unit" else [*found, *e_step.evaluate(theta, labels=True)[::2]])
    finally:
        set_threads(None)
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_posterior_of_fewer_rows_than_components(kernels):
    model, y, theta, _ = make("tied", estimated(200, 2, 5, 1))
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
    model, y, theta, weight = make(kind, estimated(5000, 3, 4, 1, weights=True))
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


@pytest.mark.parametrize("kind", ["unit", "diag"])
def test_no_subnormal_responsibilities(kind):
    """They would slow the matrix products down several times."""
    model = models.GaussianMixtureModel(3, covariance=kind)
    source = ArraySource(np.linspace(-60, 60, 500)[:, None])
    covariances = {} if kind == "unit" else {"covariances": np.ones((3, 1))}
    theta = model.theta(means=[[-30.0], [0.0], [30.0]], **covariances)
    _, memory = choose_compute("auto", model.bind(source), source).remember(theta)
    assert ((memory == 0) | (memory > 1e-21)).all()
    assert (memory == 0).any()
