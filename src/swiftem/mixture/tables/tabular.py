"""Mixtures of tables: columns of text become codes, and ``family="auto"`` reads the types of columns."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import in_numpy, shown, unmasked
from swiftem.data.array import ArraySource
from swiftem.data.as_source import kernels_of
from swiftem.fit.validated import allows_missing, refuse_table
from swiftem.fit.watch import VerboseLines
from swiftem.mixture.estimator import MixtureEstimator
from swiftem.mixture.families import Blocks, Family, Given, Params, read_family
from swiftem.mixture.tables.auto import auto_family, said_of
from swiftem.mixture.tables.categories import Categories, coded, decoded, found_categories
from swiftem.mixture.tables.columns import (
    BOOL,
    TEXT,
    TableColumn,
    is_frame,
    objects,
    replaced,
    table_columns,
)
from swiftem.mixture.tables.profile import (
    ColumnOf,
    columns_of,
    panel_of,
    profile_of,
    summary_of,
)
from swiftem.show.numbers import counted
from swiftem.show.table import Table

__all__ = ["AUTO", "TabularMixture", "chosen_places"]

AUTO = "auto"
"""The value of ``family`` that lets the types of columns decide."""
MOST_PANELS = 24
"""Panels of a plot, by default."""

log = logging.getLogger("swiftem")


class TabularMixture(VerboseLines, MixtureEstimator):
    """What :class:`swiftem.Mixture` makes of the columns of a table, and what it tells of them."""

    family: Given
    family_: Family
    params_: Params

    @property
    def categories_(self) -> Categories:
        """Categories of columns of codes, text or categories, by name or number of the column.

        The order is that of the levels in ``params_``. There is no such attribute without such columns.
        """
        family: Family | None = self.__dict__.get("family_")
        places = () if family is None else family.coded_columns(self.n_features_in_)
        texts = self._texts_by_place([TableColumn(j, TEXT, np.empty(0)) for j in range(self.n_features_in_)])
        if family is None or not places:
            raise AttributeError("categories_ is an attribute of models with columns of categories only.")
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        codes = dict(zip(places, family.level_codes(), strict=True))
        return {names[place]: texts.get(place, codes[place]) for place in sorted(places)}

    def _encoded(self, X: Any, sample_weight: ArrayLike | None = None, *, reset: bool) -> Any:
        return self._as_codes(X, reset=reset, sample_weight=sample_weight)

    def _given_family(self) -> Given:
        """Return the family as given, or as chosen by the types of columns."""
        if not isinstance(self.family, str) or self.family != AUTO:
            return self.family
        chosen = self.__dict__.get("_chosen", getattr(self, "family_", None))
        if chosen is None:
            raise ValueError("family must be given if there are no data to choose it by, got 'auto'.")
        found: Given = chosen
        return found

    def _as_codes(self, X: Any, *, reset: bool, sample_weight: Any = None) -> Any:
        """Return the table with codes in place of text; ``reset`` finds the categories of a fit.

        Columns of numbers that are objects, because cells are missing, become floats.
        """
        X = in_numpy(X) if kernels_of(self.device, X) is None else X
        X = unmasked(X) if allows_missing(self) else X
        refuse_table(X, takes_text=True)
        columns = table_columns(X.y if type(X) is ArraySource else X)
        if reset:
            self.__dict__.pop("_texts", None)
            self.__dict__.pop("_chosen", None)
            self._learn(X, None if columns is None else _weighted(columns, sample_weight))
        elif columns is not None:
            self._check_text(columns)
        categories = self.__dict__.get("_texts")
        numbers = objects(X, columns) if columns is not None and type(X) is not ArraySource else {}
        if not categories:
            return replaced(X, numbers) if numbers else X
        if columns is None:
            raise ValueError(
                "X must be a table in memory with the categories of the fit, as a data frame or an array, "
                f"got {shown(X)}."
            )
        codes = coded(columns, self._texts_by_place(columns), reset)
        if type(X) is ArraySource:
            return X.like(replaced(X.y, codes), X.weight)
        return replaced(X, numbers | codes)

    def impute(self, X: Any, random_state: Any = None) -> Any:
        """Return the table with missing cells filled in, categories as in the fit.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.
        random_state : int, RandomState or None
            None: cells have their mean given the observed ones, and columns of codes or categories the most
            likely level. Otherwise they are random draws, given the observed ones.

        Returns
        -------
        ndarray, shape (n, d), or data frame
            A data frame of pandas or polars, or a table of pyarrow, for one; objects if there is text.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> params = {"poisson": {"rates": [[1.0], [9.0]]}, "bernoulli": {"probabilities": [[0.0], [1.0]]}}
        >>> family = {"poisson": [0], "bernoulli": [1]}
        >>> mixture = swiftem.Mixture.from_parameters([0.5, 0.5], params, family=family, missing="ignore")
        >>> mixture.impute([[np.nan, 1.0], [1.0, np.nan]]).round(2)
        array([[9., 1.],
               [1., 0.]])
        >>> mixture.impute([[np.nan, 1.0]] * 3, random_state=0).shape
        (3, 2)
        """
        filled = super().impute(X, random_state)
        columns = table_columns(X)
        if columns is None or type(X) is ArraySource:
            return filled
        if is_frame(X):
            return replaced(X, dict(enumerate(filled.T)) | self._decoded(filled, columns))
        return self._with_texts(filled, columns)

    def _decoded(self, rows: NDArray[Any], columns: list[TableColumn]) -> dict[int, NDArray[Any]]:
        """Return the columns of text of rows (n, d) of codes, by place."""
        texts = self._texts_by_place(columns)
        return {place: decoded(rows[:, place], parts) for place, parts in texts.items()}

    def _with_texts(self, rows: NDArray[Any], columns: list[TableColumn]) -> NDArray[Any]:
        """Return rows (n, d) as given, or as objects if there are columns of text."""
        texts = self._decoded(rows, columns)
        if not texts:
            return rows
        found = rows.astype(object)
        for place, part in texts.items():
            found[:, place] = part
        return found

    def _texts_by_place(self, columns: list[TableColumn]) -> dict[int, tuple[Any, ...]]:
        """Return categories of text by the place of their column, which an array has instead of its name."""
        categories: Categories = self.__dict__.get("_texts", {})
        places = {column.name: place for place, column in enumerate(columns)}
        if not any(isinstance(name, str) for name in places):
            names = getattr(self, "feature_names_in_", ())
            places |= {str(name): place for place, name in enumerate(names) if place < len(columns)}
        return {
            name if isinstance(name, int) else places[name]: parts
            for name, parts in categories.items()
            if isinstance(name, int) or name in places
        }

    def _learn(self, X: Any, columns: list[TableColumn] | None) -> None:
        """Choose families by type if that is wanted, and find the categories of columns."""
        wanted = {column.name for column in columns or () if column.kind == TEXT}
        if isinstance(self.family, str) and self.family == AUTO:
            if columns is None or not (is_frame(X) or any(one.kind in (BOOL, TEXT) for one in columns)):
                raise ValueError(
                    "family must be given for data whose columns have no types, got 'auto' and "
                    f"{shown(X)}: name a family, such as 'poisson', or give a data frame."
                )
            chosen = auto_family(columns)
            log.info("family='auto': %s.", said_of(chosen))
            self._chosen = chosen
        elif columns is not None:
            self._check_text(columns)
        if wanted and columns is not None:
            self._texts = {
                column.name: found_categories(column) for column in columns if column.name in wanted
            }

    def _check_text(self, columns: list[TableColumn]) -> None:
        """Raise ValueError for text in columns of a family of numbers."""
        if not any(column.kind == TEXT for column in columns):
            return
        family = read_family(self._given_family())
        if isinstance(family, Blocks):
            names = [column.name for column in columns if isinstance(column.name, str)]
            family = family.named(names or None)
            kinds = {
                int(place): part
                for part, places in zip(family.families, family.columns, strict=True)
                for place in places
            }
        else:
            kinds = dict.fromkeys(range(len(columns)), family)
        for place, column in enumerate(columns):
            if column.kind == TEXT and place in kinds and not kinds[place].is_coded:
                raise ValueError(
                    f"X must have numbers in columns of family {kinds[place].name!r}, got text in column "
                    f"{shown(column.name)}: give it family 'categorical'."
                )

    def _columns(self) -> list[ColumnOf]:
        check_is_fitted(self)
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        names = names or [f"column {j}" for j in range(self.n_features_in_)]
        places = {name: j for j, name in enumerate(names)}
        categories = {
            places.get(name, name): parts for name, parts in getattr(self, "categories_", {}).items()
        }
        return columns_of(self.family_, self.params_, names, categories)

    @property
    def profile_(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Parameters by name of the column and of the parameter, arrays (M,) over the components.

        Categories have the probability of each level. ``pandas.DataFrame(mixture.profile_["age"])`` has a
        row for each component.

        Examples
        --------
        >>> import swiftem
        >>> params = {"rates": [[1.0, 9.0], [4.0, 2.0]]}
        >>> mixture = swiftem.Mixture.from_parameters([0.5, 0.5], params, family="poisson")
        >>> mixture.profile_["column 1"]
        {'rate': array([9., 2.])}
        """
        return {column.name: profile_of(column) for column in self._columns()}

    def summary(self) -> Table:
        """Return a table to print: a row for each column of the data, a column for each component.

        Numbers are means ± standard deviations, of the logarithms for a log-normal column; answers and
        categories are percentages; other families have their parameters by name.

        Examples
        --------
        >>> import swiftem
        >>> params = {"poisson": {"rates": [[1.0], [4.0]]}, "bernoulli": {"probabilities": [[0.1], [0.75]]}}
        >>> family = {"poisson": [0], "bernoulli": [1]}
        >>> swiftem.Mixture.from_parameters([0.25, 0.75], params, family=family).summary()
        Mixture of 2 components, poisson + bernoulli
        <BLANKLINE>
        column    family     component 0  component 1
        weight               25 %         75 %
        column 0  poisson    rate 1       rate 4
        column 1  bernoulli  10 %         75 %
        """
        columns = self._columns()
        count = counted(self.n_components, "component")
        return summary_of(self.weights_, columns, f"Mixture of {count}, {self.family_.name}")

    def plot(
        self, X: Any = None, columns: Sequence[int | str] | None = None, axes: Any = None
    ) -> NDArray[Any]:
        """Draw one panel per column: bars of probabilities, curves of densities, in colours of components.

        Columns that are not independent given the component, such as those of directions, have bars of
        their parameters.

        Parameters
        ----------
        X : array-like, shape (n, d), optional
            Rows in memory; columns of numbers and counts then have a histogram of them in grey.
        columns : sequence of int or str, optional
            Numbers or names of the columns to draw; by default the first 24.
        axes : array of matplotlib axes, optional
            One for each panel; by default those of a new figure.

        Returns
        -------
        ndarray of matplotlib axes
            ``[0].figure`` has ``savefig``.

        Examples
        --------
        >>> import swiftem
        >>> params = {"rates": [[1.0, 9.0], [4.0, 2.0]]}
        >>> mixture = swiftem.Mixture.from_parameters([0.5, 0.5], params, family="poisson")
        >>> [axes.get_title() for axes in mixture.plot()]
        ['column 0', 'column 1']
        """
        from swiftem.report.columns import draw_columns

        found = self._columns()
        chosen = chosen_places(columns, [column.name for column in found])
        source = None if X is None else self._source(X)
        rows = None if source is None else source.rows_in_memory
        if source is not None and rows is None:
            raise ValueError(f"X must be rows in memory to be drawn, got {shown(X)}.")
        data = [None if rows is None else rows[~np.isnan(rows[:, place]), place] for place in chosen]
        return draw_columns([panel_of(found[place]) for place in chosen], self.weights_, data, axes)


def _weighted(columns: list[TableColumn], sample_weight: Any) -> list[TableColumn]:
    """Return columns without the rows of weight zero, if there are valid weights."""
    try:
        kept = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64) > 0.0
    except (TypeError, ValueError):  # an error later says what is wrong
        return columns
    if kept is None or kept.all() or kept.shape != columns[0].values.shape:
        return columns
    return [column._replace(values=column.values[kept]) for column in columns]


def chosen_places(columns: Sequence[int | str] | None, names: list[str]) -> list[int]:
    """Return the numbers of the columns to draw: by default the first ones."""
    if columns is None:
        return list(range(min(len(names), MOST_PANELS)))
    return [place_of(part, names) for part in columns]


def place_of(column: Any, names: list[str]) -> int:
    """Return the number of a column given by number or name."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, Integral) and 0 <= int(column) < len(names):
        return int(column)
    raise ValueError(f"columns must be numbers below {len(names)}, or names of columns, got {shown(column)}.")
