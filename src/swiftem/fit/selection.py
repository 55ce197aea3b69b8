"""The result of a selection among fits with several numbers of components or topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from numbers import Integral
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from swiftem.core.checks import check_int, shown
from swiftem.show.table import Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

Estimator = TypeVar("Estimator")
Row = TypeVar("Row")


class Candidate(NamedTuple):
    """One fit of :func:`swiftem.select`.

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
        Free parameters of the mixture; 0 if the fit failed.
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
    value: float = nan
    bic: float = nan
    aic: float = nan
    icl: float = nan
    log_likelihood: float = nan
    n_parameters: int = 0
    converged: bool = False
    passes: int = 0
    seconds: float = 0.0
    start: str = ""
    failed: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """Covariance type and number of components."""
        return self.covariance_type, self.n_components


@dataclass(frozen=True, repr=False)
class Selection(Generic[Estimator, Row]):
    """The fits that a selection compared; ``print`` shows the best of them.

    Attributes
    ----------
    best : estimator
        The chosen fit.
    table : list of NamedTuple
        All fits; :meth:`to_pandas` makes columns of their fields.
    ranking : list of NamedTuple
        The table from best to worst; failed fits are last.
    criterion : str
        Name of the criterion.
    reason : str
        Why the first fit of the ranking was chosen.
    models : dict
        The fitted estimators, by kind of model and number of components.
    interrupted : bool
        Whether Ctrl-C ended the selection early.
    shown : Table
        The best fits, as printed.
    curves : dict
        What :meth:`plot` draws: by label, kind of model and number of components.
    """

    best: Estimator
    table: Sequence[Row]
    ranking: Sequence[Row]
    criterion: str
    reason: str
    models: Mapping[tuple[str, int], Estimator]
    interrupted: bool
    shown: Table
    curves: Mapping[str, Mapping[str, Mapping[int, float]]]

    def plot(self, axes: Any = None) -> Any:
        """Draw the criteria against the number of components, with the chosen fit marked; return the axes.

        Parameters
        ----------
        axes : matplotlib axes, optional
            One for each criterion; by default of a new figure.
        """
        from swiftem.show.drawing import draw_criterion, new_figure

        (chosen,) = (key for key, model in self.models.items() if model is self.best)
        if axes is None:
            axes = new_figure(1, len(self.curves)).subplots(1, len(self.curves))
        panels = [axes] if len(self.curves) == 1 else axes
        for panel, (label, values) in zip(panels, self.curves.items(), strict=True):
            draw_criterion(values, chosen, label, panel)
        return axes

    def to_pandas(self) -> Any:
        """Return all fits as a data frame of pandas."""
        import pandas as pd

        return pd.DataFrame(list(self.table))

    def __repr__(self) -> str:
        return repr(self.shown)

    def _repr_html_(self) -> str:
        return self.shown._repr_html_()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        return self.shown.__rich_console__(console, options)


def read_numbers(n_components: Any) -> list[int]:
    """Return numbers of components, one or several, sorted and without repetitions.

    >>> read_numbers([3, 1, 3]), read_numbers(2)
    ([1, 3], [2])
    """
    given = n_components if np.iterable(n_components) else [n_components]
    numbers = sorted({check_int("n_components", number, minimum=1) for number in given})
    if not numbers:
        raise ValueError("n_components must have at least one number, got none.")
    return numbers


def teller(verbose: Any) -> Callable[[str], None]:
    """Return what is called with the line of each fit: a function as given, or one that prints if true."""
    if callable(verbose):
        return verbose  # type: ignore[no-any-return]
    if not isinstance(verbose, bool | np.bool_ | Integral):
        raise TypeError(f"verbose must be True, False or a function, got {shown(verbose)}.")
    return partial(print, flush=True) if verbose else lambda line: None
