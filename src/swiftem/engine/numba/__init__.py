"""Compiled hot loops; imported only if a run uses them."""

from swiftem.process import uninterrupted

with uninterrupted():
    import numba  # noqa: F401
