"""``swiftem info``: the content of a model file."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from swiftem.cli.components import screen, show_components
from swiftem.cli.failures import one_sentence
from swiftem.cli.model_file import KINDS, MIXTURES, is_regression, names_of, open_model, read_header
from swiftem.cli.screen import Console
from swiftem.core.checks import shortened
from swiftem.show.numbers import mean_text, share_text

__all__ = ["info"]

WORDS = 8
"""Shown of a topic."""
Show = Callable[[Console, Any, bool], None]
"""Prints components or topics, the last argument whether all of them."""


def info(model: Path, full: bool = False) -> None:
    """Print the kind of model, how it was fitted, the versions that wrote it, and components or topics."""
    with one_sentence():
        from swiftem.fit.model_file import shown

        header = read_header(model)
        kind = shown(header["kind"])
        lines = {"kind": kind}
        show: Show | None = None
        if kind in SHOWN:
            facts, show = SHOWN[kind]
            fitted = open_model(model, kind)
            lines |= facts(fitted) | _of_fit(fitted)
        lines["written by"] = _writer(header)
        console = screen()
        width = max(map(len, lines))
        for name, value in lines.items():
            console.print(f"{name:{width}}  {value}", soft_wrap=True)
        if show is None:
            console.print("This version of swiftem knows no more of such models.", soft_wrap=True)
        else:
            show(console, fitted, full)


def _of_mixture(mixture: Any) -> dict[str, str]:
    names, d = names_of(mixture), mixture.n_features_in_
    is_gaussian = hasattr(mixture, "covariance_type")
    return {
        "components": str(mixture.n_components),
        **(
            {"covariance": KINDS[mixture.covariance_type]}
            if is_gaussian
            else {"family": mixture.family_.name}
            if not is_regression(mixture)
            else {"family": mixture.family, "response": mixture.response_name_ or "without a name"}
        ),
        "columns": f"{d}: {shortened(names)}" if names else f"{d}, without names",
    }


def _of_topics(model: Any) -> dict[str, str]:
    n_topics, n_words = model.components_.shape
    without = "" if names_of(model) else ", without names"
    return {"topics": str(n_topics), "words": f"{n_words}{without}"}


def _of_fit(model: Any) -> dict[str, str]:
    """Return the facts of the fit that the file has."""
    lines = {"method": str(model.method_)}
    if len(model.history_):
        lines["passes"] = str(model.n_iter_)
        lines["converged"] = "yes" if model.converged_ else "no"
        value = getattr(model, "log_likelihood_", None)
        if value is not None and isfinite(value):
            lines["log-likelihood"] = f"{mean_text(value)}, mean"
    distance = getattr(model, "stationarity_", None)
    if distance is not None and distance == distance:
        lines["stationarity"] = f"{distance:.1e}"
    return lines


def _show_components(console: Console, mixture: Any, full: bool) -> None:
    show_components(console, mixture, names_of(mixture), full)


def _show_topics(console: Console, model: Any, full: bool) -> None:
    """Print the most relevant words of the topics, the most prevalent topic first."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in ("topic", "share", "words"):
        table.add_column(head, justify="left" if head == "words" else "right")
    words, shares = model.top_words(n=WORDS), model.topic_prevalence()
    for k in model.sorted_topics():
        table.add_row(str(k), share_text(shares[k]), Text(" ".join(words[k])))
    console.print(table)


def _writer(header: dict[str, Any]) -> str:
    from swiftem.fit.model_file import shown

    return f"swiftem {shown(header.get('swiftem'))}, NumPy {shown(header.get('numpy'))}"


SHOWN: dict[str, tuple[Callable[[Any], dict[str, str]], Show]] = {
    **dict.fromkeys(MIXTURES, (_of_mixture, _show_components)),
    "PLSA": (_of_topics, _show_topics),
}
"""Of each kind of model: what there is to say, and the table."""
