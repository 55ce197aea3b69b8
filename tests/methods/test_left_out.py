"""Fields of a method that were left out have the paper's values, and an estimator may choose others."""

import pickle

import pytest

from swiftem import methods, schedules
from swiftem.methods import METHODS


@pytest.mark.parametrize("name", [name for name in METHODS if name != "em"])
def test_what_is_left_out_is_the_papers_value_until_it_is_resolved(name):
    method = METHODS[name]()
    assert method.batch_size == 1
    assert (
        method.left_out == {"step_size", "batch_size", "memory_order", "memory_dtype"} & method.field_names()
    )
    assert method.resolved(batch_size=8).batch_size == 8


def test_what_is_given_stays():
    method = methods.FastIncrementalEM(batch_size=1, step_size=schedules.sample_size())
    assert method.left_out == {"memory_order", "memory_dtype"}
    found = method.resolved(batch_size=64, step_size=0.5, memory_dtype="float32")
    assert (found.batch_size, found.step_size, found.memory_dtype) == (1, schedules.sample_size(), "float32")
    assert not found.left_out


def test_wrapped_methods_are_resolved():
    found = methods.Averaged(methods.OnlineEM(step_size=0.1)).resolved(batch_size=16, step_size=0.5)
    assert (found.batch_size, found.method.batch_size, found.method.step_size) == (16, 16, 0.1)


def test_methods_are_equal_by_value_and_pickled_with_what_was_left_out():
    assert methods.IncrementalEM() == methods.IncrementalEM(batch_size=1)
    assert pickle.loads(pickle.dumps(methods.IncrementalEM())).left_out == {"batch_size", "memory_dtype"}


def test_the_default_step_is_the_papers():
    assert methods.OnlineEM().step_size == schedules.inverse(3, 10)
