"""Columns of codes, gathered and scattered; channels of a second latent variable."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers import choose_compute
from scipy import stats

import swiftem
from swiftem import methods, models
from swiftem.data import ArraySource, NpySource
from swiftem.data.units.source import UnitSource
from swiftem.kernels.threads import set_threads
from swiftem.mixture.families import Categorical, StudentT

RNG = np.random.default_rng(7)
LEVELS = (2, 1, 7, 3, 300)
LABELS = RNG.choice(3, 2000)
CODES = np.column_stack([RNG.integers(0, level, 2000) for level in LEVELS])
CODES[:, 2] = np.where(RNG.random(2000) < 0.7, LABELS, CODES[:, 2])
CODES[0] = [level - 1 for level in LEVELS]
NUMBERS = RNG.normal(LABELS * 4.0, 1.0)[:, None] + RNG.standard_t(3.0, size=(2000, 2))
MIXED = np.column_stack([CODES, NUMBERS, RNG.poisson(LABELS * 3.0 + 1.0)]).astype(float)
MODELS = {
    "codes": (models.MixtureModel(3, "categorical"), CODES),
    "codes, float32": (models.MixtureModel(3, "categorical"), CODES.astype(np.float32)),
    "with numbers": (
        models.MixtureModel(3, {"poisson": [7], "categorical": [4, 0, 1, 2, 3], "gaussian": [5, 6]}),
        MIXED,
    ),
    "codes and answers": (models.MixtureModel(3, {"categorical": [0, 2, 3, 4], "bernoulli": [1]}), CODES),
    "channels": (models.MixtureModel(3, "student-t"), NUMBERS),
    "channels, diag": (models.MixtureModel(3, StudentT(covariance="diag", degrees_of_freedom=4.0)), NUMBERS),
    "all": (
        models.MixtureModel(3, {"student-t": [6, 5], "poisson": [7], "categorical": [0, 1, 2, 3, 4]}),
        MIXED,
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)


@every_model
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fast_passes_are_the_plain_ones(name, dtype):
    """Sums, memory, likelihood and labels, with weights and without."""
    model, y = MODELS[name]
    for weight in (None, RNG.uniform(0.5, 2.0, size=len(y))):
        source = ArraySource(y, weight)
        bound = model.bind(source)
        theta = bound.initial_theta(np.random.default_rng(1))
        fast, plain = (choose_compute(kernels, bound, source) for kernels in ("auto", "reference"))
        for e_step in (fast, plain):
            e_step.begin(dtype, np.empty)
        assert np.allclose(fast.full(theta), plain.full(theta), rtol=1e-12, atol=1e-14)
        assert fast.objective(theta) == pytest.approx(plain.objective(theta), rel=1e-12)
        (s, memory), (expected, rows) = fast.remember(theta), plain.remember(theta)
        assert memory.shape == (len(y), bound.row_length)
        assert memory.dtype == dtype
        assert np.allclose(memory, rows, rtol=1e-6 if dtype == np.float32 else 1e-11, atol=1e-11)
        assert np.allclose(s, expected, rtol=1e-7 if dtype == np.float32 else 1e-11, atol=1e-11)
        found, wanted = (e.evaluate(theta, responsibilities=True, labels=True) for e in (fast, plain))
        assert np.allclose(found.log_likelihood, wanted.log_likelihood, rtol=1e-12)
        assert found.responsibilities.shape == (len(y), 3)
        assert np.allclose(found.responsibilities, wanted.responsibilities, atol=1e-12)
        assert np.array_equal(found.labels, wanted.responsibilities.argmax(axis=1))


@every_model
@pytest.mark.parametrize("method", methods.METHODS.values(), ids=methods.METHODS)
def test_every_method_is_the_references(name, method):
    model, y = MODELS[name]
    weight = np.random.default_rng(2).uniform(0.5, 2.0, size=len(y))
    made = method() if method is methods.EM else method(batch_size=30)
    options = {"n_iter": 20, "seed": 1, "sample_weight": weight}
    ours = swiftem.run(model, y, made, **options)
    theirs = swiftem.run(model, y, made, kernels="reference", **options)
    assert np.allclose(ours.s, theirs.s, rtol=1e-9, atol=1e-12)


@every_model
def test_threads_and_files_change_nothing(name, tmp_path):
    model, y = MODELS[name]
    np.save(tmp_path / "rows.npy", np.tile(y, (20, 1)))
    many = np.tile(y, (20, 1))
    found = []
    for threads in (1, 3):
        set_threads(threads)
        try:
            found.append(swiftem.run(model, many, methods.EM(), n_iter=3, seed=0).s)
        finally:
            set_threads(None)
    assert np.array_equal(*found)
    bound = model.bind(ArraySource(many))
    theta = bound.initial_theta(np.random.default_rng(0))
    stored = swiftem.run(model, NpySource(tmp_path / "rows.npy"), methods.EM(), n_iter=3, theta0=theta)
    array = swiftem.run(model, many, methods.EM(), n_iter=3, theta0=theta)
    assert np.allclose(stored.s, array.s, rtol=1e-11, atol=1e-13)


@every_model
def test_units_of_rows_are_all_rows(name):
    """Levels, centres and scales are those of all units."""
    model, y = MODELS[name]
    units = UnitSource([y[:300].astype(float), y[300:1400].astype(float), y[1400:].astype(float)])
    whole = model.bind(ArraySource(y))
    theta = whole.initial_theta(np.random.default_rng(0))
    array = swiftem.run(model, y, methods.EM(), n_iter=3, theta0=theta)
    parts = swiftem.run(model, units, methods.EM(), n_iter=3, theta0=theta)
    assert np.allclose(parts.s, array.s, rtol=1e-8, atol=1e-10)


def test_what_is_remembered_is_what_counts():
    """The statistics of a pass are those of the memory, in its precision."""
    for name in ("codes", "channels"):
        model, y = MODELS[name]
        source = ArraySource(y)
        bound = model.bind(source)
        e_step = choose_compute("auto", bound, source)
        e_step.begin(np.float32, np.empty)
        s, memory = e_step.remember(bound.initial_theta(np.random.default_rng(1)))
        batch = source.take(np.arange(len(y)))
        expected = bound.statistics(batch, memory.astype(float), batch.weight / len(y))
        assert np.allclose(s, expected, rtol=1e-11, atol=1e-15)


@dataclass(frozen=True)
class Other(Categorical):
    """Codes under another name."""

    name = "other"


def test_two_families_of_codes():
    y = CODES[:, [0, 2, 3]]
    together = models.MixtureModel(2, {"categorical": [0, 1, 2]})
    apart = models.MixtureModel(2, {"categorical": [0, 1], Other(): [2]})
    options = {"n_iter": 10, "seed": 0}
    one = swiftem.run(together, y, methods.EM(), **options).theta.params["categorical"]["probabilities"]
    for kernels in ("auto", "reference"):
        two = swiftem.run(apart, y, methods.EM(), kernels=kernels, **options).theta.params
        assert np.allclose(two["categorical"]["probabilities"], one[:, :2], atol=1e-12)
        assert np.allclose(two["other"]["probabilities"][:, 0], one[:, 2, :3], atol=1e-12)


def test_the_prior_and_the_start_have_ten_degrees_of_freedom():
    bound = models.MixtureModel(1, "student-t").bind(ArraySource(NUMBERS))
    assert bound.mean[0] == 1.0
    batch = ArraySource(NUMBERS).take(np.arange(len(NUMBERS)))
    rows = bound.start_rows(np.ones((len(NUMBERS), 1)), batch)
    s = bound.statistics(batch, rows, np.full(len(NUMBERS), 5e-4))
    params = bound.m_step(s).params
    assert params["degrees_of_freedom"][0] == pytest.approx(10.0, rel=1e-3)
    assert np.allclose(params["scales"][0], np.cov(NUMBERS.T, bias=True), rtol=1e-9)


def test_em_of_codes_by_hand():
    y = CODES[:, [0, 2, 3]]
    model = models.MixtureModel(2, "categorical", smoothing=0.0)
    levels = [2, 7, 3]
    p = [RNG.dirichlet(np.ones(level), size=2) for level in levels]
    padded = np.zeros((2, 3, 7))
    for j, part in enumerate(p):
        padded[:, j, : levels[j]] = part
    theta, weights = model.theta(weights=[0.3, 0.7], probabilities=padded), np.array([0.3, 0.7])
    for _ in range(5):
        joint = weights * np.prod([p[j][:, y[:, j]].T for j in range(3)], axis=0)
        r = joint / joint.sum(axis=1, keepdims=True)
        weights = r.mean(axis=0)
        p = [
            np.array([[r[y[:, j] == k, m].sum() for k in range(levels[j])] for m in range(2)])
            / r.sum(axis=0)[:, None]
            for j in range(3)
        ]
    found = swiftem.run(model, y, methods.EM(), theta0=theta, n_iter=5).theta
    assert np.allclose(found.weights, weights, rtol=1e-12)
    for j in range(3):
        assert np.allclose(found.params["probabilities"][:, j, : levels[j]], p[j], rtol=1e-11, atol=1e-15)
        assert not found.params["probabilities"][:, j, levels[j] :].any()


def test_a_level_that_a_component_never_saw_is_held_by_the_prior():
    y = np.repeat([[0, 0], [1, 1], [1, 2]], [50, 40, 10], axis=0)
    model = models.MixtureModel(2, "categorical", smoothing=1.0)
    start = np.zeros((2, 2, 3))
    start[0, :, 0], start[1, :, 1] = 1.0, 1.0
    start = 0.94 * start + 0.02
    start[:, 0, 2] = 0.0
    start /= start.sum(axis=2, keepdims=True)
    theta = swiftem.run(model, y, methods.EM(), theta0=model.theta(probabilities=start), n_iter=50).theta
    found = theta.params["probabilities"]
    assert (found[:, 1] > 0).all()
    assert found[0, 1, 2] == pytest.approx(0.1 / 51, rel=0.02)
    none = models.MixtureModel(2, "categorical", smoothing=0.0)
    gone = swiftem.run(none, y, methods.EM(), theta0=none.theta(probabilities=start), n_iter=100).theta
    assert np.isfinite(swiftem.objective(none, y, gone))


GOT = r"codes from 0 to 6 in column 2 \(levels=7\), got "


@pytest.mark.parametrize(
    ("family", "value", "sentence"),
    [
        ("categorical", -1, GOT + r"-1 in row 5 \(family 'categorical'\)"),
        ("categorical", 1.5, GOT + "1.5 in row 5"),
        ("categorical", 2e6, r"codes below 1048576, got 2e\+06"),
        (Categorical(LEVELS), 7, GOT + "7 in row 5"),
        (Categorical((2, 3)), 0, "must have 2 columns, as levels has, got 5"),
        ({"categorical": [4, 2], "poisson": [0, 1, 3]}, -1, GOT + "-1 in row 5"),
    ],
)
def test_codes_that_cannot_be(family, value, sentence):
    y = CODES.astype(float)
    y[5, 2] = value
    with pytest.raises(ValueError, match=sentence):
        models.MixtureModel(2, family).bind(ArraySource(y))


def test_compiled_code_sees_no_code_beyond_the_levels():
    """Rows of a model that is bound without a pass are checked when they are read."""
    model = models.MixtureModel(2, Categorical(LEVELS))
    theta = model.bind(ArraySource(CODES)).initial_theta(np.random.default_rng(0))
    y = CODES.copy()
    y[1234, 2] = 7
    bound = model.bind(ArraySource(y), centre=np.zeros(model.width(5)))
    e_step = choose_compute("auto", bound, bound.source)
    for asked in (e_step.full, e_step.remember, e_step.objective, e_step.evaluate):
        with pytest.raises(ValueError, match=GOT + "7 in row 1234"):
            asked(theta)
    with pytest.raises(ValueError, match=GOT + "7"):
        e_step.rows(bound.source.take(np.arange(1230, 1240)), theta)


def test_levels_that_cannot_be():
    with pytest.raises(ValueError, match="levels must be at least 1, got 0"):
        Categorical((2, 0))
    with pytest.raises(ValueError, match=r"levels must be given if there are no data .* Categorical\("):
        swiftem.Mixture.from_parameters([1.0], {"probabilities": [[[0.5, 0.5]]]}, family="categorical")
    given = swiftem.Mixture.from_parameters(
        [0.5, 0.5], {"probabilities": [[[0.9, 0.1]], [[0.2, 0.8]]]}, family=Categorical((2,))
    )
    assert given.predict([[0], [1]]).tolist() == [0, 1]
    with pytest.raises(ValueError, match="sum to 1 over the levels"):
        models.MixtureModel(1, "categorical").theta(probabilities=[[[0.5, 0.6]]])
    with pytest.raises(ValueError, match="zero beyond the levels"):
        models.MixtureModel(1, Categorical((1, 2))).theta(probabilities=[[[0.5, 0.5], [0.5, 0.5]]])


def test_degrees_of_freedom_are_estimated():
    y = np.random.default_rng(0).standard_t(3.0, size=20_000)[:, None] + 1e6
    model = models.MixtureModel(1, "student-t", smoothing=0.0)
    nu = swiftem.run(model, y, methods.EM(), n_iter=300, seed=0).theta.params["degrees_of_freedom"][0]
    expected = stats.t.fit(y[:, 0] - 1e6)[0]
    assert nu == pytest.approx(expected, rel=1e-3)
    normal = np.random.default_rng(0).uniform(size=(500, 1))
    found = swiftem.run(model, normal, methods.EM(), n_iter=300, seed=0).theta.params
    assert found["degrees_of_freedom"][0] > 50.0


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_scales_have_a_floor(kind):
    y = np.column_stack([np.repeat([0.0, 1.0], 50), np.repeat([0.0, 1.0], 50)])
    model = models.MixtureModel(1, StudentT(covariance=kind), smoothing=0.0)
    scales = swiftem.run(model, y, methods.EM(), n_iter=20, seed=0).theta.params["scales"]
    smallest = np.linalg.eigvalsh(scales[0]).min() if kind == "full" else scales[0].min()
    assert smallest > 0.24e-6
    assert model.theta(means=[[0.0, 0.0]], scales=scales, degrees_of_freedom=[3.0])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"scales": [[[1.0, 2.0], [2.0, 1.0]]]}, "symmetric and positive definite"),
        ({"scales": [[[1.0, 0.5], [0.0, 1.0]]]}, "symmetric and positive definite"),
        ({"degrees_of_freedom": [0.0]}, "degrees_of_freedom must be from 0.1 to 1000"),
    ],
)
def test_parameters_that_cannot_be(changed, sentence):
    good = {"means": [[0.0, 0.0]], "scales": [np.eye(2)], "degrees_of_freedom": [3.0]}
    with pytest.raises(ValueError, match=sentence):
        models.MixtureModel(1, "student-t").theta(**good | changed)


def test_students_components_do_not_follow_outliers():
    y = np.concatenate([RNG.normal(size=(500, 2)), [[1e3, -1e3]] * 5])
    found = swiftem.run(models.MixtureModel(1, "student-t"), y, methods.EM(), n_iter=100, seed=0).theta.params
    assert np.abs(found["means"]).max() < 0.2
    assert np.abs(y.mean(axis=0)).max() > 9.0
