"""``swiftem fit --update``: a saved model goes on with the rows of new tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from swiftem.cli.components import screen, show_components
from swiftem.cli.failures import one_sentence, tell
from swiftem.cli.model_file import names_of, open_model, rows_for
from swiftem.cli.out_file import model_file

__all__ = ["update"]


def update(
    model: Path, tables: Sequence[Path], columns: Sequence[str] | None, weights: str | None, out: Path
) -> None:
    """Learn from the tables, one after another, and write the model; the old one stays till then."""
    with one_sentence():
        console = screen()
        mixture = open_model(model)
        model_file(out)
        names, began, n = names_of(mixture), perf_counter(), 0
        for table in tables:
            if names:
                mixture.feature_names_in_ = np.array(names, dtype=object)
            rows = rows_for(mixture, table, columns, weights)
            for note in rows.notes:
                tell(note)
            mixture.partial_fit(rows.values, sample_weight=rows.weights)
            n += len(rows.values)
            console.print(
                f"{table}: {len(rows.values):,} rows, mean log-likelihood {mixture.lower_bound_:.5f} "
                "before they were learnt from.",
                soft_wrap=True,
            )
        if names:
            mixture.feature_names_in_ = np.array(names, dtype=object)
        try:
            mixture.save(out.resolve())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise OSError(f"{out} cannot be written ({reason}).") from None
        show_components(console, mixture, names)
        console.print(f"Learnt from {n:,} rows in {perf_counter() - began:.1f} s.", soft_wrap=True)
        console.print(f"Model: {out}", soft_wrap=True)
