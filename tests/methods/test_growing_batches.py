"""Batches that grow: the rule, that runs resume, and what it gains."""

import helpers
import numpy as np
import pytest

import swiftem
from swiftem import methods
from swiftem.data.draws import SeededDraws, read_seed


def growing(**options):
    return methods.OnlineEM(**{"step_size": 0.1, "batch_size": 2, "largest_batch": 64} | options)


def test_the_rule():
    """By hand: windows of 50 proxies of the first b draws, compared with the mean of the window before."""
    problem = helpers.mixture(200)
    result = problem.run(growing(), n_iter=600, seed=4, record_every=1, kernels="reference")
    source = swiftem.data.ArraySource(problem.data)
    e_step = swiftem.engine.expectation.Expectation(problem.model.bind(source), source)
    drawn = SeededDraws(read_seed(4), 200, 64, ["iid"])
    b, past, seen, sizes, evaluations = 2, result.path[0].s, [], [], 200
    s = result.path[0].s
    for k in range(600):
        sizes.append(b)
        batch = e_step.take(drawn.at(k)[0][:b])
        proxy = e_step.mean(batch, e_step.rows(batch, result.path[k].theta))
        s = s + 0.1 * (proxy - s)
        helpers.assert_close(result.path[k + 1].s, s)
        evaluations += b
        seen.append(proxy)
        if len(seen) == 50:
            mean = np.mean(seen, axis=0)
            noise = 2 * np.var(seen, axis=0, ddof=1).sum() / 50
            if np.sum((mean - past) ** 2) <= 2 * noise:
                b = min(2 * b, 64)
            past, seen = mean, []
    assert sizes[0] == 2
    assert sizes[-1] == 64
    assert result.state.method.size[0] == b
    assert result.passes == evaluations / 200


@pytest.mark.parametrize("make", ["mixture", "topics"])
@pytest.mark.parametrize("order", ["iid", "shuffled"])
def test_a_run_in_parts_is_the_same_to_the_last_bit(make, order, tmp_path):
    problem, method = helpers.PROBLEMS[make](80), growing(order=order)
    whole = problem.run(method, n_iter=230, seed=1)
    first = problem.run(method, n_iter=77, seed=1)
    start = {"theta0": first.theta, "s0": first.s, "state": first.state}
    helpers.assert_same_result(problem.run(method, n_iter=153, **start), whole)
    options = {"seed": 1, "checkpoint": tmp_path / "run", "resume": "auto"}
    problem.run(method, n_iter=120, **options)
    helpers.assert_same_result(problem.run(method, n_iter=230, **options), whole)


def test_while_the_proxy_changes_the_batch_stays():
    """θ moves by itself, far more than the noise: nothing grows; without the move everything does."""
    state = growing().init((), np.zeros(3), None)
    still = state
    rng = np.random.default_rng(0)
    for k in range(500):
        noise = rng.normal(size=3)
        state = methods.online_em._grown(state, noise + 0.1 * k, 64)
        still = methods.online_em._grown(still, noise, 64)
    assert state.size[0] == 2
    assert still.size[0] == 64


def test_less_noise_than_constant_batches_of_as_many_evaluations():
    problem = helpers.mixture(2000, d=2, M=2, spread=3.0)
    optimum = problem.run(methods.EM(), n_iter=500).s
    errors = {"grows": [], "stays": []}
    for seed in range(4):
        ended = problem.run(growing(batch_size=5, largest_batch=500), n_iter=700, seed=seed)
        same = methods.OnlineEM(0.1, batch_size=5)
        n_iter = int((ended.passes - 1) * 2000 / 5)
        constant = problem.run(same, n_iter=n_iter, seed=seed)
        errors["grows"].append(np.linalg.norm(ended.s - optimum))
        errors["stays"].append(np.linalg.norm(constant.s - optimum))
    assert np.mean(errors["grows"]) < 0.3 * np.mean(errors["stays"])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"batch_size": 10, "largest_batch": 5}, "largest_batch must be at least 10, got 5"),
        ({"average": "suffix"}, "average must be None if largest_batch is given"),
    ],
)
def test_bad_sizes(options, match):
    with pytest.raises(ValueError, match=match):
        growing(**options)


def test_estimators_refuse_it():
    y = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.raises(ValueError, match="method must have batches of one size here, got a largest_batch"):
        swiftem.GaussianMixture(2, method=growing(), random_state=0).fit(y)
