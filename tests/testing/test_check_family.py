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


class Draws(InverseGaussian):
    name = "draws"

    def draw(self, params, labels, rng):
        return 1.05 * rng.wald(params["means"][labels], params["shapes"][labels])


class InvalidDraws(InverseGaussian):
    name = "invalid-draws"

    def draw(self, params, labels, rng):
        return -params["means"][labels]


class ShapeOfDraws(InverseGaussian):
    name = "shape-of-draws"

    def draw(self, params, labels, rng):
        return params["means"][labels, 0]


class Base(InverseGaussian):
    name = "base"

    def log_bases(self, y):
        return -0.5 * np.log(2 * np.pi) - 0.5 * np.log(y)


class NoBase(InverseGaussian):
    name = "no-base"

    def log_bases(self, y):
        return None


class BaseOfARow(InverseGaussian):
    name = "base-of-a-row"

    def log_base(self, y):
        return super().log_base(y) + (0.1 if y.shape[1] > 1 else 0.0)


class MStep(InverseGaussian):
    """The second moment is not centred."""

    name = "m-step"

    def m_step(self, counts, means):
        t, u = np.split(means, 2, axis=1)
        mean = self.unit(t.shape[1])[0] * (1.0 + t)
        return {"means": mean, "shapes": mean / ((1.0 + t) * u)}


class NoMStep(InverseGaussian):
    name = "no-m-step"

    def m_step(self, counts, means):
        return None


class Natural(InverseGaussian):
    name = "natural"

    def natural(self, params):
        phi, constant = super().natural(params)
        return 1.1 * phi, constant


class Constants(InverseGaussian):
    name = "constants"

    def natural(self, params):
        return super().natural(params)[0], InverseGaussian.constants(self, params).sum(axis=1)

    def constants(self, params):
        return 0.5 * np.log(params["shapes"])


class Means(InverseGaussian):
    name = "means"

    def expected(self, params):
        return params["shapes"]


class Kinds(InverseGaussian):
    name = "kinds"
    kinds = 1


class Order(InverseGaussian):
    """Features column by column: the rest of the family follows."""

    name = "order"

    def features(self, y):
        return np.stack(np.split(super().features(y), 2, axis=1), axis=2).reshape(len(y), -1)

    def natural(self, params):
        phi, constant = super().natural(params)
        return np.stack(np.split(phi, 2, axis=1), axis=2).reshape(len(phi), -1), constant

    def m_step(self, counts, means):
        return super().m_step(counts, np.hstack([means[:, ::2], means[:, 1::2]]))


class Rows(InverseGaussian):
    """Zero is not refused."""

    name = "rows"

    def check_rows(self, y):
        if (y < 0).any():
            raise ValueError("must be positive")


class Sentence(InverseGaussian):
    name = "sentence"

    def check_rows(self, y):
        if (y <= 0).any():
            raise ValueError("bad rows")


class Bounds(InverseGaussian):
    name = "bounds"
    bounds = (0.0, np.inf)


class Shapes(InverseGaussian):
    name = "shapes"

    def shapes(self, n_components, d):
        return {"means": (d, n_components), "shapes": (n_components, d)}


class Learning(InverseGaussian):
    name = "learning"

    def features(self, y):
        return super().features(y) if self.scale else y / self.scale


BROKEN = {
    Draws: "draw must follow the density",
    InvalidDraws: "draw must return valid rows",
    ShapeOfDraws: "draw must return (count, d)",
    Base: "the density must integrate to one",
    NoBase: "the density must integrate to one",
    BaseOfARow: "log_bases must be (b, d)",
    MStep: "m_step must return the maximum likelihood parameters",
    NoMStep: "m_step must not return None",
    Natural: "m_step must return the maximum likelihood parameters",
    Constants: "constants must be (M, d)",
    Means: "expected must return the means",
    Kinds: "features must be kinds·d",
    Order: "features must be of all columns, kind after kind",
    Rows: "features and log_base must be finite",
    Sentence: "must follow the word data",
    Bounds: "features must be within the bounds",
    Shapes: "means must have shape (M, ...)",
    Learning: "features must work, or raise ValueError, before learn is called",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_finds_what_is_broken(kind):
    with pytest.raises(AssertionError) as raised:
        check_family(kind(), Y)
    assert BROKEN[kind] in str(raised.value)


class NoLeast(Poisson):
    name = "no-least"

    def natural(self, params):
        return np.log(params["rates"]), -params["rates"].sum(axis=1)


def test_finds_coefficients_that_are_infinite_for_rows_of_zeros():
    counts = RNG.poisson([[2.0, 7.0]], (60, 2)) + 1
    with pytest.raises(AssertionError, match="natural must return finite numbers for a component whose rows"):
        check_family(NoLeast(), counts)
    check_family(Poisson(), counts)
