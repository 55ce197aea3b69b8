"""Tables that are only planned, as those of polars: a sentence that says what to give instead."""

import warnings

import numpy as np
import pytest

import swiftem
from swiftem import PLSA, GaussianMixture, methods, models, posterior


class LazyFrame:
    """What polars' has: it cannot be tested, compared, counted or indexed, and warns when it is asked."""

    def __init__(self, rows):
        self._rows = rows

    def collect(self):
        return self._rows

    @property
    def columns(self):
        warnings.warn(
            "determining the column names of a LazyFrame is expensive", RuntimeWarning, stacklevel=2
        )
        return ["a", "b"]

    def __bool__(self):
        raise TypeError("the truth value of a LazyFrame is ambiguous")

    __eq__ = __ne__ = __lt__ = __gt__ = lambda self, other: self.__bool__()
    __hash__ = None

    def __getitem__(self, item):
        raise TypeError("'LazyFrame' object is not subscriptable (aside from slicing)")


Y = np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture(scope="module")
def mixture():
    return GaussianMixture(2, random_state=0).fit(Y)


MODEL = models.GaussianMixtureModel(2)
CALLS = {
    "run": lambda data, mixture: swiftem.run(MODEL, data, methods.EM(), n_iter=1),
    "objective": lambda data, mixture: swiftem.objective(MODEL, data, MODEL.theta(means=Y[:2])),
    "posterior": lambda data, mixture: posterior(MODEL, data, MODEL.theta(means=Y[:2])),
    "fit": lambda data, mixture: GaussianMixture(2).fit(data),
    "partial_fit": lambda data, mixture: GaussianMixture(2).partial_fit(data),
    "predict": lambda data, mixture: mixture.predict(data),
    "score": lambda data, mixture: mixture.score(data),
    "select": lambda data, mixture: swiftem.select(data, n_components=[1, 2]),
    "PLSA.fit": lambda data, mixture: PLSA(2).fit(data),
    "PLSA.partial_fit": lambda data, mixture: PLSA(2).partial_fit(data),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_lazy_frame(name, mixture):
    with pytest.raises(TypeError, match=r"got a LazyFrame, which is lazy: pass its collect\(\)\.$"):
        CALLS[name](LazyFrame(Y), mixture)


def test_what_it_collects(mixture):
    assert (mixture.predict(LazyFrame(Y).collect()) == mixture.predict(Y)).all()
