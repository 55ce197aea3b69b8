"""``swiftem predict``: the component of each row of a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.cli.failures import one_sentence, tell
from swiftem.cli.model_file import open_model, rows_for
from swiftem.data.rows.table_columns import shortened
from swiftem.data.rows.write_table import write_csv, write_table

__all__ = ["predict"]


def predict(
    model: Path,
    table: Path,
    *,
    columns: Sequence[str] | None,
    proba: bool,
    log_likelihood: bool,
    out: Path | None,
) -> None:
    """Write label, log-likelihood and probabilities of each row, in order, to a file or standard output."""
    with one_sentence():
        mixture = open_model(model)
        rows = rows_for(mixture, table, columns, None)
        for note in rows.notes:
            tell(note)
        found: dict[str, NDArray[Any]] = {"label": mixture.predict(rows.values)}
        if log_likelihood:
            found["log_likelihood"] = mixture.score_samples(rows.values)
        if proba:
            shares = mixture.predict_proba(rows.values)
            found |= {f"probability_{m}": shares[:, m] for m in range(shares.shape[1])}
        if out is None:
            write_csv(sys.stdout, found)
            return
        try:
            write_table(out.resolve(), found)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise OSError(f"{out} cannot be written ({reason}).") from None
        counts = np.bincount(found["label"], minlength=mixture.n_components)
        each = shortened([str(count) for count in counts])
        tell(f"{out}: {len(rows.values):,} rows, by component {each}.")
