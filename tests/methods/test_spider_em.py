"""SPIDER-EM: its anchor, its renewals, the sizes of the theorems, and what it declares."""

import numpy as np
import pytest

import swiftem
from swiftem import methods, models, schedules
from swiftem.core.method import Update, declared


def test_rejected_steps_leave_the_last_parameters():
    """The anchor is the θ of the iteration before, also where its step was rejected."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(size=(40, 2)), np.tile([1234.567, -987.654], (20, 1))])
    model = models.GaussianMixtureModel(2, covariance="diag")
    theta0 = model.theta(means=[[0.0, 0.0], y[-1]], covariances=np.ones((2, 2)))
    method = methods.SpiderEM(step_size=1.0, batch_size=9, epoch_length=9)
    with pytest.warns(UserWarning, match="were rejected"):
        result = swiftem.run(model, y, method, theta0=theta0, n_iter=20, seed=0)
    assert result.status == "rejected"
    for part, expected in zip(result.state.method.anchor, theta0, strict=True):
        np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize(("n", "root"), [(1, 1), (2, 2), (100, 10), (101, 11), (10**6, 1000)])
def test_the_sizes_of_the_theorems(n, root):
    method = methods.SpiderEM.by_theorem(n, renewals="geometric", renewal_seed=7)
    assert (method.batch_size, method.epoch_length) == (root, -(-n // root))
    assert (method.renewals, method.renewal_seed) == ("geometric", 7)
    step = schedules.spider_bound(L_s=2.0, L_V=3.0, upsilon_min=0.3, upsilon_max=0.9)
    ratio = np.sqrt(method.epoch_length / root)
    expected = 0.3 / (2 * 2.0 * (0.9 * ratio + 3.0 / 4.0))
    assert schedules.resolve(step, n, root)(1) == pytest.approx(expected, rel=1e-12)


def test_geometric_epochs():
    """Their mean is the epoch length, and their beginnings are a function of the seed alone."""
    method = methods.SpiderEM(epoch_length=20, renewals="geometric", renewal_seed=4)
    begins = [k for k in range(20_000) if method.renewal(k, 7) == k]
    assert begins[0] == 0
    assert 850 < len(begins) < 1150
    assert method.renewal(10**5, 7) == methods.SpiderEM(
        epoch_length=20, renewals="geometric", renewal_seed=4, step_size=0.3
    ).renewal(10**5, 7)
    other = methods.SpiderEM(epoch_length=20, renewals="geometric", renewal_seed=5)
    assert [k for k in range(500) if other.renewal(k, 7) == k] != begins[: len(begins)]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"renewals": "often"}, "renewals must be 'fixed' or 'geometric', got 'often'"),
        ({"renewal_seed": -1}, "renewal_seed must be at least 0, got -1"),
        ({"epoch_length": 0}, "epoch_length must be at least 1, got 0"),
    ],
    ids=["renewals", "seed", "length"],
)
def test_bad_hyper_parameters(options, match):
    with pytest.raises(ValueError, match=match):
        methods.SpiderEM(**options)


def test_bad_sizes():
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        methods.SpiderEM.by_theorem(0)
    with pytest.raises(ValueError, match="upsilon_max must be positive, got"):
        schedules.spider_bound(1.0, 1.0, 1.0, 0.0)


def test_what_is_derived_declares_for_itself():
    class Other(methods.SpiderEM):
        def proxy(self, k, theta, draws, state, e_step):
            return super().proxy(k, theta, draws, state, e_step)

    class Renamed(methods.SpiderEM):
        name = "renamed"

    assert declared(Other()) is None
    assert declared(Renamed()) == methods.SpiderEM.update


def test_bad_updates():
    with pytest.raises(
        ValueError, match="reference must be 'none', 'anchor', 'previous' or 'memory', got 'old'"
    ):
        Update(reference="old")
    with pytest.raises(ValueError, match="correction must be finite"):
        Update(correction=float("nan"))
    with pytest.raises(ValueError, match="renewed_by must be 'none' if reference is 'anchor'"):
        Update(reference="anchor", renewed_by="other")
    with pytest.raises(ValueError, match=r"correction must be 1 if renewed_by is 'drawn', got 0\.5"):
        Update(reference="memory", renewed_by="drawn", correction=0.5)
