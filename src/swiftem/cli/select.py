"""``swiftem select``: mixtures of several sizes compared; and for ``topics``, several numbers of topics."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from swiftem.cli.choices import TopicsRequest
from swiftem.cli.components import screen, show_components, show_table
from swiftem.cli.cross_table import show_cross_table
from swiftem.cli.failures import INTERRUPTED, one_sentence, tell, writing
from swiftem.cli.out_file import write_table
from swiftem.cli.screen import Console
from swiftem.cli.table_options import TableChoice
from swiftem.cli.table_rows import (
    Rows,
    check_rows,
    check_text,
    chosen_family,
    numbered,
    read_rows,
    said_of,
    saved,
)
from swiftem.core.files import replacing
from swiftem.core.process import clock
from swiftem.show.numbers import criterion_text, mean_text

if TYPE_CHECKING:
    from swiftem.fit.selection import Candidate, Selection
    from swiftem.topics.select import NumberOfTopics

__all__ = ["SelectRequest", "compare_topics", "select", "write_comparison"]

BAR = 24
"""Letters of the longest bar."""


@dataclass(frozen=True)
class SelectRequest:
    """Arguments of the command: files, columns, numbers of components, and output files, if any."""

    tables: Sequence[Path]
    choice: TableChoice
    counts: Sequence[int]
    criterion: str
    parameters: dict[str, Any]
    picture: Path | None
    out: Path | None


def select(request: SelectRequest) -> int:
    """Read, fit, show the comparison and the best mixture; return the exit code, 130 after Ctrl-C."""
    with one_sentence():
        console = screen()
        family = request.parameters["family"]
        is_response = request.choice.response is not None
        rows = read_rows(request.tables, request.choice, family=None if is_response else family, at_once=True)
        for note in rows.notes:
            tell(note)
        check_rows(request.tables, request.choice, rows, max(request.counts))
        counts = (
            f"{request.counts[0]} to {request.counts[-1]}" if len(request.counts) > 1 else request.counts[0]
        )
        console.print(f"{said_of(request.tables, rows)}; {counts} components.", soft_wrap=True)
        found = _select(request, rows, console)
        mixture = found.best
        mixture.log_likelihood_ = found.ranking[0].log_likelihood
        if is_response:
            mixture.response_name_ = rows.response
        mixture._layout = rows.layout
        with saved(mixture, rows.names, request.out):
            mixture.__dict__.pop("feature_names_in_", None)
            _show(console, found)
            show_components(console, mixture, rows.names)
            if rows.labels is not None and request.choice.label is not None:
                labels = mixture.predict_class(*rows.data) if is_response else mixture.predict(rows.X)
                show_cross_table(
                    console, labels, rows.labels, mixture.n_components, request.choice.label, rows.weights
                )
                console.print()
            for line in _summary(request, found):
                console.print(line, soft_wrap=True)
            if request.picture is not None:
                with writing(request.picture), replacing(request.picture) as file:
                    found.plot().figure.savefig(file, format=request.picture.suffix[1:].lower())
                console.print(f"Picture: {request.picture}", soft_wrap=True)
    return INTERRUPTED if found.interrupted else 0


def _select(request: SelectRequest, rows: Rows, console: Console) -> Selection[Any, Candidate]:
    """Return the selection; in a terminal each fit is shown when it ends."""
    from sklearn.exceptions import ConvergenceWarning

    from swiftem import select as run_select

    parameters = request.parameters
    if rows.y is None:
        parameters = parameters | {"family": chosen_family(parameters["family"], rows)}
    if isinstance(parameters["family"], dict):
        parameters = parameters | {"family": numbered(parameters["family"], rows)}
        check_text(parameters["family"], rows, rows.names)
    status = console.status("Fitting") if console.is_terminal else None
    with warnings.catch_warnings(), status or nullcontext():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table and the summary say it
        return run_select(
            rows.X,
            request.counts,
            criterion=request.criterion,
            sample_weight=rows.weights,
            y=rows.y,
            verbose=False if status is None else lambda line: status.update(Text(f"Fitted {line}")),
            **parameters,
        )


def _show(console: Console, found: Selection[Any, Candidate]) -> None:
    """Print the criterion by number of components and kind, with a bar for the lowest of each row."""
    value = {row.key: row.value for row in found.table if not row.failed}
    kinds = list(dict.fromkeys(row.covariance_type for row in found.table))
    counts = sorted({row.n_components for row in found.table})
    best = found.ranking[0]
    lowest = {
        count: min((value[kind, count] for kind in kinds if (kind, count) in value), default=float("nan"))
        for count in counts
    }
    highest = max(height for height in lowest.values() if isfinite(height))
    scale = BAR / (highest - best.value) if highest > best.value else 0.0
    bar = "█" if console.encoding.startswith("utf") else "#"
    columns = [("components", [str(count) for count in counts])]
    for kind in kinds:
        cells = [
            criterion_text(value[kind, count]) if (kind, count) in value else "failed" for count in counts
        ]
        columns.append((kind, cells))
    bars = [
        "best"
        if count == best.n_components
        else bar * max(1, round(scale * (lowest[count] - best.value)))
        if isfinite(lowest[count])
        else ""
        for count in counts
    ]
    show_table(console, [*columns, ("", bars)], fixed=1 + len(kinds), what="column")


def _summary(request: SelectRequest, found: Selection[Any, Candidate]) -> list[str]:
    best = found.ranking[0]
    words = "1 component" if best.n_components == 1 else f"{best.n_components} components"
    kind = (
        f"{best.covariance_type} covariances"
        if hasattr(found.best, "covariance_type")
        else best.covariance_type
    )
    lines = [f"{found.criterion} is lowest for {words}, {kind}: {criterion_text(best.value)}."]
    lines[0] += f" Mean log-likelihood {mean_text(best.log_likelihood)}, {best.passes} passes."
    tried = sorted({row.n_components for row in found.table})
    if found.interrupted:
        lines.append(f"Interrupted after {len(found.table)} fits: this is what was complete.")
    elif len(tried) > 1 and best.n_components == tried[-1]:
        lines.append("That is the most components that were tried: more may be better (--components).")
    if not best.converged:
        lines.append("That fit has not converged: raise --max-passes or --tol.")
    failed = [row for row in found.table if row.failed]
    if failed:
        lines.append(f"{len(failed)} of {len(found.table)} fits failed. {failed[0].failed}")
    if request.out is not None:
        lines.append(f"Model: {request.out}")
    return lines


def compare_topics(
    request: TopicsRequest, numbers: Sequence[int], counts: Any, console: Console
) -> tuple[Selection[Any, NumberOfTopics], float]:
    """Return the comparison of several numbers of topics, and the seconds of all fits."""
    from swiftem import select_topics

    began = clock()
    with console.status("comparing numbers of topics") as status:
        found = select_topics(
            counts,
            numbers,
            random_state=request.seed,
            **request.fit_options(),
            verbose=(lambda line: status.update(Text(line))) if console.is_terminal else False,
        )
    return found, clock() - began


def write_comparison(found: Selection[Any, NumberOfTopics], folder: Path, ending: str) -> list[Path]:
    """Write the table of the numbers of topics, and the picture if matplotlib is installed."""
    files = [folder / f"numbers_of_topics{ending}"]
    rows = found.table
    write_table(files[0], {name: np.array([getattr(row, name) for row in rows]) for name in rows[0]._fields})
    if find_spec("matplotlib"):
        files.append(folder / "numbers_of_topics.svg")
        with replacing(files[1]) as file:
            found.plot()[0].figure.savefig(file, format="svg")
    return files
