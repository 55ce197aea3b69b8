"""``swiftem info``: what is in a model's file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from swiftem.cli.components import screen, show_components
from swiftem.cli.failures import one_sentence
from swiftem.cli.model_file import KINDS, names_of, open_mixture, read_header
from swiftem.data.table_columns import shortened

if TYPE_CHECKING:
    from swiftem.estimators import GaussianMixture

__all__ = ["info"]


def info(model: Path) -> None:
    """Print what the model is, how it was fitted, by which versions, and its components."""
    with one_sentence():
        header = read_header(model)
        mixture = open_mixture(model) if header["kind"] == "GaussianMixture" else None
        lines = {"kind": str(header["kind"])} | ({} if mixture is None else _of_mixture(mixture))
        lines["written by"] = _writer(header)
        console = screen()
        width = max(map(len, lines))
        for name, value in lines.items():
            console.print(f"{name:{width}}  {value}", soft_wrap=True)
        if mixture is None:
            console.print(
                "This version of swiftem info shows the components of Gaussian mixtures only.", soft_wrap=True
            )
        else:
            show_components(console, mixture, names_of(mixture))


def _of_mixture(mixture: GaussianMixture) -> dict[str, str]:
    names, d = names_of(mixture), mixture.n_features_in_
    lines = {
        "components": str(mixture.n_components),
        "covariance": KINDS[mixture.covariance_type],
        "columns": f"{d}: {shortened(names)}" if names else f"{d}, without names",
        "method": str(mixture.method_),
    }
    if len(mixture.history_):
        lines["passes"] = str(mixture.n_iter_)
        lines["converged"] = "yes" if mixture.converged_ else "no"
        lines["lower bound"] = f"{mixture.lower_bound_:.6f}"
    if mixture.stationarity_ == mixture.stationarity_:
        lines["stationarity"] = f"{mixture.stationarity_:.1e}"
    return lines


def _writer(header: dict[str, Any]) -> str:
    return f"swiftem {header.get('swiftem', '(unknown)')}, NumPy {header.get('numpy', '(unknown)')}"
