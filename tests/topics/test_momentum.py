"""em's passes with momentum: what is extrapolated, when it begins anew, and what it saves."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from swiftem import PLSA
from swiftem.topics import resolve
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.fit import HostPasses, TopicFit


def test_a_pass_begins_ahead_of_the_last_one():
    first, second, shares = np.array([[4.0, 6.0]]), np.array([[6.0, 1.0]]), np.array([[0.5, 0.5]])
    spec = resolve.resolve(PLSA(1).get_params(), resolve.Facts("memory", 1, 1, 2))
    passes = HostPasses(
        TopicFit(
            documents=Documents(sp.csr_array(np.ones((1, 2)))),
            spec=replace(spec, momentum=0.5),
            starts=[],
            topics=first,
            doc_topic=shares,
            alpha=spec.alpha,
        )
    )
    assert passes.extrapolate(first, False) is first
    shares[:] = [[0.8, 0.2]]
    np.testing.assert_allclose(passes.extrapolate(second, False), [[7.0, 0.1]])  # at least a tenth
    np.testing.assert_allclose(shares, [[0.95, 0.05]])
    np.testing.assert_allclose(passes.state[1], [[0.8, 0.2]])
    shares[:] = [[0.6, 0.4]]
    assert passes.extrapolate(first, True) is first
    np.testing.assert_allclose(shares, [[0.6, 0.4]])
    np.testing.assert_allclose(passes.extrapolate(first, False), first)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(200, 0.1), size=8)
    return np.array([rng.multinomial(60, rng.dirichlet(np.full(8, 0.2)) @ topics) for _ in range(800)])


def test_a_default_fit_takes_fewer_passes_and_is_no_worse(counts, monkeypatch):
    fast = PLSA(8, random_state=0).fit(counts)
    monkeypatch.setattr(resolve, "MOMENTUM", 0.0)
    plain = PLSA(8, random_state=0).fit(counts)
    assert fast.n_iter_ < 0.9 * plain.n_iter_
    assert fast.score(counts) >= plain.score(counts) - 1e-3 * abs(plain.score(counts))


def test_a_pass_with_momentum_counts_as_two_when_a_fit_ends(counts):
    model = PLSA(8, random_state=0, tol=1e-3).fit(counts)
    gains = -np.diff([moment.objective for moment in model.history_ if moment.method == "em"])
    small = np.abs(gains) < 2e-3
    assert model.converged_
    assert small[-2:].all()
    assert not (small[:-2] & small[1:-1] & (gains[1:-1] <= gains[:-2])).any()
