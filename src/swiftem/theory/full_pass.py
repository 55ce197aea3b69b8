"""One streamed pass: mean statistics in the paper's coordinates and mean loss together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from swiftem._typing import Array, Theta
from swiftem.data.source import Batch, Source
from swiftem.engine.expectation import BLOCK
from swiftem.theory.family import Family

__all__ = ["Pass", "e_steps", "full_pass"]


class Pass(NamedTuple):
    r"""``s`` (q,): :math:`\bar s(\theta)`; ``objective``: :math:`\overline{\mathcal L}(\theta)`."""

    s: Array
    objective: float


def e_steps(family: Family, source: Source, theta: Theta) -> Iterator[tuple[Batch, Array, Array]]:
    """Yield batch, rows (b, R) and log-likelihood (b,), block by block."""
    for batch in source.blocks(BLOCK):
        yield batch, *family.bound.posterior(batch, theta)


def full_pass(family: Family, source: Source, theta: Theta) -> Pass:
    r"""Return :math:`\bar s(\theta)`, equation (definition-overline-bss), and (em_motivate), in one pass.

    Each sample is read once, a block at a time: a source that can only be read in order will do.
    """
    s: Array | None = None
    loss = 0.0
    for batch, rows, log_likelihood in e_steps(family, source, theta):
        part = family.statistics(batch, rows, batch.weight / source.total_weight)
        s = part if s is None else s + part
        loss -= float(batch.weight @ log_likelihood)
    assert s is not None, "a source has at least one sample"
    return Pass(s, family.bound.penalty(theta) + loss / source.total_weight)
