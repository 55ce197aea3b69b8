"""Nested values survive in a file, types and bits included, and nothing but them is read."""

import io
import math
import sys
from importlib import import_module
from typing import NamedTuple

import numpy as np
import pytest

from swiftem.core.state_file import (
    REGISTERED,
    find_type,
    read_tree,
    write_tree,
)

LABEL = "toy, format 3"


class Pair(NamedTuple):
    first: object
    second: object = None


def encode(value, what="value"):
    stream = io.BytesIO()
    write_tree(stream, LABEL, value, what)
    return stream.getvalue()


def decode(content):
    return read_tree(io.BytesIO(content), LABEL)[0]


VALUES = {
    "numbers": (1, -(2**80), 1.5, math.inf, True, None, "text µ\n"),
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
    assert found.flags.aligned


def test_memory_order_strides_and_nan_come_back():
    array = np.asfortranarray(np.full((3, 2), np.nan))
    found = decode(encode(array))
    assert found.flags.f_contiguous
    assert not found.flags.c_contiguous
    assert found.tobytes("A") == array.tobytes("A")
    every_second = np.arange(12.0).reshape(4, 3)[::2, 1:]
    np.testing.assert_array_equal(decode(encode(every_second)), every_second)


def test_values_that_cannot_be_saved_are_refused():
    class Local(NamedTuple):
        x: int

    for value in (object(), {1: 2}, {"set": {1}}, np.array([object()])):
        with pytest.raises(TypeError, match=r"^what record returns must .* to be saved, got .*\.$"):
            encode(value, "what record returns")
    with pytest.raises(TypeError, match=r"theta has the type .*Local.* at the top of a module"):
        encode((Local(1),), "theta")


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_registered_types_are_found_by_their_name(name):
    kind = find_type(name)
    assert kind.__name__ == name
    assert REGISTERED[name].startswith("swiftem.")
    assert kind is getattr(import_module(REGISTERED[name]), name)


@pytest.mark.parametrize("name", ["os:system", "builtins:tuple", "nowhere:Pair", "swiftem.result:Result", ""])
def test_other_types_are_neither_made_nor_imported(name):
    before = set(sys.modules)
    content = encode(Pair(1)).replace(f"{__name__}:Pair".encode(), name.encode())
    with pytest.raises(ValueError, match="hash is wrong"):
        decode(content)
    assert find_type(name) is None
    assert find_type("wsgiref.types:Anything") is None
    assert set(sys.modules) == before


def test_a_type_of_a_module_that_is_not_imported_is_named(monkeypatch):
    content = encode(Pair(1))
    monkeypatch.delitem(sys.modules, __name__)
    with pytest.raises(ImportError, match=r"^it has a '.*:Pair', which no imported module defines$"):
        decode(content)


def test_a_named_tuple_with_other_fields_is_refused(monkeypatch):
    content = encode(Pair(1, 2))

    class Other(NamedTuple):
        first: object
        third: object

    monkeypatch.setattr(sys.modules[__name__], "Pair", Other)
    with pytest.raises(ValueError, match="has other fields now"):
        decode(content)


def test_content_with_any_byte_changed_or_missing_is_refused():
    content = encode({"a": np.arange(3.0), "b": (1, "x")})
    for place in range(len(content)):
        for changed in (
            content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
            content[:place],
        ):
            with pytest.raises(ValueError, match=r"^.+$"):
                decode(changed)


def test_another_format_is_refused():
    for first in (b"toy, format 4", b"tie, format 3", b"toy, format 33"):
        with pytest.raises(ValueError, match="its first line is not 'toy, format 3'"):
            decode(encode(1).replace(LABEL.encode(), first))


def test_an_array_larger_than_the_file_is_refused_before_it_is_allocated():
    content = encode(np.zeros(2)).replace(b"[2]", b"[%d]" % 10**15)
    with pytest.raises(ValueError, match="it ends too early"):
        decode(content)


def test_structures_in_one_file_are_a_chain():
    stream = io.BytesIO()
    first = write_tree(stream, LABEL, [1])
    end = stream.tell()
    second = write_tree(stream, LABEL, [2], previous=first)
    stream.seek(0)
    assert read_tree(stream, LABEL) == ([1], first)
    assert read_tree(stream, LABEL, first) == ([2], second)
    stream.seek(end)
    with pytest.raises(ValueError, match="hash is wrong"):
        read_tree(stream, LABEL)
