import pickle

import numpy as np
import pytest

from swiftem import schedules

ALL = [
    schedules.constant(0.3),
    schedules.inverse(3, 10),
    schedules.power(0.9, 0.6),
    schedules.sample_size(2.0),
]


@pytest.mark.parametrize("k", [1, 2, 17, 10**9])
def test_formulas(k):
    assert schedules.constant(0.3)(k) == 0.3
    assert schedules.inverse(3, 10)(k) == pytest.approx(3 / (k + 10))
    assert schedules.inverse(0.5)(k) == pytest.approx(0.5 / k)
    assert schedules.power(0.9, 0.6)(k) == pytest.approx(0.9 / k**0.6)


@pytest.mark.parametrize(
    ("schedule", "n", "b", "step"),
    [
        (schedules.sample_size(), 1_000, 1, 0.01),
        (schedules.sample_size(0.5), 1_000, 4, 0.02),
        (schedules.sample_size(10, exponent=1), 1_000, 2, 0.02),
        (schedules.sample_size(), 1_000, 100, 1.0),
        (schedules.sample_size(3.0), 1, 1, 1.0),
    ],
)
def test_sample_size(schedule, n, b, step):
    resolved = schedules.resolve(schedule, n, b)
    assert [resolved(k) for k in (1, 50)] == pytest.approx([step, step])


def test_resolve():
    assert schedules.resolve(0.25, 10, 1) == schedules.constant(0.25)
    assert schedules.resolve(1, 10, 1)(3) == 1.0
    own = lambda k: 1 / k  # noqa: E731
    assert schedules.resolve(own, 10, 1) is own


@pytest.mark.parametrize("schedule", ALL, ids=repr)
def test_print_compare_and_pickle(schedule):
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert eval(repr(schedule), vars(schedules)) == schedule


BAD = {
    "constant 0": (lambda: schedules.constant(0), "step_size must lie in (0, 1]"),
    "constant -1": (lambda: schedules.constant(-1.0), "step_size must lie in (0, 1]"),
    "constant 1.5": (lambda: schedules.constant(1.5), "step_size must lie in (0, 1]"),
    "constant nan": (lambda: schedules.constant(np.nan), "step_size must lie in (0, 1]"),
    "constant text": (lambda: schedules.constant("a"), "step_size must be a number"),
    "constant bool": (lambda: schedules.constant(True), "step_size must be a number"),
    "inverse above 1": (lambda: schedules.inverse(3, 1), "step_size must lie in (0, 1], got 1.5 at k = 1"),
    "inverse 0": (lambda: schedules.inverse(0, 1), "step_size must lie in (0, 1], got 0.0 at k = 1"),
    "inverse -1": (lambda: schedules.inverse(-1, 5), "a must be finite and at least 0"),
    "inverse b": (lambda: schedules.inverse(1, -0.5), "b must be finite and at least 0"),
    "inverse nan": (lambda: schedules.inverse(1, np.nan), "b must be finite and at least 0"),
    "inverse text": (lambda: schedules.inverse("1", 2), "a must be a number"),
    "power c": (lambda: schedules.power(2.0, 0.5), "step_size must lie in (0, 1], got 2.0 at k = 1"),
    "power a": (lambda: schedules.power(0.5, -0.5), "a must be finite and at least 0"),
    "sample_size c": (lambda: schedules.sample_size(0), "c must be positive"),
    "sample_size -1": (lambda: schedules.sample_size(-1), "c must be"),
    "sample_size exponent": (
        lambda: schedules.sample_size(1, exponent=-1),
        "exponent must be finite and at least 0",
    ),
}


@pytest.mark.parametrize(("make", "message"), list(BAD.values()), ids=list(BAD))
def test_bad_values_are_refused_at_once(make, message):
    with pytest.raises((TypeError, ValueError)) as error:
        make()
    assert str(error.value).startswith(message)
