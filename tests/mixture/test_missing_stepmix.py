"""Missing cells: the likelihood of StepMix, if it is installed."""

import numpy as np
import pytest

import swiftem
from benchmarks import families as cases
from swiftem import methods
from swiftem.data import ArraySource

pytest.importorskip("stepmix", reason="needs StepMix: pip install stepmix")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [cases.bernoulli, cases.categorical, cases.gaussian])
def test_the_likelihood_is_stepmixs(make, monkeypatch):
    monkeypatch.setattr(cases, "M", 4)  # with more, some have no row of a level, and StepMix clips at 1e-15
    case = cases.with_holes(make(2000))
    source = ArraySource(case.y, allow_missing=True)
    theta = cases.start(case.model, source)
    peer, call = cases.stepmix(case, case.y, theta)
    for _ in range(100):
        call()
    found = swiftem.run(case.model, source, methods.EM(), theta0=theta, n_iter=100).theta
    ours = -float(swiftem.objective(case.model, source, found))
    assert np.isnan(case.y).any()
    assert ours == pytest.approx(float(peer._e_step(case.y)[0]), abs=1e-6)
