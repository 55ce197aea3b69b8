"""The hot loops. ``reference`` holds the plain NumPy ones, which define what is correct."""

from swiftem._checks import check_choice

__all__ = ["KERNELS", "choose_kernels"]

KERNELS = ("auto", "reference")


def choose_kernels(kernels: str) -> str:
    """Return the name of the kernels that ``kernels`` means; ``"auto"`` takes the fastest there are.

    >>> choose_kernels("auto")
    'reference'
    """
    check_choice("kernels", kernels, KERNELS)
    return "reference"
