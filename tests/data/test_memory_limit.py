import pytest

from swiftem.core.problem import in_words, read_memory_limit


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, None), (1, 1), ("500MB", 500 * 10**6), ("1.5 GiB", 3 * 2**29), ("20kb", 20_000), ("7", 7),
     ("2g", 2 * 10**9), ("4GB", 4 * 10**9), ("1 TB", 10**12)],
)  # fmt: skip
def test_sizes_as_people_write_them(given, expected):
    assert read_memory_limit(given) == expected


@pytest.mark.parametrize("given", ["", "MB", "-5MB", "5 apples", "1,5GB", "0", 0, -1, "nan"])
def test_a_wrong_text_is_refused(given):
    with pytest.raises(ValueError, match=r"memory_limit must be a number of bytes, a text such as .* got "):
        read_memory_limit(given)


@pytest.mark.parametrize("given", [True, 1.5, [1]])
def test_another_type_is_refused(given):
    with pytest.raises(TypeError, match="memory_limit must be"):
        read_memory_limit(given)


def test_words_are_rounded_up():
    assert [in_words(size) for size in (1, 10**6, 10**6 + 1, 10**9, 1.01e9)] == [
        "1 MB", "1 MB", "2 MB", "1 GB", "1.1 GB",
    ]  # fmt: skip
