"""``swiftem select``: mixtures of several sizes and kinds, compared by a criterion."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import typer

from swiftem.cli.failures import INTERRUPTED, one_sentence
from swiftem.cli.fit import family_option_of
from swiftem.cli.options import (
    FIT,
    MODEL,
    Choice,
    ColumnsOption,
    FamilyOption,
    MissingOption,
    ModelFileOption,
    ResponseOption,
    SeedOption,
    TablesArgument,
    WeightsOption,
    given,
    option,
    read_counts,
)
<<<<<<< HEAD
from swiftem.cli.out_file import not_the_same
from swiftem.cli.rows import Rows, family_of, read_rows, saved
from swiftem.cli.screen import MOST_ROWS, Console
from swiftem.show.numbers import counted
=======
from swiftem.core.files import replacing
from swiftem.core.process import clock
from swiftem.show.numbers import criterion_text, mean_text

if TYPE_CHECKING:
    from swiftem.fit.selection import Candidate, Selection
    from swiftem.topics.select import NumberOfTopics

__all__ = ["SelectRequest", "compare_topics", "select", "write_comparison"]

BAR = 24
"""Letters of the longest bar."""
>>>>>>> main


def select(
    context: typer.Context,
    tables: TablesArgument,
    columns: ColumnsOption = None,
    missing: MissingOption = None,
    weights: WeightsOption = None,
    response: ResponseOption = None,
    n_components: Annotated[
        str,
        option("--components", "-k", metavar="A:B", panel=MODEL, help="A range, or a list such as 2,4,8."),
    ] = "1:10",
    family: FamilyOption = None,
    covariance_types: Annotated[
        list[str] | None,
        option(
            "--covariance-type",
            metavar="KIND",
            panel=MODEL,
            help="Kind of the covariances; can be repeated.",
            show_default="all four",
        ),
    ] = None,
    criterion: Annotated[str, option(metavar="bic|aic|icl", panel=FIT)] = "bic",
    random_state: SeedOption = 0,
    out: ModelFileOption = None,
) -> None:
    """Find the number of components: fit several mixtures and compare them by a criterion.

    Ctrl-C ends the command and keeps the fits that are complete.
    """
    with one_sentence(context):
        not_the_same(out, *tables)
        counts = read_counts(n_components)
        wanted = family_option_of(family, response)
        choice = Choice.of(columns, missing, weights=weights, response=response)
        parameters = given(
            covariance_types=covariance_types or None,
            missing="ignore" if missing == "ignore" and response is None else None,
        )
<<<<<<< HEAD
        console = Console()
        with console.doing(f"Reading {tables[0]}"):
            rows = read_rows(tables, choice, None if response is not None else wanted, at_once=True)
        rows.check_enough(max(counts))
        if wanted is not None:
            parameters["family"] = family_of(wanted, rows)[0]
        sizes = f"{counts[0]} to {counts[-1]} components"
        if len(counts) == 1:
            sizes = counted(counts[0], "component")
        console.say(f"{rows.said}; {sizes}.")
        found = _select(console, rows, counts, criterion, random_state, parameters)
        rows.name(found.best)
        with saved(found.best, out):
            console.say(found.shown)
            console.say()
            console.say(found.best.summary().head(MOST_ROWS, "column"))
            console.say()
            if found.interrupted:
                console.say(f"Interrupted after {counted(len(found.table), 'fit')}.")
            if not found.ranking[0].converged:
                console.say("The best fit has not converged: fit it with a larger --max-iter.")
            if out is not None:
                console.say(f"Model: {out}")
        if found.interrupted:
            raise typer.Exit(INTERRUPTED)
=======
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
>>>>>>> main


def _select(
    console: Console,
    rows: Rows,
    counts: list[int],
    criterion: str,
    random_state: int,
    parameters: dict[str, Any],
) -> Any:
    """Return the selection; in a terminal a bar shows how many fits are done."""
    from sklearn.exceptions import ConvergenceWarning

    from swiftem import select as run_select
    from swiftem.fit.watch import progress_bar

    kinds = 1 if "family" in parameters else len(parameters.get("covariance_types", range(4)))
    with warnings.catch_warnings(), progress_bar(console) as bar:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        task = bar.add_task("Fitting", total=len(counts) * kinds)
        return run_select(
            rows.X,
            counts,
            criterion=criterion,
            sample_weight=rows.weights,
            y=rows.y,
            random_state=random_state,
            verbose=lambda line: bar.update(task, advance=1, description=line.partition(":")[0]),
            **parameters,
        )
<<<<<<< HEAD
=======


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
>>>>>>> main
