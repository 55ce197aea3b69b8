"""The fused lane of a user's compiled functions goes where the plain NumPy lane goes."""

from dataclasses import replace

import helpers
import numba
import numpy as np
import own_method
import pytest
from compiled_models import compare, in_domain, own, some
from helpers import COMPILED, assert_close, leaves

every_method = pytest.mark.parametrize("name", [*COMPILED, "spider"])


WEIGHT = np.linspace(0.0, 2.0, 31)[::-1]
"""Read in steps of −1, and one is dropped."""


@every_method
@pytest.mark.parametrize("b", [1, 3, 40])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_batches(name, b, weight):
    draws = helpers.random_draws(name, 31 if weight is None else 30, 60, b)
    compare(own(draws=draws, sample_weight=weight), some(name, batch_size=b))


@pytest.mark.parametrize("update", own_method.UPDATES.values(), ids=own_method.UPDATES)
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("step", [0.2, 1.0])
def test_any_update(update, b, step):
    problem = own(sample_weight=np.linspace(0.5, 2.0, 31), guard=in_domain)
    compare(problem, own_method.own(update, batch_size=b, step_size=step), n_iter=80)


# Every type is a loop to compile.
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("NamedTuple", name) for name in COMPILED),
        *((kind, name) for kind in ("array", "float", "views") for name in ("sem-vr", "fiem", "spider")),
        ("theta a view", "spider"),
    ],
)
def test_kinds_of_theta(name, kind):
    compare(own(kind), some(name, batch_size=2))


@every_method
@pytest.mark.parametrize("n", [1, 2])
def test_few_samples(name, n):
    compare(own(n=n), some(name, batch_size=3))


@pytest.mark.parametrize("name", ["iem", "fiem"])
def test_memory_of_float32(name):
    compare(own(), some(name, batch_size=3, memory_dtype="float32"), n_iter=300)


@pytest.mark.parametrize(("name", "b"), [("sem-vr", 1), ("fiem", 1), ("fiem", 3)])
def test_rejected_steps(name, b):
    method = some(name, batch_size=b, step_size=0.9, epoch_length=150)
    expected = compare(own(guard=in_domain), method, n_iter=300)
    assert 0 < expected.rejected < 300


def test_default_domain_rejects_what_is_not_finite():
    @numba.njit(error_model="numpy")
    def e_step(y, theta):
        return 1 / (y.reshape(-1, 1) - 1), y

    problem = own("float")
    problem.model = replace(problem.model, expected_statistics=e_step)
    problem.y = np.array([1.0, 2.0, 3.0])
    method = some("sem", step_size=0.5)
    results = [
        problem.run(method, kernels, draws=[0, 1, 2, 0, 1], n_iter=5, s0=[0.0])
        for kernels in ("auto", "reference")
    ]
    assert [r.rejected for r in results] == [2, 2]
    assert_close(results[0].s, results[1].s)


DATA = {
    "two columns": lambda: own(d=2),
    "float32": lambda: own("float", dtype=np.float32),
    "unaligned": lambda: replace(own(), y=unaligned(own().y)),
}
# Each kind of data is another loop and other functions to compile.
MORE_DATA = {
    "columns of another array": lambda: replace(own(d=2), y=own(d=4).y[:, ::2]),
    "integers": lambda: own(dtype=np.int32),
}


def unaligned(y):
    rows = np.zeros(len(y), dtype=[("letter", "S1"), ("value", np.float64)])
    rows["value"] = y
    return rows["value"]


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=name) for name, case in DATA.items()),
        *(pytest.param(case, id=name, marks=pytest.mark.slow) for name, case in MORE_DATA.items()),
    ],
)
def test_kinds_of_data(case):
    compare(case(), some("fiem", batch_size=2))


def test_data_that_are_read_only(tmp_path):
    np.save(tmp_path / "y.npy", own().y)
    compare(replace(own(), y=np.load(tmp_path / "y.npy", mmap_mode="r")), some("fiem"))


@every_method
@pytest.mark.parametrize("split", [1, 11, 37])
def test_split_runs(name, split):
    """Split anywhere, the run is the same to the last bit; across lanes, to rounding."""
    problem, method = own("NamedTuple", guard=in_domain), some(name, batch_size=2, step_size=0.5)
    whole = problem.run(method)
    for lanes in (("auto", "auto"), ("auto", "reference"), ("reference", "auto")):
        first = problem.run(method, lanes[0], n_iter=split)
        start = {"theta0": first.theta, "s0": first.s, "state": first.state, "seed": None}
        second = problem.run(method, lanes[1], n_iter=60 - split, **start)
        if "reference" not in lanes:
            helpers.assert_same_result(second, whole)
        everything = [leaves((r.theta, r.s, r.state.method)) for r in (second, whole)]
        for one, other in zip(*everything, strict=True):
            assert_close(one, other)
