"""Families of components: densities, M-steps, draws, and the plain formulas."""

import numpy as np
import pytest
from helpers import choose_compute
from scipy import optimize, stats

import swiftem
from swiftem import methods, models
from swiftem.data import ArraySource
from swiftem.mixture.families import (
    FAMILIES,
    Bernoulli,
    Binomial,
    Blocks,
    Family,
    Poisson,
    read_family,
)
from swiftem.mixture.families.observed import Observed

RNG = np.random.default_rng(3)
PARAMS = {
    "bernoulli": {"probabilities": RNG.uniform(0.1, 0.9, size=(2, 3))},
    "binomial": {"probabilities": np.array([[0.2, 0.5, 0.7], [0.8, 0.9, 0.3]])},
    "categorical": {"probabilities": RNG.dirichlet(np.ones(4), size=(2, 3))},
    "exponential": {"rates": np.array([[0.2, 5.0, 1.0], [4.0, 0.5, 2.0]])},
    "gamma": {
        "shapes": np.array([[0.7, 2.0, 30.0], [5.0, 1.0, 3.0]]),
        "rates": np.array([[2.0, 0.01, 3.0], [0.5, 5.0, 1.0]]),
    },
    "gaussian": {
        "means": RNG.uniform(2.0, 9.0, size=(2, 3)),
        "variances": RNG.uniform(0.5, 4.0, size=(2, 3)),
    },
    "inverse-gaussian": {
        "means": np.array([[0.5, 300.0, 2.0], [3.0, 900.0, 1.0]]),
        "shapes": np.array([[2.0, 900.0, 0.8], [50.0, 3000.0, 9.0]]),
    },
    "log-normal": {
        "means": np.array([[1.0, 6.0, -2.0], [2.0, 9.0, 1.0]]),
        "variances": np.array([[0.3, 1.0, 0.1], [2.0, 0.5, 1.0]]),
    },
    "poisson": {"rates": RNG.uniform(0.5, 9.0, size=(2, 3))},
    "student-t": {
        "means": RNG.uniform(2.0, 9.0, size=(2, 3)),
        "scales": np.array([np.diag([1.0, 2.0, 3.0]), [[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.7]]]),
        "degrees_of_freedom": np.array([3.0, 8.0]),
    },
    "von-mises-fisher": {
        "directions": np.array([[2.0, 1.0, 2.0], [-6.0, 3.0, 2.0]]) / [[3.0], [7.0]],
        "concentrations": np.array([4.0, 25.0]),
    },
}
OWN = {"binomial": Binomial(trials=(4, 9, 20))}
"""Families that need more than their name here."""
LAWS = {
    "bernoulli": lambda p: stats.bernoulli(p["probabilities"]),
    "binomial": lambda p: stats.binom((4, 9, 20), p["probabilities"]),
    "exponential": lambda p: stats.expon(scale=1 / p["rates"]),
    "gamma": lambda p: stats.gamma(p["shapes"], scale=1 / p["rates"]),
    "gaussian": lambda p: stats.norm(p["means"], np.sqrt(p["variances"])),
    "inverse-gaussian": lambda p: stats.invgauss(p["means"] / p["shapes"], scale=p["shapes"]),
    "log-normal": lambda p: stats.lognorm(np.sqrt(p["variances"]), scale=np.exp(p["means"])),
    "poisson": lambda p: stats.poisson(p["rates"]),
    "student-t": lambda p: stats.multivariate_t(p["means"], p["scales"], p["degrees_of_freedom"]),
    "von-mises-fisher": lambda p: stats.vonmises_fisher(p["directions"], p["concentrations"]),
}
"""SciPy's distributions, by the parameters of a component."""


def log_law(name, y, params, m):
    """Return the log-density (n,) of rows in a component, by SciPy."""
    own = {key: part[m] for key, part in params.items()}
    if name == "categorical":
        return np.log(np.take_along_axis(own["probabilities"], y.astype(int).T, axis=1)).sum(axis=0)
    law = LAWS[name](own)
    logs = law.logpmf(y) if hasattr(law, "logpmf") else law.logpdf(y)
    return logs if logs.ndim == 1 else logs.sum(axis=1)


every_family = pytest.mark.parametrize("name", sorted(FAMILIES))


def given(name):
    """Return a family, or its name."""
    return OWN.get(name, name)


def rows_of(name, count=500, seed=0):
    rng = np.random.default_rng(seed)
    return read_family(given(name)).draw(PARAMS[name], rng.choice(2, count), rng)


def log_density(family, y, params):
    base = family.log_base(y)
    return family.e_step(y, params)[0] + (0.0 if base is None else base[:, None])


def learnt(name, y):
    """Return a family that knows its data."""
    return models.MixtureModel(1, given(name)).learnt(ArraySource(y)).kind


@every_family
def test_the_density_is_scipys(name):
    y = rows_of(name)
    family = learnt(name, y)
    for m in range(2):
        expected = log_law(name, y, PARAMS[name], m)
        assert np.allclose(log_density(family, y, PARAMS[name])[:, m], expected, rtol=1e-10, atol=1e-12)


def fitted(name, y):
    """Return parameters of one component, of the largest likelihood."""
    n_iter = 200 if FAMILIES[name].channels else 1
    model = models.MixtureModel(1, given(name), smoothing=0.0)
    return swiftem.run(model, y, methods.EM(), n_iter=n_iter, seed=0).theta.params


def near(name, params):
    """Return parameters nearby, of all components by the same factors."""
    moved = {}
    for key, part in params.items():
        shape = part.shape[:1] + ((1,) * (part.ndim - 1) if key == "scales" else part.shape[1:])
        moved[key] = part * RNG.uniform(0.9, 1.1, size=shape)
    if name in ("bernoulli", "binomial"):
        moved["probabilities"] = np.clip(moved["probabilities"], 0.01, 0.99)
    if name == "categorical":
        moved["probabilities"] /= moved["probabilities"].sum(axis=2, keepdims=True)
    if name == "von-mises-fisher":
        moved["directions"] /= np.linalg.norm(moved["directions"], axis=1, keepdims=True)
    return moved


@every_family
def test_the_m_step_is_the_largest_likelihood(name):
    y = rows_of(name)
    family, found = learnt(name, y), fitted(name, y)
    best = log_density(family, y, found).mean()
    for _ in range(20):
        assert log_density(family, y, near(name, found)).mean() <= best + 1e-12


@every_family
def test_draws_have_the_components_parameters(name):
    labels = np.repeat([0, 1], 20_000)
    y = read_family(given(name)).draw(PARAMS[name], labels, np.random.default_rng(1))
    for m in range(2):
        for key, part in fitted(name, y[labels == m]).items():
            loose = 0.15 if key == "degrees_of_freedom" else 0.05
            assert np.allclose(part[0], PARAMS[name][key][m], rtol=loose, atol=0.05)


@every_family
@pytest.mark.parametrize("method", methods.METHODS.values(), ids=methods.METHODS)
def test_compiled_runs_are_the_references(name, method):
    y, weight = rows_of(name), np.random.default_rng(2).uniform(0.5, 2.0, size=500)
    made = method() if method is methods.EM else method(batch_size=20)
    model, options = models.MixtureModel(2, given(name)), {"n_iter": 60, "seed": 1, "sample_weight": weight}
    ours = swiftem.run(model, y, made, **options)
    theirs = swiftem.run(model, y, made, kernels="reference", **options)
    assert np.abs(ours.s - theirs.s).max() < 1e-11
    value = swiftem.objective(model, y, ours.theta, sample_weight=weight)
    bound = model.bind(ArraySource(y, weight))
    e_step = choose_compute("auto", bound, bound.source)
    e_step.full(ours.theta)  # which leaves the likelihood behind
    assert e_step.objective(ours.theta) == pytest.approx(value, rel=1e-12)
    loss = -weight @ bound.posterior(next(ArraySource(y, weight).blocks(500)), ours.theta)[1] / weight.sum()
    assert value == pytest.approx(bound.penalty(ours.theta) + loss, rel=1e-12)


def test_smoothing_is_the_maximum_a_posteriori():
    """One component: the objective is least at the M-step."""
    y = rows_of("poisson")[:, :1]
    model = models.MixtureModel(1, "poisson", smoothing=30.0)
    theta = swiftem.run(model, y, methods.EM(), n_iter=3, seed=0).theta

    def value(rate):
        return swiftem.objective(model, y, model.theta(rates=[[rate]]))

    best = optimize.minimize_scalar(value, bounds=(0.1, 20.0), method="bounded", options={"xatol": 1e-10})
    assert theta.params["rates"][0, 0] == pytest.approx(best.x, abs=1e-6)


def test_a_column_of_zeros_and_parameters_at_the_bound():
    y = np.column_stack([rows_of("bernoulli")[:, 0], np.zeros(500), np.ones(500)])
    model = models.MixtureModel(2, "bernoulli", smoothing=0.0)
    theta = swiftem.run(model, y, methods.EM(), n_iter=20, seed=0).theta
    assert np.array_equal(theta.params["probabilities"][:, 1:], [[0.0, 1.0], [0.0, 1.0]])
    assert np.isfinite(swiftem.objective(model, y, theta))


def test_noise_below_the_bound_is_no_reason_to_reject_a_step():
    """The statistics are taken as at the bound, and the prior is what is left."""
    y = rows_of("poisson")
    bound = models.MixtureModel(2, "poisson", smoothing=5.0).bind(ArraySource(y))
    s = np.array([0.4, 0.6, -1e-3, 1.0, 2.0, 3.0, 1.0, -0.2])
    assert bound.in_domain(s)
    rates = bound.m_step(s).params["rates"]
    kappa = 5.0 / len(y)
    assert rates[0, 0] == pytest.approx(kappa * y.mean(axis=0)[0] / (0.4 + kappa), rel=1e-12)
    assert rates[1, 0] == pytest.approx((3.0 + kappa * y.mean(axis=0)[0]) / (0.6 + kappa), rel=1e-12)
    assert rates[1, 2] == pytest.approx(kappa * y.mean(axis=0)[2] / (0.6 + kappa), rel=1e-12)


@pytest.mark.parametrize(
    ("given", "held"), [({}, False), ({"smoothing": 1.0}, True), ({"concentration": 2.0}, True)]
)
def test_a_prior_of_a_row_holds_components_without_rows(given, held):
    model = models.MixtureModel(2, "poisson", **given)
    assert model.bind(ArraySource(rows_of("poisson"))).is_held is held


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("poisson", -1.0, r"data must be counts \(0, 1, 2, ...\), got -1 in row 7 \(family 'poisson'\)"),
        ("poisson", 0.5, r"got 0.5 in row 7"),
        ("bernoulli", 2.0, r"data must be 0 or 1, got 2 in row 7"),
        ("binomial", 10.0, r"counts from 0 to 9 \(trials\) in column 1, got 10 in row 7 \(family 'binomial'"),
        ("binomial", 0.5, r"counts from 0 to 9 \(trials\) in column 1, got 0.5 in row 7"),
        ("exponential", -2.0, r"data must not be negative, got -2 in row 7 \(family 'exponential'\)"),
        ("gamma", 0.0, r"data must be positive amounts, got 0 in row 7 \(family 'gamma'\)"),
        ("gamma", -1e9, r"data must be positive amounts, got -1e\+09 in row 7"),
        ("inverse-gaussian", 0.0, r"positive amounts, got 0 in row 7 \(family 'inverse-gaussian'\)"),
        ("log-normal", -1e9, r"data must be positive amounts, got -1e\+09 in row 7 \(family 'log-normal'\)"),
        ("von-mises-fisher", 9.0, r"data must be vectors of unit length \(.*\), got length 9.* in row 7"),
    ],
)
def test_rows_that_cannot_be(name, value, sentence):
    y = rows_of(name)
    y[7, 1] = value
    with pytest.raises(ValueError, match=sentence):
        swiftem.run(models.MixtureModel(2, given(name)), y, methods.EM(), n_iter=1)


def test_families_by_name():
    assert read_family("poisson") == Poisson()
    assert read_family(Bernoulli()) == Bernoulli()
    with pytest.raises(ValueError, match=r"family must be 'bernoulli', .* or .*, got 'poison'"):
        read_family("poison")
    with pytest.raises(TypeError, match="family must be a name, a Family, or a dict of these"):
        read_family(3)


def test_every_family_of_the_package_is_registered():
    import inspect
    import pkgutil
    from importlib import import_module

    from swiftem.mixture import families

    found = {
        kind
        for module in pkgutil.iter_modules(families.__path__)
        for _, kind in inspect.getmembers(
            import_module(f"swiftem.mixture.families.{module.name}"), inspect.isclass
        )
        if issubclass(kind, Family) and "name" in vars(kind) and kind not in (Family, Blocks, Observed)
    }
    assert found == set(FAMILIES.values())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rates": [[1.0], [2.0]], "weights": [0.5, 0.6]}, "weights must sum to 1"),
        ({"rates": [[-1.0], [2.0]]}, "rates must be at least 0"),
        ({"rates": [[1.0, 2.0]]}, r"rates must have shape \(2, 2\)"),
    ],
)
def test_parameters_that_cannot_be(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        models.MixtureModel(2, "poisson").theta(**arguments)


def test_parameters_of_other_names():
    with pytest.raises(TypeError, match="theta needs rates, got means"):
        models.MixtureModel(2, "poisson").theta(means=[[1.0]])
    model = models.MixtureModel(2, "poisson")
    with pytest.raises(TypeError, match=r"theta0 must be made by model.theta\(weights=, rates=\)"):
        swiftem.run(model, [1, 2, 3], methods.EM(), theta0=(1.0,), n_iter=1)


def test_a_family_names_its_parameters():
    class Nameless(Poisson):
        parameters = ()

    with pytest.raises(TypeError, match="family 'poisson' must define parameters, or shapes"):
        models.MixtureModel(2, Nameless()).theta(rates=[[1.0], [2.0]])


def test_likelihood_of_large_counts():
    """Above 65,535, log y! is no longer looked up in a table."""
    y = np.array([[65_535.0], [65_536.0], [70_000.0], [3.0]])
    mixture = swiftem.Mixture.from_parameters([1.0], {"rates": [[66_000.0]]}, family="poisson")
    np.testing.assert_allclose(mixture.score_samples(y), stats.poisson.logpmf(y[:, 0], 66_000.0), rtol=1e-9)
    np.testing.assert_allclose(mixture.score_samples(y[:1]), mixture.score_samples(y)[:1], rtol=1e-12)


@pytest.mark.parametrize(("family", "per_component"), [
    ("student-t", 3 + 6 + 1), ("student-t(covariance='diag')", 3 + 3 + 1),
    ("student-t(degrees_of_freedom=4)", 3 + 6), ("student-t(covariance='diag', degrees_of_freedom=4)", 3 + 3),
])  # fmt: skip
def test_bic_of_student_t_counts_each_parameter_once(family, per_component):
    X = np.random.default_rng(0).standard_t(5, size=(300, 3))
    mixture = swiftem.Mixture(2, family=family, random_state=0, max_iter=500).fit(X)
    n_parameters = 2 * per_component + 1
    total = mixture.score(X) * 300
    assert mixture.bic(X) == pytest.approx(-2.0 * total + n_parameters * np.log(300), rel=1e-12)
    assert mixture.aic(X) == pytest.approx(-2.0 * total + 2.0 * n_parameters, rel=1e-12)
