"""check_family accepts the library's families and one's own, and finds what is broken."""

from dataclasses import dataclass

import numpy as np
import pytest

from swiftem.families import Family
from swiftem.mixture.families.inverse_gaussian import InverseGaussian
from swiftem.mixture.families.poisson import Poisson
from swiftem.testing import check_family

RNG = np.random.default_rng(0)
Y = RNG.wald(np.where(RNG.random((60, 1)) < 0.5, 1.0, 8.0), 20.0, (60, 2))


@dataclass(frozen=True)
class Rayleigh(Family):
    """Speeds, whose columns are not said to be independent."""

    name = "rayleigh"
    bounds = (0.0, np.inf)

    def shapes(self, n_components, d):
        return {"scales": (n_components, d)}

    def check_rows(self, y):
        if (y <= 0).any():
            raise ValueError("must be positive")

    def features(self, y):
        return y * y

    def natural(self, params):
        return -0.5 / params["scales"] ** 2, -2.0 * np.log(params["scales"]).sum(axis=1)

    def log_base(self, y):
        return np.log(y).sum(axis=1)

    def m_step(self, counts, means):
        return {"scales": np.sqrt(0.5 * means)} if (means > 0).all() else None

    def draw(self, params, labels, rng):
        return rng.rayleigh(params["scales"][labels])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_accepts_a_family_of_ones_own(d, seed):
    rng = np.random.default_rng(seed)
    check_family(Rayleigh(), rng.rayleigh(np.where(rng.random((50, 1)) < 0.5, 1.0, 5.0), (50, d)), seed=seed)


def refuse(words, is_bad):
    def check_rows(self, y):
        if is_bad(y).any():
            raise ValueError(words)

    return check_rows


def not_centred(self, counts, means):
    t, u = np.split(means, 2, axis=1)
    mean = self.unit(t.shape[1])[0] * (1.0 + t)
    return {"means": mean, "shapes": mean / ((1.0 + t) * u)}


def column_by_column(parts):
    """Return features, or their coefficients, column by column."""
    return np.stack(np.split(parts, 2, axis=1), axis=2).reshape(len(parts), -1)


def natural(change):
    def changed(self, params):
        phi, constant = InverseGaussian.natural(self, params)
        return change(phi), constant

    return changed


BROKEN = [
    (
        "draw must follow the density",
        {"draw": lambda self, params, of, rng: 1.05 * rng.wald(params["means"][of], params["shapes"][of])},
    ),
    ("draw must return valid rows", {"draw": lambda self, params, of, rng: -params["means"][of]}),
    ("draw must return (count, d)", {"draw": lambda self, params, of, rng: params["means"][of, 0]}),
    (
        "the density must integrate to one",
        {"log_bases": lambda self, y: -0.5 * np.log(2 * np.pi) - 0.5 * np.log(y)},
    ),
    ("the density must integrate to one", {"log_bases": lambda self, y: None}),
    (
        "log_bases must be (b, d)",
        {"log_base": lambda self, y: InverseGaussian.log_base(self, y) + 0.1 * (y.shape[1] > 1)},
    ),
    ("m_step must return the maximum likelihood parameters", {"m_step": not_centred}),
    ("m_step must not return None", {"m_step": lambda self, counts, means: None}),
    (
        "m_step must return the maximum likelihood parameters",
        {"natural": natural(lambda phi: 1.1 * phi)},
    ),
    (
        "constants must be (M, d)",
        {
            "natural": lambda self, params: (
                InverseGaussian.natural(self, params)[0],
                InverseGaussian.constants(self, params).sum(axis=1),
            ),
            "constants": lambda self, params: 0.5 * np.log(params["shapes"]),
        },
    ),
    ("expected must return the means", {"expected": lambda self, params: params["shapes"]}),
    ("features must be kinds·d", {"kinds": 1}),
    (
        "features must be of all columns, kind after kind",
        {
            "features": lambda self, y: column_by_column(InverseGaussian.features(self, y)),
            "natural": natural(column_by_column),
            "m_step": lambda self, counts, means: InverseGaussian.m_step(
                self, counts, np.hstack([means[:, ::2], means[:, 1::2]])
            ),
        },
    ),
    (
        "features and log_base must be finite",
        {"check_rows": refuse("must be positive", lambda y: y < 0)},
    ),
    ("must follow the word data", {"check_rows": refuse("bad rows", lambda y: y <= 0)}),
    ("features must be within the bounds", {"bounds": (0.0, np.inf)}),
    (
        "means must have shape (M, ...)",
        {"shapes": lambda self, count, d: {"means": (d, count), "shapes": (count, d)}},
    ),
    (
        "features must work, or raise ValueError, before learn is called",
        {
            "features": lambda self, y: InverseGaussian.features(self, y) if self.scale else y / self.scale,
        },
    ),
]


@pytest.mark.parametrize(("sentence", "members"), BROKEN, ids=range(len(BROKEN)))
def test_finds_what_is_broken(sentence, members):
    family = type("Broken", (InverseGaussian,), {"name": "broken", **members})()
    with pytest.raises(AssertionError) as raised:
        check_family(family, Y)
    assert sentence in str(raised.value)


class NoLeast(Poisson):
    name = "no-least"

    def natural(self, params):
        return np.log(params["rates"]), -params["rates"].sum(axis=1)


def test_finds_coefficients_that_are_infinite_for_rows_of_zeros():
    counts = RNG.poisson([[2.0, 7.0]], (60, 2)) + 1
    with pytest.raises(AssertionError, match="natural must return finite numbers for a component whose rows"):
        check_family(NoLeast(), counts)
    check_family(Poisson(), counts)
