"""Positive amounts, counts of successes and directions: units, extreme parameters, bad input, whole fits."""

import numpy as np
import pytest
from scipy import stats

import swiftem
from swiftem import models
from swiftem.data import ArraySource
from swiftem.families import read_family
from swiftem.mixture.families.binomial import Binomial
from swiftem.mixture.families.gamma import Gamma, solve_shape
from swiftem.mixture.families.von_mises_fisher import (
    VonMisesFisher,
    bessel_ratio,
    log_bessel,
    solve_concentration,
)


def amounts(n=2000, seed=0):
    """Return positive rows of two components."""
    rng = np.random.default_rng(seed)
    kind = rng.random((n, 1)) < 0.4
    return rng.gamma(4.0, np.where(kind, [[1.0, 30.0]], [[20.0, 2.0]]))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize("name", ["exponential", "gamma", "inverse-gaussian", "log-normal"])
def test_units_change_nothing(name, unit):
    X = amounts()
    fits = [swiftem.Mixture(2, family=name, random_state=0).fit(rows) for rows in (X, X * [[unit, 1.0]])]
    there, here = fits[0].predict_proba(X), fits[1].predict_proba(X * [[unit, 1.0]])
    assert np.allclose(there, here, atol=1e-6)
    assert fits[1].score(X * [[unit, 1.0]]) == pytest.approx(fits[0].score(X) - np.log(unit), rel=1e-9)


def test_shapes_of_gamma_distributions():
    a = np.array([1e-3, 0.1, 1.0, 49.0, 51.0, 1e3, 1e6])
    from scipy.special import psi

    target = np.log(a) - psi(a)
    assert np.allclose(solve_shape(target)[:5], a[:5], rtol=1e-12)
    large = a[4:]
    series = 0.5 / large + 1 / (12 * large**2) - 1 / (120 * large**4)
    assert np.allclose(solve_shape(series), large, rtol=1e-11)


def inverse_gaussians(seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.random((3000, 1)) < 0.3
    return rng.wald(
        np.where(kind, [[1.0, 300.0]], [[2.0, 90.0]]), np.where(kind, [[4.0, 900.0]], [[50.0, 30.0]])
    )


@pytest.mark.parametrize("offset", [1e3, 1e8])
def test_an_offset_costs_inverse_gaussians_no_digits(offset):
    """Far from zero they are normal: means and variances are those of the rows, to all their digits."""
    y = offset + np.random.default_rng(0).normal(size=(2000, 1))
    mixture = swiftem.Mixture(1, family="inverse-gaussian", smoothing=0.0).fit(y)
    (mean,), (shape,) = mixture.params_["means"], mixture.params_["shapes"]
    assert mean - offset == pytest.approx((y - offset).mean(), rel=1e-6)
    exact = ((y - mean) ** 2 / y).mean() * mean  # mean³ / shape, in terms that do not cancel
    assert mean**3 / shape == pytest.approx(exact, rel=1e-6)
    density = stats.norm.logpdf(y, mean, np.sqrt(exact)).mean()
    assert mixture.score(y) == pytest.approx(density, abs=3.0 / offset)


@pytest.mark.parametrize("small", [1e-50, 1e-150])
def test_tiny_amounts_of_inverse_gaussians(small):
    y = inverse_gaussians()[:500, :1].copy()
    y[0] = small
    one = swiftem.Mixture(1, family="inverse-gaussian", smoothing=0.0).fit(y)
    shape = 1.0 / (np.mean(1.0 / y) - 1.0 / y.mean())
    np.testing.assert_allclose(one.params_["shapes"][0, 0], shape, rtol=1e-12)
    assert one.score(y) == pytest.approx(
        float(stats.invgauss.logpdf(y / shape, y.mean() / shape).mean() - np.log(shape)), rel=1e-6
    )
    two = swiftem.Mixture(2, family="inverse-gaussian", random_state=0).fit(y)
    assert np.isfinite(two.score(y))
    assert np.isfinite(two.predict_proba(y)).all()


@pytest.mark.parametrize("name", ["gamma", "inverse-gaussian"])
def test_a_component_on_one_value_has_the_shape_of_the_floor(name):
    others = (
        inverse_gaussians()[:300, 1] if name != "gamma" else np.random.default_rng(0).gamma(3.0, 5.0, 300)
    )
    y = np.concatenate([np.full(300, 2.0), others])[:, None]
    family = models.MixtureModel(1, name).learnt(ArraySource(y)).kind
    found = family.m_step(np.ones(1), family.features(y[:1]))
    most = (1.0 if name == "gamma" else family.scale[0]) / (1e-6 * family.variation[0])
    assert found["shapes"][0, 0] == pytest.approx(most, rel=1e-3)
    assert family.expected(found)[0, 0] == pytest.approx(2.0, rel=1e-12)
    smoothing = 1e-3 if name == "gamma" else 0.0
    mixture = swiftem.Mixture(2, family=name, smoothing=smoothing, random_state=0, init_params="kmeans")
    assert np.isfinite(mixture.fit(y).score(y))
    assert mixture.params_["shapes"].max() < 1.01 * most


def test_statistics_that_no_amounts_have_are_outside_the_domain():
    family = models.MixtureModel(1, "inverse-gaussian").learnt(ArraySource(inverse_gaussians()[:, :1])).kind
    assert family.m_step(np.ones(1), np.array([[0.5, 1.0]])) is not None
    assert family.m_step(np.ones(1), np.array([[0.5, 0.1]])) is None  # a negative variance
    assert family.m_step(np.ones(1), np.array([[-1.0, 4.0]])) is None  # a mean of zero
    assert family.m_step(np.ones(1), np.array([[np.nan, 1.0]])) is None


@pytest.mark.parametrize("d", [2, 3, 128, 1000])
@pytest.mark.parametrize("kappa", [1e-6, 0.01, 1.0, 50.0, 1e3, 1e5])
def test_concentrations_solve_their_equation(d, kappa):
    r = bessel_ratio(0.5 * d - 1.0, np.array([kappa]))
    assert solve_concentration(r, d, 1e9)[0] == pytest.approx(kappa, rel=1e-9)


@pytest.mark.parametrize(
    ("d", "kappa"), [(128, 0.5), (128, 500.0), (128, 1e5), (3, 1e4), (1000, 0.1), (2, 3.0)]
)
def test_densities_of_directions_of_many_columns(d, kappa):
    params = {"directions": np.eye(1, d), "concentrations": np.array([kappa])}
    y = VonMisesFisher().draw(params, np.zeros(50, int), np.random.default_rng(0))
    phi, constant = VonMisesFisher().natural(params)
    if d < 1000:
        expected = stats.vonmises_fisher.logpdf(y, np.eye(1, d)[0], kappa)
        assert np.allclose(y @ phi[0] + constant[0], expected, rtol=1e-10)
    cosine = bessel_ratio(0.5 * d - 1.0, np.array([kappa]))[0]
    assert y[:, 0].mean() == pytest.approx(cosine, abs=4 / np.sqrt(50 * d))


def test_uniform_directions():
    """Without concentration the density is one over the area of the sphere."""
    area = 4.0 * np.pi
    family = VonMisesFisher()
    params = family.m_step(np.ones(1), np.zeros((1, 3)))
    assert params["concentrations"][0] == 0.0
    phi, constant = family.natural(params)
    assert not phi.any()
    assert constant[0] == pytest.approx(-np.log(area), rel=1e-14)
    assert log_bessel(63.0, np.zeros(1))[0] == pytest.approx(-63 * np.log(2) - 201.00931639928152, rel=1e-12)


def test_means_of_directions_longer_than_one_are_outside_the_domain():
    family = VonMisesFisher()
    assert family.m_step(np.ones(1), np.array([[0.8, 0.7, 0.0]])) is None
    capped = family.m_step(np.ones(1), np.array([[0.0, 1.0, 0.0]]))
    assert capped["concentrations"][0] == 1e6


def theta(family, **params):
    return models.MixtureModel(1, family).theta(**params)


def fit(family, X):
    return swiftem.Mixture(1, family=family).fit(X)


def unknown_trials():
    return swiftem.Mixture.from_parameters([1.0], {"probabilities": [[0.5]]}, family="binomial").score([[1]])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Binomial(trials=0), "trials must be at least 1, got 0"),
        (lambda: Binomial(trials=(3, 2.5)), "trials must be an integer, got 2.5"),
        (lambda: read_family("binomial(trials)"), r"family must be of the form name\(option=value\)"),
        (lambda: read_family("gamma(flour=1)"), "options of 'gamma', which are: floor.*; got 'flour'"),
        (lambda: Gamma(floor=-1.0), "floor must be finite and at least 0"),
        (lambda: theta("gamma", shapes=[[0.0]], rates=[[1.0]]), "shapes must be positive"),
        (lambda: theta("exponential", rates=[[0.0]]), "rates must be positive"),
        (
            lambda: theta("von-mises-fisher", directions=[[1.0, 1.0]], concentrations=[1.0]),
            "directions must be of unit length",
        ),
        (
            lambda: fit("exponential", [[1.0, 0.0], [2.0, 0.0]]),
            r"positive values in every column, got only zeros in one \(family 'exponential'\): leave it out",
        ),
        (
            lambda: fit(Binomial(trials=(3, 4, 5)), [[1, 2], [2, 3]]),
            r"trials must be one number or one per column \(2\), got 3",
        ),
        (unknown_trials, "trials must be given"),
    ],
)
def test_what_cannot_be(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        call()


@pytest.mark.parametrize(
    ("written", "name"),
    [("lognormal", "log-normal"), ("vonmises-fisher", "von-mises-fisher"), ("student_t", "student-t")],
)
def test_hyphens_may_be_omitted(written, name):
    assert read_family(written).name == name
