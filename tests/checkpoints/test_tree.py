"""Nested values survive as bytes, types and bits included, and nothing but them is read."""

import json
import math
from typing import NamedTuple

import numpy as np
import pytest

from swiftem.checkpoints.tree import LENGTH, UnknownTypeError, decode, encode
from swiftem.result import Iterate


class Pair(NamedTuple):
    first: object
    second: object = None


VALUES = {
    "numbers": (1, -(2**80), 1.5, math.inf, True, None, "text µ"),
    "a float to the last bit": 0.1 + 0.2,
    "nested": {"a": [1, (2.0, [])], "b": {}},
    "named tuples": Pair(Pair(1, (2,)), [Pair(3)]),
    "NumPy numbers": (np.float32(0.1), np.int64(3), np.bool_(True)),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_values_come_back(value):
    found = decode(encode(value))
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u4", "?", ">f8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (4, 5)])
def test_arrays_come_back(dtype, shape):
    array = np.random.default_rng(0).normal(size=shape).astype(dtype)
    (found,) = decode(encode((array,)))
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.writeable


def test_memory_order_and_nan_come_back():
    array = np.asfortranarray(np.full((3, 2), np.nan))
    found = decode(encode(array))
    assert found.flags.f_contiguous
    assert not found.flags.c_contiguous
    assert found.tobytes("A") == array.tobytes("A")


def test_iterates_come_back():
    iterate = Iterate(3, 1.5, Pair(np.ones(2)), np.zeros(1), 2)
    found = decode(encode([iterate]))[0]
    assert isinstance(found, Iterate)
    assert (found.k, found.passes, found.rejected, found.theta.first.tolist()) == (3, 1.5, 2, [1.0, 1.0])


def test_what_cannot_be_kept_is_refused():
    class Local(NamedTuple):
        x: int

    for value in (object(), {1: 2}, {"set": {1}}, np.array([object()])):
        with pytest.raises(TypeError, match=r"^what record returns must .* in a checkpoint, got .*\.$"):
            encode(value, "what record returns")
    with pytest.raises(
        TypeError, match=r"theta has the type .*Local.* must be defined at the top of a module"
    ):
        encode((Local(1),), "theta")


@pytest.mark.parametrize("name", ["os:system", "builtins:tuple", "nowhere:Pair", "swiftem.result:Result", ""])
def test_no_type_but_a_named_tuple_is_made(name):
    text = json.dumps({"named": name, "fields": {"a": 1}}).encode()
    with pytest.raises(UnknownTypeError, match=r"^it has a '.*', which no imported module defines$"):
        decode(LENGTH.pack(len(text)) + text)


def test_a_named_tuple_with_other_fields_is_refused():
    content = encode(Pair(1, 2)).replace(b"second", b"sekond")
    with pytest.raises(ValueError, match="has other fields now"):
        decode(content)


def test_bytes_that_end_too_early_are_refused():
    with pytest.raises(ValueError, match="too early"):
        decode(encode({"a": np.arange(9)})[:-1])


def test_an_array_larger_than_its_bytes_is_refused():
    content = encode(np.zeros(2)).replace(b"(2,), ", b"(9,), ")
    with pytest.raises(ValueError, match="another size than stated"):
        decode(content)
