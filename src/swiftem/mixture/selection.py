"""The result of :func:`swiftem.select`: a table of fits, the best one, and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from swiftem.mixture.covariance import COVARIANCES

if TYPE_CHECKING:
    from swiftem.mixture.gaussian_mixture import GaussianMixture
    from swiftem.mixture.mixture import Mixture

__all__ = ["Candidate", "Selection", "components"]

SHOWN = 10
"""Rows of the ranking in a printed selection."""
HEAD = ("log-likelihood", "parameters", "passes", "converged")
GOOD = "background: rgba(0, 114, 178, .15); font-weight: bold"


class Candidate(NamedTuple):
    """One fit. ``pandas.DataFrame(selection.table)`` makes columns of these fields.

    Attributes
    ----------
    covariance_type : str
        Covariance type, or name of the family.
    n_components : int
        Number of components.
    value : float
        The selection criterion; lower is better; NaN if the fit failed.
    bic, aic, icl : float
        The named criteria.
    log_likelihood : float
        Mean over the rows, weighted.
    n_parameters : int
        Free parameters of the mixture.
    converged : bool
        Whether the fit converged.
    passes : int
        Passes of the fit that was kept.
    seconds : float
        Time of all fits of this row.
    start : str
        Start of the kept fit: ``"fresh"``; ``"split"``, the fit with fewer components, one of them split; or
        ``"doubled"``, that same fit, if nothing was better.
    failed : str
        Why there is no fit; empty if there is one.
    """

    covariance_type: str
    n_components: int
    value: float
    bic: float
    aic: float
    icl: float
    log_likelihood: float
    n_parameters: int
    converged: bool
    passes: int
    seconds: float
    start: str
    failed: str

    @property
    def key(self) -> tuple[str, int]:
        """Covariance type and number of components."""
        return self.covariance_type, self.n_components


@dataclass(frozen=True, repr=False)
class Selection:
    """The fits compared by :func:`swiftem.select`.

    Attributes
    ----------
    best : GaussianMixture or Mixture
        The fitted mixture with the lowest criterion.
    table : list of Candidate
        All fits, by covariance type in the given order, then by number of components.
    criterion : str
        Name of the criterion.
    models : dict of (str, int) to GaussianMixture or Mixture
        Every fitted mixture by (covariance_type, n_components).
    interrupted : bool
        Whether Ctrl-C ended the search early.
    """

    best: GaussianMixture | Mixture
    table: list[Candidate]
    criterion: str
    models: dict[tuple[str, int], GaussianMixture | Mixture]
    interrupted: bool = False

    @property
    def ranking(self) -> list[Candidate]:
        """The table from best to worst; failed fits are last."""
        return sorted(self.table, key=lambda row: row.value if isfinite(row.value) else inf)

    def plot(self, axes: Any = None) -> Any:
        """Plot the criterion against the number of components, with the best marked; return the axes."""
        from swiftem.report.mixture import draw_criterion

        values: dict[str, dict[int, float]] = {}
        for row in self.table:
            if not row.failed:
                values.setdefault(row.covariance_type, {})[row.n_components] = row.value
        return draw_criterion(values, self.ranking[0].key, self.criterion, axes)

    @property
    def _is_gaussian(self) -> bool:
        return self.table[0].covariance_type in COVARIANCES

    def _headline(self) -> str:
        first = self.ranking[0]
        what = "covariances" if self._is_gaussian else "mixtures"
        said = f"{first.covariance_type} {what}, {components(first.n_components)}"
        failed = sum(bool(row.failed) for row in self.table)
        fits = f"{len(self.table)} fits" + (f", {failed} of them failed" if failed else "")
        return f"{self.criterion} is lowest for {said} ({fits}{'; interrupted' if self.interrupted else ''})"

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the best rows of the ranking, as text."""
        ranking = [row for row in self.ranking if not row.failed][:SHOWN]
        kind = "covariances" if self._is_gaussian else "family"
        head = ["", kind, "components", self.criterion, "above the best", *HEAD]
        largest = max(abs(row.value) for row in ranking)
        decimals = min(max(6 - len(f"{largest:.0f}"), 1), 5)
        rows = [
            [
                str(place),
                row.covariance_type,
                str(row.n_components),
                f"{row.value:.{decimals}f}",
                f"{row.value - ranking[0].value:.{decimals}f}",
                f"{row.log_likelihood:.5f}",
                str(row.n_parameters),
                str(row.passes),
                "yes" if row.converged else "no",
            ]
            for place, row in enumerate(ranking, start=1)
        ]
        return head, rows

    def _more(self) -> list[str]:
        """Return notes on what the ten rows do not show."""
        failed = [row for row in self.table if row.failed]
        left = len(self.table) - len(failed) - SHOWN
        said = [f"{left} more in .ranking."] if left > 0 else []
        counts = {row.n_components for row in self.table}
        if len(counts) > 1 and self.ranking[0].n_components == max(counts):
            said.append("The best fit has the largest number of components tried: more may be better.")
        for reason, rows in _by_reason(failed).items():
            said.append(
                f"Failed: {', '.join(f'{row.covariance_type} {row.n_components}' for row in rows)}. {reason}"
            )
        return said

    def __repr__(self) -> str:
        head, rows = self._cells()
        widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(width) if column == 1 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in (head, *rows)
        ]
        return "\n".join([self._headline(), *lines, *self._more()])

    def _repr_html_(self) -> str:
        """Return the same as an HTML table for notebooks."""
        head, rows = self._cells()
        top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            (f'<tr style="{GOOD}">' if number == 0 else "<tr>")
            + "".join(f"<td>{escape(cell)}</td>" for cell in row)
            + "</tr>"
            for number, row in enumerate(rows)
        )
        more = "".join(f"<p>{escape(line)}</p>" for line in self._more())
        return (
            f"<div><p><b>{escape(self._headline())}</b></p>"
            f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
        )


def components(count: int) -> str:
    """Return "1 component", "2 components" and so on."""
    return f"{count} component{'s' if count > 1 else ''}"


def _by_reason(failed: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    reasons: dict[str, list[Candidate]] = {}
    for row in failed:
        reasons.setdefault(row.failed, []).append(row)
    return reasons
