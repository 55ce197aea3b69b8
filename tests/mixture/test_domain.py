"""Which steps compiled lanes reject, and what their M-steps add: as the plain loop does, to rounding."""

import helpers
import numpy as np
import pytest
from helpers import assert_same_to_rounding, both

import swiftem
from swiftem import methods, models

# δ and ε that differ, so that one of them alone decides what is in the domain.
PENALTIES = pytest.mark.parametrize(
    ("delta", "epsilon"), [(1e-6, 0.05), (0.05, 1e-6)], ids=["delta", "epsilon"]
)
# What is rejected is what is compared.
pytestmark = pytest.mark.filterwarnings("ignore:All .* steps of the run were rejected")
KINDS = ["full", "tied", "diag", "spherical"]


def unit_problem(M, d, delta, epsilon, n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, d)) + 2.0 * rng.normal(size=(M, d))[rng.integers(M, size=n)]
    model = models.GaussianMixtureModel(M, delta=delta, epsilon=epsilon)
    return model, y, model.theta(means=y[:M]), rng.exponential(size=n) ** 2 + 0.01


def pushed(model, y, method, to, *, theta0=None, **options):
    """Return a start, one iteration on, from which the first component's weight is driven to ``to``.

    A state may come from anywhere: the centre that it has is not looked at.
    """
    first = swiftem.run(model, y, method, theta0=theta0, n_iter=1, seed=0, kernels="reference", **options)
    centre = first.state.method.centre.copy()
    centre[0] = to
    state = first.state._replace(method=first.state.method._replace(centre=centre))
    return {"theta0": first.theta, "s0": first.s, "state": state} | options


@PENALTIES
@pytest.mark.parametrize(
    ("M", "d", "b"), [(3, 1, 1), (3, 2, 3), (12, 3, 60)], ids=["one by one", "three", "in blocks"]
)
@pytest.mark.parametrize("weights", [False, True], ids=["alike", "weights"])
@pytest.mark.parametrize("name", ["iem", "sem-vr", "fiem"])
def test_steps_that_leave_the_domain(name, weights, M, d, b, delta, epsilon):
    """On the way the first component has less than nothing, between −δ and −ε."""
    model, y, theta0, weight = unit_problem(M, d, delta, epsilon)
    method = helpers.make_method(name, step_size=0.05, batch_size=b, epoch_length=99)
    options = {"sample_weight": weight if weights else None, "theta0": theta0}
    compiled, plain = both(
        model, y, method, n_iter=60, record_every=4, **pushed(model, y, method, -0.03, **options)
    )
    assert_same_to_rounding(compiled, plain)
    assert 0 < plain.rejected < 60 or name == "iem"


def made_up(name, memory, s, centre, weight=None, step_size=0.02):
    """Return model, samples near zero and a start in which all of them are explained by component 0.

    ``memory`` (n, 2) is what fiem remembers; sem-vr has an anchor by which component 1 explains all. ``s``
    and ``centre`` are weights of component 1 in either; it is at 9.
    """
    y = np.linspace(-1.0, 1.0, len(memory))
    model = models.GaussianMixtureModel(2)
    theta0 = model.theta(means=[[0.0], [9.0]])
    method = helpers.make_method(name, step_size=step_size, epoch_length=99)
    first = swiftem.run(model, y, method, theta0=theta0, n_iter=1, seed=0, sample_weight=weight)
    centre = np.array([1.0 - centre, centre, 0.0, 9.0 * centre])
    parts = {"fiem": {"memory": memory}, "sem-vr": {"anchor": model.theta(means=[[9.0], [0.0]])}}[name]
    state = first.state._replace(method=first.state.method._replace(centre=centre, **parts))
    s = np.array([1.0 - s, s, 0.0, 9.0 * s])
    return model, y, method, {"theta0": theta0, "s0": s, "state": state, "sample_weight": weight}


def test_fiem_while_its_centre_falls():
    """Each j takes from the centre of component 1, until i takes from its statistics what it remembers."""
    memory = np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0)
    draws = np.array([15] * 9 + [0] * 4), np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14])
    rejected = []
    for begin in np.linspace(0.0, 0.6, 13):
        model, y, method, start = made_up("fiem", memory, begin, 0.5, step_size=0.2)
        compiled, plain = both(model, y, method, n_iter=13, draws=draws, **start)
        assert_same_to_rounding(compiled, plain)
        rejected.append(plain.rejected)
    assert 0 < min(rejected) < max(rejected) < 5


@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_statistics_that_fall_step_by_step(name):
    """Component 1 loses a little at each step, and what it has after the last one decides about the next."""
    model, y, method, start = made_up(name, np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0), 0.3, 0.5)
    draws = np.zeros(40, dtype=int)
    compiled, plain = both(
        model, y, method, n_iter=40, draws=(draws, draws + 15) if name == "fiem" else draws, **start
    )
    assert_same_to_rounding(compiled, plain)
    assert 0 < plain.rejected < 40


@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_a_heavy_sample_takes_away_more_than_one(name):
    memory = np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0)
    weight = np.where(np.arange(20) == 3, 500.0, 1.0)
    model, y, method, start = made_up(name, memory, 0.3, 0.3, weight)
    draws = np.array([1, 3, 2, 3])
    compiled, plain = both(
        model, y, method, n_iter=4, draws=(draws, draws + 10) if name == "fiem" else draws, **start
    )
    assert_same_to_rounding(compiled, plain)
    assert plain.rejected == 2


@pytest.mark.parametrize("kind", ["unit", *KINDS])
@pytest.mark.parametrize("b", [1, 4])
def test_what_comes_before_rejected_steps_stays(kind, b):
    """Of stretches in compiled code the first has steps that are accepted, and the last has none."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(30, 2)) + 2.0 * rng.normal(size=(3, 2))[rng.integers(3, size=30)]
    model = models.GaussianMixtureModel(3, covariance=kind)
    theta0 = swiftem.run(model, y, methods.EM(), n_iter=2, seed=0, kernels="reference").theta
    method = methods.FastIncrementalEM(step_size=0.01, batch_size=b)
    start = pushed(model, y, method, -5.0, theta0=theta0)
    compiled, plain = both(model, y, method, n_iter=300, **start)
    assert compiled.rejected == plain.rejected > 270
    np.testing.assert_allclose(compiled.s, plain.s, rtol=1e-9, atol=1e-12)
    assert plain.s[0] < 0.9 * start["s0"][0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", helpers.STOCHASTIC)
@pytest.mark.parametrize("b", [1, 6])
def test_a_prior_with_a_mean_and_correlations(kind, name, b):
    """Priors of other tests are centred and diagonal, which hides half of the formulas."""
    rng = np.random.default_rng(4)
    y = rng.normal(size=(50, 3)) + 2.0 * rng.normal(size=(2, 3))[rng.integers(2, size=50)]
    scale = np.array([[2.0, 0.7, -0.4], [0.7, 1.5, 0.3], [-0.4, 0.3, 1.0]])
    prior = models.NormalInverseWishart(9.0, scale, mean_precision=6.0, mean=[2.0, -1.0, 0.5])
    model = models.GaussianMixtureModel(2, covariance=kind, prior=prior, concentration=3.0, reg_covar=0.01)
    theta0 = swiftem.run(model, y, methods.EM(), n_iter=2, seed=0, kernels="reference").theta
    method = helpers.make_method(name, step_size=0.1, batch_size=b)
    compiled, plain = both(model, y, method, theta0=theta0, n_iter=25, seed=0, record_every=5)
    assert_same_to_rounding(compiled, plain)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("binding", ["epsilon", "mean precision", "degrees"])
def test_each_count_of_a_prior_keeps_the_domain(kind, binding):
    """A component may have less than nothing, as long as each of three sums stays positive."""
    rng = np.random.default_rng(4)
    y = rng.normal(size=(40, 2))
    large, small = 40.0, 1e-3
    options = {
        "epsilon": {"concentration": 1.0 + small, "prior": models.NormalInverseWishart(large, large, large)},
        "mean precision": {"concentration": large, "prior": models.NormalInverseWishart(large, large, small)},
        "degrees": {"concentration": large, "prior": models.NormalInverseWishart(1.0 + small, large, large)},
    }[binding]
    model = models.GaussianMixtureModel(2, covariance=kind, **options)
    method = methods.IncrementalEM(batch_size=5)
    first = swiftem.run(model, y, method, n_iter=0, seed=0)
    rejected = []
    for part in np.linspace(-0.5, 0.2, 15):
        state = first.state.method
        centre = state.centre.copy()
        centre[0] = part
        start = {"s0": first.s, "state": first.state._replace(method=type(state)(centre, state.memory))}
        compiled, plain = both(model, y, method, theta0=first.theta, n_iter=1, **start)
        rejected.append(plain.rejected)
        assert compiled.rejected == plain.rejected, part
        np.testing.assert_allclose(compiled.s, plain.s, rtol=1e-9, atol=1e-12)
    assert 0 < sum(rejected) < 15


@pytest.mark.parametrize(("seed", "far"), [(1, 1e5), (1, 1e6), (2, 1e6)])
def test_what_the_loop_accepts_has_an_m_step_in_the_reference(seed, far):
    """Rows 10⁵ deviations away leave little of a covariance but rounding: both M-steps have to agree."""
    y = np.random.default_rng(seed).normal(size=(400, 4))
    y[:3] += far
    method = methods.VarianceReducedEM(batch_size=20, step_size=0.3)
    result = swiftem.run(models.GaussianMixtureModel(3, covariance="full"), y, method, n_iter=300, seed=seed)
    assert result.rejected > 0
    assert np.isfinite(result.theta.covariances).all()
