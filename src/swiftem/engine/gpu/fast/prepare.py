"""The choice of kernels in Triton for rows of a kind and size."""

from __future__ import annotations

from typing import cast

import torch

from swiftem.engine.gpu.fast.far import FarRows
from swiftem.engine.gpu.fast.full import FullRows
from swiftem.engine.gpu.fast.rows import DenseRows, FastRows, dense_columns, power
from swiftem.engine.gpu.fast.two_passes import TwoPasses, wide_columns
from swiftem.engine.gpu.fast.white import WhiteRows
from swiftem.engine.gpu.passes import Rows
from swiftem.engine.small_expectation import DIAG, FULL

__all__ = ["fast_rows", "full_rows"]

MOST_COMPONENTS, MOST_FEATURES, MOST_WHITENED = 128, 128, 256
"""Largest sizes of one pass: components, features, and numbers of all whitened differences of a row."""
LEAST_ROWS = 1 << 16
"""With fewer rows the passes in float64 take no longer than the preparation."""
WIDEST = 128
"""Most columns of two passes."""
HOPPER = 9, 0
"""The compute capability that kernels in Gluon are for."""


def fast_rows(rows: Rows, code: int, n_components: int) -> FastRows | None:
    """Return prepared rows, or None if there are no kernels for rows of this kind and size."""
    n_columns = rows.y.shape[1]
    if len(rows) < LEAST_ROWS or not _is_single(rows):
        return None
    if code == FULL:
        found = full_rows(rows, n_components)
        is_wide = found is None and n_columns <= WIDEST
        kind = _or_hopper(WhiteRows, rows, n_columns > 64)
        return kind(rows, code, n_components) if is_wide else found
    features = dense_columns(n_columns, code) * (1 + (code == DIAG))
    if n_components <= MOST_COMPONENTS and features <= MOST_FEATURES:
        is_middle = 32 < n_components <= 64
        return _or_hopper(DenseRows, rows, is_middle)(rows, code, n_components)
    if wide_columns(n_columns, code) > WIDEST:
        return None
    is_large = n_components > 128 and wide_columns(n_columns, code) >= 64
    two = _or_hopper(TwoPasses, rows, is_large)(rows, code, n_components)
    two.far = FarRows(cast(TwoPasses, two))
    return two


def full_rows(rows: Rows, n_components: int) -> FullRows | None:
    """Return rows prepared for full covariances, or None if these are too large."""
    padded = power(rows.y.shape[1], 2)
    fits = padded <= 16 and padded * power(n_components, 16) <= MOST_WHITENED
    return FullRows(rows, FULL, n_components) if fits and _is_single(rows) else None


def _is_single(rows: Rows) -> bool:
    """Tell whether rows are float32, and no column is constant."""
    return bool(rows.y.dtype == torch.float32 and (rows.reach > 0.0).all())


def _or_hopper(kind: type[FastRows], rows: Rows, is_large: bool) -> type[FastRows]:
    """Return the class of rows for kernels in Gluon, if they run here and sizes are large; or ``kind``."""
    if not is_large or rows.y.device.type != "cuda":
        return kind
    if torch.cuda.get_device_capability(rows.y.device) != HOPPER:
        return kind
    try:
        from swiftem.engine.gpu.fast import hopper
    except ImportError:  # Gluon is experimental
        return kind
    found: dict[type[FastRows], type[FastRows]] = {
        DenseRows: hopper.HopperDense, TwoPasses: hopper.HopperPasses, WhiteRows: hopper.HopperWhite
    }  # fmt: skip
    return found[kind]
