"""One pass, three distances, and one definition of the certificate."""

import numpy as np
import pytest
from helpers import assert_close

import swiftem
from paper import theory
from paper.tests.theory_problems import CASES, random_s
from swiftem import methods
from swiftem.core import problem as module
from swiftem.data import ArraySource
from swiftem.data.as_source import read_problem

cases = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))


@cases
@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_the_parts_say(case, seed):
    s = random_s(case, seed)
    found = theory.stationarity(case.model, case.data, s)
    h, gradient = theory.residual(case.model, case.data, s), theory.gradient_V(case.model, case.data, s)
    assert found.residual == pytest.approx(h @ h)
    assert found.gradient == pytest.approx(gradient @ gradient)
    assert found.objective == pytest.approx(theory.V(case.model, case.data, s))
    assert found.certificate > 0


class Counted(ArraySource):
    """A source that counts how often it is read to its end; the model may look at its first rows."""

    access = "sequential"
    passes = 0

    def blocks(self, rows):
        yield from super().blocks(min(rows, 7))
        self.passes += 1

    def take(self, index):
        raise AssertionError("not by number")


def test_one_streamed_pass():
    case = CASES["two"]
    source = Counted(case.data)
    s = random_s(case, 0)
    found = theory.stationarity(case.model, source, s)
    assert source.passes == 1
    assert found == pytest.approx(theory.stationarity(case.model, case.data, s), rel=1e-12)


def test_certificate_of_a_run_is_the_plain_quotient():
    case = CASES["two"]
    result = swiftem.run(case.model, case.data, methods.IncrementalEM(), n_iter=30, seed=0)
    after = swiftem.run(case.model, case.data, methods.EM(), n_iter=1, theta0=result.theta).s
    expected = np.linalg.norm(result.s - after) / np.linalg.norm(result.s)
    assert theory.stationarity(case.model, case.data, result.s).certificate == pytest.approx(expected)


def test_certificate_of_topics_is_that_of_the_words():
    case = CASES["topics"]
    s = random_s(case, 0)
    h = theory.residual(case.model, case.data, s)
    words = slice(8, None)
    expected = np.linalg.norm(h[words]) / np.linalg.norm(s[words])
    assert theory.stationarity(case.model, case.data, s).certificate == pytest.approx(expected)


def test_theory_and_estimators_use_one_definition(monkeypatch):
    """A change of the one formula changes all."""
    case = CASES["two"]
    s = random_s(case, 0)
    before = theory.stationarity(case.model, case.data, s).certificate
    problem = read_problem(swiftem.models.GaussianMixtureModel(2, covariance="full"), case.data)
    bound = problem.bound
    theta = bound.initial_theta(np.random.default_rng(0))
    statistics = swiftem.run(bound.model, case.data, methods.EM(), n_iter=0, theta0=theta).s
    estimator = module.certify(problem, statistics, bound.m_step(statistics))[1]
    real = module.relative_change
    monkeypatch.setattr(module, "relative_change", lambda *args: 2 * real(*args))
    assert theory.stationarity(case.model, case.data, s).certificate == pytest.approx(2 * before)
    again = module.certify(problem, statistics, bound.m_step(statistics))[1]
    assert again == pytest.approx(2 * estimator)


def test_small_where_em_rests():
    case = CASES["topics"]
    rest = swiftem.run(case.model, case.data, methods.EM(), n_iter=3000, seed=0)
    found = theory.stationarity(case.model, case.data, rest.s)
    assert_close(found.residual, 0.0)
    assert found.certificate < 1e-9
