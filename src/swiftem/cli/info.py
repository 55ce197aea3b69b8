"""``swiftem info``: the content of a model file."""

from __future__ import annotations

from math import isfinite
from typing import Any

from swiftem.cli import options
from swiftem.cli.console import Console
from swiftem.cli.rows import check_model_file, is_regression, names_of, open_model
from swiftem.core.checks import shortened
from swiftem.show.numbers import mean_text


def info(model: options.Model) -> None:
    """Show the content of a model file."""
    from swiftem._load import KINDS
    from swiftem.fit.model_file import read_header, shown

    check_model_file(model, "swiftem fit makes a model of it")
    header = read_header(model)
    kind = shown(header["kind"])
    fitted = open_model(model) if kind in KINDS else None
    facts = {"kind": kind} | ({} if fitted is None else _of_model(fitted) | _of_fit(fitted))
    facts["written by"] = f"swiftem {shown(header.get('swiftem'))}, NumPy {shown(header.get('numpy'))}"
    console = Console()
    console.say_facts(facts)
    if fitted is None:
        console.say("Unknown kind of model: upgrade swiftem to see details.")
    else:
        console.say()
        console.say(fitted.summary())


def _of_model(model: Any) -> dict[str, str]:
    names, d = names_of(model), model.n_features_in_
    if not hasattr(model, "weights_"):
        without = "" if names else ", without names"
        return {"topics": str(model.n_components), "words": f"{d:,}{without}"}
    facts = {"components": str(model.n_components)}
    if hasattr(model, "covariance_type"):
        facts["covariance"] = model.covariance_type
    else:
        facts["family"] = model.family if is_regression(model) else model.family_.name
    if is_regression(model):
        facts["response"] = model.response_name_ or "without a name"
    return facts | {"columns": f"{d}: {shortened(names)}" if names else f"{d}, without names"}


def _of_fit(model: Any) -> dict[str, str]:
    """Return the facts of the fit that the file has."""
    facts = {"method": str(model.method_)}
    if len(model.history_):
        facts["passes"] = str(model.n_iter_)
        facts["converged"] = "yes" if model.converged_ else "no"
        value = getattr(model, "log_likelihood_", None)
        if value is not None and isfinite(value):
            facts["log-likelihood"] = f"{mean_text(value)}, mean"
    distance = getattr(model, "stationarity_", None)
    if distance is not None and distance == distance:
        facts["stationarity"] = f"{distance:.1e}"
    return facts
