"""Blocks of columns with a family each: the plain formulas, and runs of every method."""

import numpy as np
import pytest

import swiftem
from swiftem import methods, models
from swiftem.data import ArraySource
from swiftem.mixture.families import Blocks, Gaussian, Poisson, read_family
from swiftem.testing import check_model

RNG = np.random.default_rng(3)
LABELS = RNG.choice(2, 400)
ROWS = np.column_stack([
    RNG.poisson(np.array([2.0, 9.0])[LABELS]),
    RNG.random(400) < np.array([0.2, 0.9])[LABELS],
    RNG.normal(np.array([-1.0, 3.0])[LABELS], 2.0),
    RNG.poisson(np.array([5.0, 1.0])[LABELS]),
    RNG.normal(np.array([0.0, 0.1])[LABELS], 0.01),
]).astype(float)  # fmt: skip
FAMILY = {"gaussian": [2, 4], "poisson": [3, 0], "bernoulli": [1]}
PARAMS = {
    "gaussian": {"means": [[-1.0, 0.0], [3.0, 0.1]], "variances": [[4.0, 1e-4], [3.0, 2e-4]]},
    "poisson": {"rates": [[5.0, 2.0], [1.0, 9.0]]},
    "bernoulli": {"probabilities": [[0.2], [0.9]]},
}


def test_blocks_are_their_families():
    """M-steps are those of each block's columns, and log-densities add up."""
    options = {"init_params": LABELS, "max_iter": 0, "smoothing": 0.0}
    mixture = swiftem.Mixture(2, family=FAMILY, **options).fit(ROWS)
    logs = np.tile(np.log(mixture.weights_), (400, 1))
    for name, columns in FAMILY.items():
        params = swiftem.Mixture(2, family=name, **options).fit(ROWS[:, columns]).params_
        for key, part in params.items():
            np.testing.assert_allclose(mixture.params_[name][key], part, rtol=1e-9)
        for m in range(2):
            of_one = {key: part[[m]] for key, part in params.items()}
            alone = swiftem.Mixture.from_parameters([1.0], of_one, family=name)
            logs[:, m] += alone.score_samples(ROWS[:, columns])
    np.testing.assert_allclose(mixture.score_samples(ROWS), np.logaddexp.reduce(logs, axis=1), rtol=1e-9)


def test_sums_are_kept_within_the_bounds_of_their_block():
    kind = models.MixtureModel(2, FAMILY).bind(ArraySource(ROWS)).family
    of = dict(zip((family.name for family in kind.families), kind.places, strict=True))
    sums = np.full((2, sum(map(len, kind.places))), 0.3)
    sums[:, of["poisson"]], sums[:, of["bernoulli"]] = -1e-9, 0.5 + 1e-9  # by rounding
    sums[0, of["gaussian"]] = -2.0
    found = kind.clipped(np.full((2, 1), 0.5), sums)
    assert (found[:, of["poisson"]] == 0.0).all()
    assert (found[:, of["bernoulli"]] == 0.5).all()
    assert found[0, of["gaussian"]][0] == -2.0


def test_contract():
    check_model(models.MixtureModel(2, FAMILY), ROWS[:60])
    spherical = {Gaussian(covariance="spherical"): [2, 4], "poisson": [0, 1, 3]}
    check_model(models.MixtureModel(2, spherical, smoothing=1.0), ROWS[:60])


def test_a_block_of_all_columns_is_the_family():
    y = ROWS[:, [0, 3]]
    options = {"n_iter": 20, "seed": 0}
    alone = swiftem.run(models.MixtureModel(2, "poisson"), y, methods.EM(), **options)
    block = swiftem.run(models.MixtureModel(2, {"poisson": [0, 1]}), y, methods.EM(), **options)
    assert np.array_equal(alone.theta.params["rates"], block.theta.params["poisson"]["rates"])


def test_an_offset_costs_no_digits():
    y = RNG.normal(np.array([-1.0, 3.0])[LABELS][:, None], 1.0, size=(400, 2))
    options = {"n_iter": 30, "seed": 0}
    near = swiftem.run(models.MixtureModel(2, "gaussian"), y, methods.EM(), **options).theta
    far = swiftem.run(models.MixtureModel(2, "gaussian"), y + 1e8, methods.EM(), **options).theta
    assert np.allclose(far.params["means"] - 1e8, near.params["means"], atol=1e-6)
    assert np.allclose(far.params["variances"], near.params["variances"], rtol=1e-6)


def test_a_variance_has_a_floor():
    y = np.column_stack([np.repeat([0.0, 10.0], 50), np.full(100, 7.0)])
    model = models.MixtureModel(2, "gaussian", smoothing=0.0)
    start = model.theta(means=[[2.0, 7.0], [8.0, 7.0]], variances=np.ones((2, 2)))
    params = swiftem.run(model, y, methods.EM(), n_iter=20, theta0=start).theta.params
    assert np.allclose(params["means"][:, 0], [0.0, 10.0])
    assert np.allclose(params["variances"], [[25e-6, 1e-6]] * 2)
    model = models.MixtureModel(2, Gaussian(floor=0.0), smoothing=0.0)
    assert not model.bind(ArraySource(y)).in_domain(np.r_[0.5, 0.5, np.zeros(8)])


def test_full_covariances_are_gaussian_mixtures():
    with pytest.raises(ValueError, match=r"got 'full': full and tied .* swiftem.GaussianMixture"):
        Gaussian(covariance="full")


@pytest.mark.parametrize(
    ("family", "kind", "sentence"),
    [
        ({"poisson": [0, 1]}, ValueError, "every column in a block, got none for column 2, 3, 4"),
        ({"poisson": [0, 1, 2, 3, 4, 5]}, ValueError, "columns from 0 to 4, got 5"),
        ({"poisson": [0, 1], "bernoulli": [1, 2, 3, 4]}, ValueError, "column 1 twice"),
        ({"poisson": [0], Poisson(): [1]}, ValueError, "each kind of block once, got 'poisson' twice"),
        ({"poisson": ["a"]}, ValueError, "got 'a'; they have no names: give their numbers"),
        ({"poisson": []}, TypeError, "family must give 'poisson' a list of columns"),
        ({"poisson": [0.5]}, TypeError, "names or numbers of columns, got 0.5"),
        ({}, ValueError, "at least one block"),
        ({"poison": [0]}, ValueError, "got 'poison'"),
    ],
)
def test_blocks_that_cannot_be(family, kind, sentence):
    with pytest.raises(kind, match=sentence):
        models.MixtureModel(2, family).bind(ArraySource(ROWS))


def test_a_row_that_cannot_be_names_its_family():
    y = ROWS.copy()
    y[7, 1] = 0.5
    with pytest.raises(ValueError, match=r"data must be 0 or 1, got 0.5 in row 7 \(family 'bernoulli'\)"):
        models.MixtureModel(2, FAMILY).bind(ArraySource(y))


def test_parameters_of_blocks_are_dicts():
    model = models.MixtureModel(2, FAMILY)
    with pytest.raises(ValueError, match=r"poisson\.params must have rates, got rate"):
        model.theta(**PARAMS | {"poisson": {"rate": 1.0}})
    with pytest.raises(ValueError, match="variances must be positive"):
        model.theta(**PARAMS | {"gaussian": {"means": np.zeros((2, 2)), "variances": np.zeros((2, 2))}})


def test_names_become_numbers():
    blocks = read_family({"poisson": "visits", "bernoulli": ["yes", 2]})
    assert isinstance(blocks, Blocks)
    assert blocks.named(["yes", "visits", "member"]).columns == ((1,), (0, 2))
    with pytest.raises(ValueError, match="got 'visits'; they have a, b"):
        blocks.named(["a", "b"])
