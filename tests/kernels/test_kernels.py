import pytest

from swiftem.kernels import KERNELS, choose_kernels


@pytest.mark.parametrize("name", KERNELS)
def test_every_name_is_one_that_can_be_chosen(name):
    assert choose_kernels(name) in KERNELS


def test_auto_chooses_others():
    assert choose_kernels("auto") != "auto"


def test_reference_is_reference():
    assert choose_kernels("reference") == "reference"
