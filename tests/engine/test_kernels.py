import pytest

from swiftem.problem import KERNELS, check_kernels


@pytest.mark.parametrize("name", KERNELS)
def test_names_are_taken(name):
    check_kernels(name)


def test_others_are_refused():
    with pytest.raises(ValueError, match="kernels must be 'auto' or 'reference'"):
        check_kernels("gpu")
