"""Mixtures of tables: columns of text become codes, and ``family="auto"`` reads the types of columns."""

from __future__ import annotations

import logging
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from swiftem._checks import shown
from swiftem.data.rows.array_source import ArraySource
from swiftem.estimators.mixture.base import Read
from swiftem.estimators.mixture.estimator import MixtureEstimator
from swiftem.estimators.mixture.table.auto import auto_family, said_of
from swiftem.estimators.mixture.table.categories import Categories, coded, found_categories
from swiftem.estimators.mixture.table.columns import TEXT, TableColumn, replaced, table_columns
from swiftem.models.families import Blocks, Given, read_family

__all__ = ["AUTO", "TabularMixture"]

AUTO = "auto"
"""The value of ``family`` that lets the types of columns decide."""

log = logging.getLogger("swiftem")


class TabularMixture(MixtureEstimator):
    """What :class:`swiftem.Mixture` makes of the columns of a table before it reads numbers."""

    family: Given
    categories_: Categories

    def _read(
        self,
        X: Any,
        sample_weight: ArrayLike | None,
        *,
        reset: bool,
        least: int = 2,
        in_batches: bool = False,
    ) -> Read:
        X = self._as_codes(X, reset=reset)
        return super()._read(X, sample_weight, reset=reset, least=least, in_batches=in_batches)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return super()._rows(self._as_codes(X, reset=False))

    def _given_family(self) -> Given:
        """Return the family as given, or as chosen by the types of columns."""
        if not isinstance(self.family, str) or self.family != AUTO:
            return self.family
        chosen = self.__dict__.get("_chosen", getattr(self, "family_", None))
        if chosen is None:
            raise ValueError("family must be given if there are no data to choose it by, got 'auto'.")
        found: Given = chosen
        return found

    def _as_codes(self, X: Any, *, reset: bool) -> Any:
        """Return the table with codes in place of categories; ``reset`` finds the categories of a fit."""
        columns = table_columns(X.y if type(X) is ArraySource else X)
        if reset:
            self.__dict__.pop("categories_", None)
            self.__dict__.pop("_chosen", None)
            self._learn(X, columns)
        elif columns is not None and not hasattr(self, "categories_"):
            self._check_text(columns)
        categories = self.__dict__.get("categories_")
        if not categories:
            return X
        if columns is None:
            raise ValueError(
                "X must be a table in memory with the categories of the fit, as a data frame or an array, "
                f"got {shown(X)}."
            )
        codes = coded(columns, self._by_place(columns, categories))
        if type(X) is ArraySource:
            return ArraySource(replaced(X.y, codes), X.weight)
        return replaced(X, codes)

    def _by_place(self, columns: list[TableColumn], categories: Categories) -> dict[int, tuple[Any, ...]]:
        """Return categories by the place of their column, which an array has instead of its name."""
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
            if columns is None:
                raise ValueError(
                    "family='auto' must have a table in memory, whose columns have types (a data frame or an "
                    f"array), got {shown(X)}: give a family for each column."
                )
            chosen = auto_family(columns)
            log.info("family='auto': %s.", said_of(chosen))
            self._chosen = chosen
            wanted |= set(chosen.get("categorical", ()))
        elif columns is not None:
            self._check_text(columns)
        if wanted and columns is not None:
            self.categories_ = {
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
