import helpers
import numpy as np
import pytest
from helpers import (
    NAMES,
    PROBLEMS,
    STOCHASTIC,
    assert_close,
    assert_identical,
    assert_same_result,
    make_method,
)

from swiftem import methods, schedules
from swiftem.core.draws import read_seed, seeded_draws

VARYING = schedules.power(0.5, 0.4)

both_models = pytest.mark.parametrize("make", list(PROBLEMS.values()), ids=list(PROBLEMS))
every_method = pytest.mark.parametrize("name", NAMES)


def expected_passes(name, k, n, b, m):
    """E-step evaluations over n after k iterations, the first pass included."""
    renewals = len(range(0, k, m))
    return {
        "em": 1 + k,
        "sem": 1 + k * b / n,
        "iem": 1 + k * b / n,
        "sem-vr": 1 + renewals + 2 * k * b / n,
        "spider": 1 + renewals + 2 * k * b / n,
        "fiem": 1 + 2 * k * b / n,
        "opt-fiem": 1 + 2 * k * b / n,
    }[name]


@both_models
@every_method
@pytest.mark.parametrize(("b", "epoch_length"), [(1, None), (3, None), (3, 5)])
def test_path_holds_k_and_passes(make, name, b, epoch_length):
    problem = make(20)
    method = make_method(name, batch_size=b, epoch_length=epoch_length)
    result = problem.run(method, n_iter=60, record_every=7, seed=0)
    m = epoch_length or -(-20 // b)
    assert [k for k, _, _ in result.path] == list(range(0, 60, 7))
    assert [passes for _, passes, _ in result.path] == pytest.approx(
        [expected_passes(name, k, 20, b, m) for k in range(0, 60, 7)], rel=1e-14
    )
    assert result.passes == pytest.approx(expected_passes(name, 60, 20, b, m), rel=1e-14)
    assert (result.n_iter, result.status) == (60, "completed")


def test_nothing_is_recorded_unless_asked():
    assert helpers.mixture().run(methods.OnlineEM(), n_iter=100, seed=0).path == []


@every_method
@pytest.mark.parametrize("asks", ["record", "callback"])
def test_default_interval_is_an_epoch(name, asks):
    seen = []
    helpers.mixture(10).run(
        make_method(name, batch_size=4), n_iter=8, seed=0, **{asks: lambda iterate: seen.append(iterate.k)}
    )
    assert seen == (list(range(9)) if name == "em" else [0, 3, 6])


def test_record_decides_what_path_keeps():
    def record(iterate):
        return float(iterate.theta.means[0, 0]) if iterate.k % 2 else None

    problem = helpers.mixture()
    result = problem.run(methods.OnlineEM(), n_iter=6, record_every=1, record=record, seed=0)
    everything = problem.run(methods.OnlineEM(), n_iter=6, record_every=1, seed=0).path
    assert result.path == [everything[k].theta.means[0, 0] for k in (1, 3, 5)]


def test_an_iterate_is_recorded_before_the_callback_sees_it():
    events = []
    helpers.mixture().run(
        methods.EM(),
        n_iter=2,
        record=lambda iterate: events.append(("record", iterate.k)),
        callback=lambda iterate: events.append(("callback", iterate.k)),
    )
    assert events == [(what, k) for k in range(3) for what in ("record", "callback")]


@pytest.mark.parametrize(
    ("stop_at", "status", "path"),
    [
        (0, "stopped", [0]),
        (6, "stopped", [0, 3, 6]),
        (9, "completed", [0, 3, 6, 9]),
        (7, "completed", [0, 3, 6, 9]),
    ],
)
def test_callback_stops_the_run(stop_at, status, path):
    result = helpers.mixture().run(
        methods.OnlineEM(), n_iter=9, record_every=3, callback=lambda iterate: iterate.k == stop_at, seed=0
    )
    assert result.status == status
    assert result.n_iter == path[-1]
    assert [iterate.k for iterate in result.path] == path


# Where a run starts


@both_models
def test_theta0_is_drawn_from_the_seed(make):
    problem = make(20)._replace(theta0=None)
    starts = [
        problem.run(make_method(name), n_iter=3, seed=seed, record_every=1).path[0].theta
        for name in ("em", "fiem") for seed in (0, 1)
    ]  # fmt: skip
    assert_identical(starts[0], starts[2])  # whatever the method
    assert any((one != other).any() for one, other in zip(starts[0], starts[1], strict=True))


@both_models
@every_method
def test_s0_beside_theta0(make, name):
    """s0 is ŝ^(0), and E-steps start at θ^(0): ŝ^(1) = (1 − γ) s0 + γ S^(1)."""
    problem = make(20)
    draws = helpers.random_draws(name, 20, 1)
    s0 = problem.run(methods.EM(), n_iter=2).s
    start = problem.run(make_method(name, step_size=0.25), n_iter=1, s0=s0, draws=draws, record_every=1)
    assert_identical((start.path[0].theta, start.path[0].s), (problem.theta0, s0))
    proxy = problem.run(make_method(name, step_size=1.0), n_iter=1, draws=draws).s
    gamma = {"em": 1.0, "iem": 1.0}.get(name, 0.25)
    assert_close(start.s, (1 - gamma) * s0 + gamma * proxy)


@both_models
@every_method
def test_s0_spares_the_first_pass_where_nothing_is_remembered(make, name):
    problem = make(20)
    s0 = problem.run(methods.EM(), n_iter=2).s
    passes = problem.run(make_method(name), n_iter=0, s0=s0).passes
    assert passes == (1.0 if methods.METHODS[name].remembers else 0.0)


@both_models
@every_method
def test_s0_without_theta0_starts_at_its_m_step(make, name):
    problem = make(20)
    before = problem.run(methods.EM(), n_iter=3)
    after = problem.run(make_method(name), theta0=None, s0=before.s, n_iter=1, seed=0, record_every=1)
    assert_identical((after.path[0].theta, after.path[0].s), (before.theta, before.s))


def test_s0_is_copied():
    problem = helpers.mixture()
    s0 = problem.run(methods.EM(), n_iter=1).s
    result = problem.run(methods.OnlineEM(), n_iter=0, s0=s0)
    assert not np.shares_memory(result.s, s0)


# Draws


@both_models
@every_method
@pytest.mark.parametrize("b", [1, 3])
def test_same_seed_same_trajectory(make, name, b):
    """Whatever is recorded, whoever looks, and however long the run is."""
    problem = make(20)
    method = make_method(name, batch_size=b, step_size=VARYING)
    plain = problem.run(method, n_iter=30, seed=5)
    watched = problem.run(method, n_iter=30, seed=5, record_every=4, callback=lambda iterate: False)
    assert_same_result(watched, plain)
    reference = problem.run(method, n_iter=30, seed=5, kernels="reference")
    helpers.assert_close(plain.s, reference.s)
    assert (plain.passes, plain.rejected) == (reference.passes, reference.rejected)
    longer = problem.run(method, n_iter=50, seed=5, record_every=30)
    assert_identical((longer.path[1].theta, longer.path[1].s), (plain.theta, plain.s))
    other = problem.run(method, n_iter=30, seed=6)
    assert (name == "em") == bool((other.s == plain.s).all())


@both_models
@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize("memory_order", ["iid", "shuffled"])
def test_seeded_draws_given_explicitly(make, name, memory_order):
    problem = make(20)
    method = make_method(name, batch_size=3, step_size=VARYING, memory_order=memory_order)
    drawn = seeded_draws(read_seed(7), n=20, batch_size=3, orders=method.orders)
    streams = [np.array(stream) for stream in zip(*(drawn.at(k) for k in range(40)), strict=True)]
    draws = tuple(streams) if name in helpers.IN_PAIRS else streams[0]
    given = problem.run(method, n_iter=40, draws=draws)
    seeded = problem.run(method, n_iter=40, seed=7)
    assert_identical(
        (given.theta, given.s, given.state.method), (seeded.theta, seeded.s, seeded.state.method)
    )


@pytest.mark.parametrize("shape", [(30,), (30, 1)])
def test_shapes_of_given_draws(shape):
    problem = helpers.mixture()
    draws = np.arange(30)
    result = problem.run(methods.IncrementalEM(), n_iter=30, draws=draws.reshape(shape))
    assert_identical(result.s, problem.run(methods.IncrementalEM(), n_iter=30, draws=draws.tolist()).s)


@pytest.mark.parametrize(
    "seed", [3, np.int64(3), np.random.SeedSequence(3)], ids=lambda seed: type(seed).__name__
)
def test_kinds_of_seeds(seed):
    problem = helpers.mixture()
    expected = problem.run(methods.OnlineEM(), n_iter=30, seed=3)
    assert_identical(problem.run(methods.OnlineEM(), n_iter=30, seed=seed).s, expected.s)


def test_a_generator_as_seed():
    problem = helpers.mixture()
    rng = np.random.default_rng(3)
    first, second = (problem.run(methods.OnlineEM(), n_iter=30, seed=rng).s for _ in range(2))
    assert (first != second).any()
    assert_identical(problem.run(methods.OnlineEM(), n_iter=30, seed=np.random.default_rng(3)).s, first)


def test_no_seed_draws_anew():
    problem = helpers.mixture()
    first, second = (problem.run(methods.OnlineEM(), n_iter=30).s for _ in range(2))
    assert (first != second).any()


# Step sizes


@pytest.mark.parametrize("name", ["sem-vr", "fiem"])
def test_sized_schedules_are_resolved_with_n_and_b(name):
    problem = helpers.mixture(27)
    sized = problem.run(
        make_method(name, step_size=schedules.sample_size(0.5), batch_size=3), n_iter=9, seed=0
    )
    plain = problem.run(make_method(name, step_size=0.5 * 3 / 9, batch_size=3), n_iter=9, seed=0)
    assert_close(sized.s, plain.s)
