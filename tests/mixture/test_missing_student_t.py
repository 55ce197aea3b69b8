"""Student-t with diagonal scales, on rows with missing cells: densities, em, methods, imputation."""

import helpers
import numpy as np
import pytest
from scipy import stats

import swiftem
from swiftem import models
from swiftem.core.compute import Placement
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.mixture.families import StudentT
from swiftem.mixture.families.observed import ObservedT, complete, widened

N, D, M = 500, 3, 2
FAMILY = "student-t(covariance='diag')"


def rows(seed=0):
    rng = np.random.default_rng(seed)
    z = rng.standard_t(4.0, size=(N, D)) * [1.0, 2.0, 0.5]
    z += 50.0 + np.where(rng.random((N, 1)) < 0.4, 0.0, [8.0, -12.0, 5.0])
    z[rng.random(z.shape) < 0.25] = np.nan
    z[3] = np.nan
    return z


def problem(weight=None, kernels="auto", family=FAMILY, **options):
    model = models.MixtureModel(M, family, missing="ignore", **options)
    return Problem(model, ArraySource(rows(), weight, allow_missing=True), placement=Placement.named(kernels))


def fitted(made, passes):
    theta = made.bound.initial_theta(np.random.default_rng(0))
    for _ in range(passes):
        theta = made.bound.m_step(made.compute.full(theta))
    return theta


def test_densities_are_those_of_scipy():
    made = problem()
    assert isinstance(made.bound.family, ObservedT)
    theta, y = fitted(made, 5), rows()
    found = made.compute.evaluate(theta, responsibilities=True)
    for i in range(60):
        o = ~np.isnan(y[i])
        joint = theta.weights.copy()
        for m in range(M):
            if o.any():
                joint[m] *= stats.multivariate_t(
                    theta.params["means"][m][o], np.diag(theta.params["scales"][m][o]),
                    theta.params["degrees_of_freedom"][m],
                ).pdf(y[i][o])  # fmt: skip
        assert found.log_likelihood[i] == pytest.approx(np.log(joint.sum()), abs=1e-10)
        np.testing.assert_allclose(found.responsibilities[i], joint / joint.sum(), rtol=1e-9)


@pytest.mark.parametrize("family", [FAMILY, "student-t(covariance='diag',degrees_of_freedom=4.0)"])
@pytest.mark.parametrize("kernels", ["auto", "reference", "numpy"])
def test_em_is_monotone_and_its_limit_is_stationary(family, kernels):
    weight = np.random.default_rng(2).uniform(0.5, 2.0, N)
    made = problem(weight, kernels, family)
    theta, values = made.bound.initial_theta(np.random.default_rng(0)), []
    for _ in range(80):
        values.append(made.compute.objective(theta))
        theta = made.bound.m_step(made.compute.full(theta))
    assert (np.diff(values) < 1e-10).all()
    assert values[0] - values[-1] > 0.1
    for _ in range(400):
        theta = made.bound.m_step(made.compute.full(theta))
    best = made.compute.objective(theta)
    for key, value in theta.params.items():
        if key == "degrees_of_freedom" and family != FAMILY:
            continue
        for factor in (1.0 - 1e-3, 1.0 + 1e-3):
            moved = theta._replace(params={**theta.params, key: factor * value})
            assert made.compute.objective(moved) > best - 1e-9


def test_complete_rows_have_the_same_optimum():
    y = np.nan_to_num(rows(), nan=51.0)
    plain = Problem(models.MixtureModel(M, FAMILY), ArraySource(y))
    other = Problem(plain.model.learnt(plain.source).with_holes(), ArraySource(y, allow_missing=True))
    theta = one = plain.bound.initial_theta(np.random.default_rng(0))
    for _ in range(20):
        theta = plain.bound.m_step(plain.compute.full(theta))
        one = other.bound.m_step(other.compute.full(one))
    assert other.compute.objective(one) == pytest.approx(plain.compute.objective(theta), abs=1e-10)
    for key, value in theta.params.items():
        np.testing.assert_allclose(one.params[key], value, rtol=1e-7)
    s, wide = plain.bound.unpack(plain.compute.full(theta)), other.bound.unpack(other.compute.full(theta))
    np.testing.assert_allclose(
        widened(other.bound.family, s.weights, s.sums), wide.sums, rtol=1e-9, atol=1e-12
    )
    assert complete(other.bound.family) == plain.bound.family


@pytest.mark.parametrize("name", helpers.STOCHASTIC)
def test_methods_agree_with_the_reference(name):
    model = models.MixtureModel(M, FAMILY, missing="ignore", smoothing=1.0)
    method = helpers.make_method(name, batch_size=50, step_size=0.2)
    theta0 = model.bind(ArraySource(rows(), allow_missing=True)).initial_theta(np.random.default_rng(0))
    one, other = (
        swiftem.run(model, rows(), method, theta0=theta0, n_iter=25, seed=0, kernels=kernels)
        for kernels in ("auto", "reference")
    )
    np.testing.assert_allclose(one.s, other.s, rtol=1e-9, atol=1e-10)


def test_the_estimator(tmp_path):
    y = rows()
    found = swiftem.Mixture(M, family=FAMILY, missing="ignore", random_state=0, tol=1e-6, max_iter=300).fit(y)
    assert found.score(y) == pytest.approx(found.log_likelihood_, abs=1e-9)
    found.save(tmp_path / "a.model")
    loaded = swiftem.Mixture.load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.predict_proba(y), found.predict_proba(y))
    means, filled = found.params_["means"], found.impute(y)
    np.testing.assert_allclose(filled[3], found.weights_ @ means)
    assert not np.isnan(filled).any()
    blocks = {FAMILY: [0, 1], "gaussian": [2]}
    mixed = swiftem.Mixture(M, family=blocks, missing="ignore", random_state=0).fit(y)
    assert not np.isnan(mixed.impute(y, random_state=0)).any()
    online = swiftem.Mixture(M, family=FAMILY, missing="ignore", random_state=0)
    online.partial_fit(np.nan_to_num(y, nan=51.0)[:200])
    assert online.partial_fit(y[200:]).score(y) > found.score(y) - 0.5


def test_draws_share_the_weight_of_the_row():
    """A row whose observed cell is far has a small u: its missing cells vary more than the marginal does."""
    family = ObservedT(StudentT(covariance="diag"))
    params = {
        "means": np.zeros((1, 2)), "scales": np.ones((1, 2)), "degrees_of_freedom": np.array([3.0]),
    }  # fmt: skip
    given = np.tile([12.0, np.nan], (60_000, 1))
    found = family.drawn(given, params, np.zeros(len(given), dtype=int), np.random.default_rng(0))
    assert (found[:, 0] == 12.0).all()
    # y_2 | y_1 is a t with ν + 1 degrees of freedom and scale (ν + δ) / (ν + 1).
    expected = np.sqrt((3.0 + 144.0) / 4.0) * stats.t(4.0).ppf([0.1, 0.25, 0.75, 0.9])
    np.testing.assert_allclose(np.quantile(found[:, 1], [0.1, 0.25, 0.75, 0.9]), expected, rtol=0.03)


def test_what_must_be_complete():
    with pytest.raises(ValueError, match=r"got a missing .* give student-t\(covariance='diag'\)"):
        swiftem.Mixture(2, family="student-t", missing="ignore").fit(rows())
    y = np.full((5, 2), np.sqrt(0.5))
    y[2, 1] = np.nan
    with pytest.raises(ValueError, match="in row 2: a direction with a missing coordinate has no unit"):
        swiftem.Mixture(2, family="von-mises-fisher", missing="ignore").fit(y)
