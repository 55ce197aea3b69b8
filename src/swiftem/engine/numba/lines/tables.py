"""Tables of words before and after a pass: rounded and padded, and the sums of pieces added.

Words of topics are (V, K) in float64, a table has V rows in whole cache lines (``memory.padded``).
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from swiftem.engine.numba.compile import lean
from swiftem.engine.numba.lines.numbers import add_row, read_topics, write_sums

__all__ = ["add_parts", "write_table"]


@lean
def write_table(values, least, table, first, last):
    """Write the rows ``first`` to ``last`` − 1 of ``values`` (V, K) to the table: zero up to ``least``."""
    for v in range(first, last):
        read_topics(table, values, v, least, table, v)


@lean
def add_parts(parts, number, before, factor, out, first, last):
    """Add the sums of pieces, for the words ``first`` to ``last`` − 1.

    Parameters
    ----------
    parts : padded ndarray
        The first ``number`` times V rows are sums of pieces, V for each; those of the first are overwritten.
    before, factor : ndarray, shape (V, K) or (0, K)
        The result is (before + sums)·factor; an array of no rows has no part in it.
    out : ndarray, shape (V, K)
        Written; may be ``before``.
    """
    for v in range(first, last):
        for i in range(1, number):
            add_row(parts, i * out.shape[0] + v, v)
        write_sums(parts, v, before, factor, out)
