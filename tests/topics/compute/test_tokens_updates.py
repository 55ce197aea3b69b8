"""pLSA by tokens runs what a method declares: SPIDER-EM and methods of one's own, in compiled stretches."""

import helpers
import numpy as np
import pytest
from own_method import UPDATES, own

from swiftem import methods, schedules
from swiftem.topics.compute.tokens import TokensLoop

STEPS = {
    "constant": 0.1,
    "varying": schedules.power(0.9, 0.5),
    "one now and then": lambda k: 1.0 if k % 7 == 0 else 0.2,
    "one": 1.0,
}
every_update = pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
batches = pytest.mark.parametrize("b", [1, 3])


def problem():
    return helpers.topics(90, D=6, V=7, K=3, alpha=1e-2, beta=1e-2)


@pytest.fixture
def compiled(monkeypatch):
    """How many iterations were done in compiled code."""
    seen, iterate = [], TokensLoop.iterate

    def count(self, steps, drawn):
        found = iterate(self, steps, drawn)
        seen.append(len(steps))
        return found

    monkeypatch.setattr(TokensLoop, "iterate", count)
    return seen


def both(method, **options):
    weight = np.linspace(0.5, 2.0, 6)
    options = {"n_iter": 150, "seed": 3, "sample_weight": weight, "record_every": 11} | options
    return [problem().run(method, kernels=kernels, **options) for kernels in ("auto", "reference")]


def assert_same(ours, theirs):
    assert (ours.rejected, ours.passes) == (theirs.rejected, theirs.passes)
    pairs = [
        ((one.s, one.theta), (two.s, two.theta)) for one, two in zip(ours.path, theirs.path, strict=True)
    ]
    for one, two in [*pairs, (ours.state.method, theirs.state.method)]:
        for leaf, other in zip(helpers.leaves(one), helpers.leaves(two), strict=True):
            helpers.assert_close(leaf, other)


@every_update
@batches
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_any_update(update, b, step, compiled):
    n_iter = 150 if step in (STEPS["constant"], STEPS["varying"]) else 50  # large steps amplify rounding
    assert_same(*both(own(update, step_size=step, batch_size=b), n_iter=n_iter))
    is_forgotten = update.centre == "proxy" and update.correction < 1.0
    assert (sum(compiled) > 20) != is_forgotten


@pytest.mark.parametrize("renewals", ["fixed", "geometric"])
@batches
@pytest.mark.parametrize("step", [0.1, 1.0])
def test_spider(renewals, b, step, compiled):
    method = methods.SpiderEM(step_size=step, batch_size=b, epoch_length=23, renewals=renewals)
    assert_same(*both(method, n_iter=60))
    assert sum(compiled) > 40


@batches
@pytest.mark.parametrize("part", ["centre", "anchor"])
def test_a_state_that_was_put_together(part, b):
    """The lane's own arrays are those of another centre or another iteration before, and are not used."""
    method = own(UPDATES["proxy"], batch_size=b)
    first, other = (problem().run(method, n_iter=30, seed=seed) for seed in (0, 1))
    state = first.state._replace(
        method=first.state.method._replace(**{part: getattr(other.state.method, part)})
    )
    start = {"theta0": first.theta, "s0": first.s, "state": state, "seed": None, "sample_weight": None}
    assert_same(*both(method, n_iter=20, **start))
