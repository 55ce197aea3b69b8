"""The hot loops: ``reference`` in plain NumPy, which defines what is correct, and ``numba``, compiled."""

from swiftem._checks import check_choice

__all__ = ["KERNELS", "check_kernels"]

KERNELS = ("auto", "reference")


def check_kernels(kernels: str) -> None:
    """Refuse what names no kernels.

    >>> check_kernels("reference")
    """
    check_choice("kernels", kernels, KERNELS)
