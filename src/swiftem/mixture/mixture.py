"""``swiftem.Mixture``: mixtures of counts, answers, categories, numbers, mixed columns and other families."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import as_floats, check_int, check_simplex, in_numpy, shown, unmasked
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.data.as_source import kernels_of
from swiftem.fit.model_file import PLAIN, ModelContent, to_header
from swiftem.fit.parameters import NONE, NOT_NEGATIVE, Allowed, instance_of, number
from swiftem.fit.validated import refuse_table
from swiftem.methods import Method
from swiftem.mixture.estimator import MixtureEstimator
from swiftem.mixture.families import Blocks, Family, Given, read_family
from swiftem.mixture.families.observed import complete
from swiftem.mixture.file import file_types, flat, read_params
from swiftem.mixture.model import MixtureModel, MixtureTheta
from swiftem.mixture.tables import columns as tables
from swiftem.mixture.tables.columns import AUTO, Categories, TableColumn
from swiftem.mixture.tables.profile import (
    ColumnOf,
    chosen_places,
    columns_of,
    panel_of,
    profile_of,
    summary_of,
)
from swiftem.show.numbers import counted
from swiftem.show.table import Table

log = logging.getLogger("swiftem")


@dataclass(eq=False, repr=False)
class Mixture(MixtureEstimator):
    """Mixture of any family of components, with the interface of :class:`swiftem.GaussianMixture`.

    Parameters
    ----------
    n_components : int
        Number of components.
    family : str, Family or dict
        Distribution of the components: a name in ``swiftem.families.FAMILIES``, "poisson" or "gamma" for
        example, with options in parentheses (``"binomial(trials=10)"``), or a family object. "auto" chooses
        by the types of columns, which a data frame has and an array of numbers has not; a line of the log
        (``swiftem``) and ``family_`` have its choice, and the rule is in
        :mod:`swiftem.mixture.tables.columns`. For columns of several kinds, a dict of
        these with the columns of each, by name if the input has column names, else by number:
        ``{"poisson": ["visits"], "bernoulli": ["yes", "member"]}``. Every column must be in exactly one
        block; blocks are independent given the component.
    tol : float
        A fit has converged if em gains less than this in the mean log-likelihood per pass, and all further
        passes together would gain less than eight times this: see :class:`swiftem.GaussianMixture`.
    smoothing : float
        Size of a conjugate prior, in rows per component; its features are the mean of all data. Zero gives
        the maximum likelihood estimate.
    max_iter : int
        Maximum number of passes over the data: E-step evaluations divided by n.
    n_init : int
        Number of candidates in the race, or of fits, as in :class:`swiftem.GaussianMixture`.
    init_params : {"race", "kmeans", "k-means++", "random", "random_from_data"}, callable or array-like
        How a fit starts, as in :class:`swiftem.GaussianMixture`.
    weights_init : array-like, shape (M,), optional
        Weights to start from.
    params_init : dict of array-like, optional
        Parameters to start from, in the form of ``params_``.
    random_state : int, RandomState or None
        For starts and draws.
    warm_start : bool
        Whether ``fit`` starts from the last result; ``partial_fit`` always does.
    verbose : int
        Whether to show progress: a bar in a terminal, otherwise a line every ten passes; 2 adds times and
        gains.
    method : str or Method
        How to fit, as in :class:`swiftem.GaussianMixture`.
    concentration : float, optional
        α ≥ 1 of a symmetric Dirichlet prior on the weights.
    missing : {"error", "ignore"}
        Missing cells (NaN, None, masked, pandas' NA). "error": they raise ValueError. "ignore": they are
        missing at random and count for nothing; all methods of this class take them. Columns of student-t and
        von Mises-Fisher must have none.
    device
        As in :class:`swiftem.GaussianMixture`.

    Attributes
    ----------
    weights_ : ndarray, shape (M,)
        Mixing weights.
    params_ : dict of ndarray
        Parameters of the components by name, for instance ``rates`` (M, d) for "poisson",
        ``probabilities`` (M, d) for "bernoulli". If ``family`` is a dict, a dict of such dicts by family,
        with the columns in the order given: ``params_["poisson"]["rates"]``.
    family_ : Family
        The family; fields that depend on the data, such as ``levels``, are set.
    categories_ : dict of tuple
        Categories of columns of codes, text or categories, by name or number of the column, in the order of
        their probabilities, of the rows of positive weight. Only if there are such columns.
    converged_, n_iter_, lower_bound_, lower_bounds_, method_, history_, stationarity_, log_likelihood_, \
n_features_in_, feature_names_in_
        As in :class:`swiftem.GaussianMixture`; the bounds are minus the penalised objective.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> X = np.array([[0, 7], [1, 9], [0, 8], [6, 1], [5, 0], [7, 2]])
    >>> mixture = swiftem.Mixture(2, family="poisson", random_state=0).fit(X)
    >>> few, many = np.argsort(mixture.params_["rates"][:, 0])
    >>> mixture.params_["rates"][[few, many]].round(1)
    array([[0.3, 8. ],
           [6. , 1. ]])
    >>> bool((mixture.predict([[0, 5], [9, 1]]) == [few, many]).all())
    True

    Columns of two kinds:

    >>> rows = np.column_stack([X[:, 0], X[:, 0] > 3])
    >>> mixed = swiftem.Mixture(2, family={"poisson": [0], "bernoulli": [1]}, random_state=0).fit(rows)
    >>> np.sort(mixed.params_["bernoulli"]["probabilities"], axis=0).round()
    array([[0.],
           [1.]])
    """

    _allowed: ClassVar[dict[str, Sequence[Allowed]]] = {
        **MixtureEstimator._allowed,
        "family": [instance_of(str, Family, Mapping)],
        "smoothing": [NOT_NEGATIVE],
        "concentration": [NONE, number(1.0)],
        "params_init": [NONE, instance_of(dict)],
    }

    n_components: int = 1
    _: KW_ONLY
    family: Given = AUTO
    tol: float = 1e-3
    smoothing: float = 1e-3
    max_iter: int = 100
    n_init: int = 1
    init_params: Any = "race"
    weights_init: ArrayLike | None = None
    params_init: Mapping[str, ArrayLike] | None = None
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0
    method: str | Method = "auto"
    concentration: float | None = None
    missing: str = "error"
    device: str = "auto"

    @classmethod
    def from_parameters(
        cls, weights: ArrayLike, params: Mapping[str, Any], *, family: Given, **parameters: Any
    ) -> Self:
        """Return a fitted mixture with these parameters.

        Parameters
        ----------
        weights : array-like, shape (M,)
            Mixing weights, summing to 1.
        params : dict of array-like
            Parameters of the components, in the form of ``params_``.
        family : str, Family or dict
            The family.
        **parameters
            Other parameters of the estimator.

        Examples
        --------
        >>> import swiftem
        >>> given = {"rates": [[1.0, 9.0], [9.0, 1.0]]}
        >>> swiftem.Mixture.from_parameters([0.5, 0.5], given, family="poisson").predict([[0, 3]])
        array([0])
        """
        made = cls(len(as_floats("weights", weights, shape=(None,))), family=family, **parameters)
        model = made._model()
        theta = model.theta(weights=weights, **params)
        if isinstance(model.kind, Blocks):
            d = model.kind.d
            model.kind.check_columns(d)
        else:
            d = next(iter(theta.params.values())).shape[1]
        model.width(d)  # a family that only data could complete has to say so
        made._become(theta, d, model)
        return made

    def _model(self, family: Family | None = None) -> MixtureModel:
        if family is None:
            family = read_family(self._given_family())
            if isinstance(family, Blocks):
                family = family.named(getattr(self, "feature_names_in_", None))
        return MixtureModel(
            self.n_components,
            family,
            smoothing=self.smoothing,
            concentration=self.concentration,
            missing=self.missing,
        )

    def _fitted_model(self) -> MixtureModel:
        if isinstance(self.family, str) and self.family == AUTO:
            return self._model(self.family_)
        now = read_family(self.family)
        if now.name != self.family_.name or _numbers(now) not in (None, _numbers(self.family_)):
            raise ValueError(
                f"family must be that of the fitted parameters, {self.family_.name!r}, got {now.name!r}: fit "
                "again, without warm_start."
            )
        return self._model(self.family_)

    def _check_parameters(self, X: Any, xp: Any = np) -> None:
        model = self._model()
        if not model.kind.needs_data:
            self._given_start(model, X.shape[1])

    def _given_start(self, model: MixtureModel, d: int) -> dict[str, Any]:
        given: dict[str, Any] = {}
        if self.weights_init is not None:
            given["weights"] = as_floats("weights_init", self.weights_init, shape=(self.n_components,)).copy()
            check_simplex("weights_init", given["weights"])
        if self.params_init is not None:
            names = set(model.kind.shapes(1, 1))
            if set(self.params_init) != names:
                raise ValueError(
                    f"params_init must have {', '.join(sorted(names))}, got {shown(list(self.params_init))}."
                )
            even = np.full(self.n_components, 1.0 / self.n_components)
            given["params"] = model.check_theta(even, self.params_init, d, "params_init: ").params
        return given

    def _middle(self) -> Array:
        return np.zeros(self._fitted_model().width(self.n_features_in_))

    def _theta(self, d: int | None = None) -> MixtureTheta:
        model, d = self._fitted_model(), self.n_features_in_ if d is None else d
        try:
            params = _converted(self.params_, np.float64)
            return model.check_theta(np.asarray(self.weights_, dtype=np.float64), params, d, "")
        except (ValueError, KeyError) as error:
            raise ValueError(
                f"The fitted parameters must be of {self.n_components} components of family "
                f"{model.kind.name!r} and {d} columns, but are not: fit again, without warm_start ({error})."
            ) from None

    def _set_theta(self, theta: Theta, dtype: Any, model: MixtureModel) -> None:
        with np.errstate(over="ignore", under="ignore"):
            weights = np.asarray(theta.weights, dtype=dtype)
            params = _converted(theta.params, dtype)
        if not all(np.isfinite(part).all() for part in (weights, *flat(params).values())):
            raise ValueError(
                f"X must have a scale at which {np.dtype(dtype).name} can hold the parameters: scale the "
                "columns, or pass float64."
            )
        self.weights_, self.params_, self.family_ = weights, params, complete(model.kind)

    def attributes_of(self, theta: Theta) -> dict[str, Any]:
        """Return the attributes for ``theta``, for callbacks."""
        return {"weights_": theta.weights, "params_": theta.params}

    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[Any]]:
        """Return random rows (n_samples, d) and the components (n_samples,) that they come from.

        Rows are objects if there are columns of text.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        """
        check_is_fitted(self)
        check_int("n_samples", n_samples, minimum=1)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        theta = self._theta()
        labels = np.sort(rng.choice(self.n_components, size=n_samples, p=theta.weights / theta.weights.sum()))
        bound = self._fitted().bind(ArraySource(np.zeros((1, self.n_features_in_))))
        rows = bound.draw(theta, labels, rng)
        return _with_texts(rows, tables.decoded(rows, self._texts_in(range(rows.shape[1])))), labels

    @property
    def categories_(self) -> Categories:
        """Categories of columns of codes, text or categories, by name or number of the column.

        The order is the same as in ``params_``. There is no such attribute without such columns.
        """
        family: Family | None = self.__dict__.get("family_")
        places = () if family is None else family.coded_columns(self.n_features_in_)
        if family is None or not places:
            raise AttributeError("categories_ is an attribute of models with columns of categories only.")
        texts = self._texts_in(range(self.n_features_in_))
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        codes = dict(zip(places, family.level_codes(), strict=True))
        return {names[place]: texts.get(place, codes[place]) for place in sorted(places)}

    def _texts_in(self, columns: Sequence[Any]) -> Categories:
        """Return the categories of text by place, of columns given by name or number."""
        return tables.of_places(
            self.__dict__.get("_texts", {}), columns, getattr(self, "feature_names_in_", ())
        )

    def _given_family(self) -> Given:
        """Return the family as given, or as chosen by the types of columns."""
        if self.family != AUTO:
            return self.family
        chosen: Given | None = self.__dict__.get("_chosen", self.__dict__.get("family_"))
        if chosen is None:
            raise ValueError("family must be given if there are no data to choose it by, got 'auto'.")
        return chosen

    def _encoded(self, X: Any, sample_weight: ArrayLike | None = None, *, reset: bool) -> Any:
        X = in_numpy(X) if kernels_of(self.device, X) is None else X
        X = unmasked(X) if self._allows_missing else X
        refuse_table(X, takes_text=True)
        columns = tables.table_columns(X.y if type(X) is ArraySource else X)
        if reset:
            self._learn_columns(X, columns and tables.with_positive_weight(columns, sample_weight))
        if columns is None:
            if "_texts" in self.__dict__:
                raise ValueError(
                    "X must be a table in memory with the categories of the fit, as a data frame or an "
                    f"array, got {shown(X)}."
                )
            return X
        if any(column.kind == tables.TEXT for column in columns):
            tables.check_text(columns, read_family(self._given_family()))
        return tables.encoded(X, columns, self._texts_in([column.name for column in columns]), of_fit=reset)

    def _learn_columns(self, X: Any, columns: list[TableColumn] | None) -> None:
        """Choose families by type if that is wanted, and find the categories of columns."""
        for name in ("_texts", "_chosen"):
            self.__dict__.pop(name, None)
        if self.family == AUTO:
            typed = {tables.BOOL, tables.TEXT} & {column.kind for column in columns or ()}
            if columns is None or not (typed or tables.is_frame(X)):
                raise ValueError(
                    "family must be given for data whose columns have no types, got 'auto' and "
                    f"{shown(X)}: name a family, such as 'poisson', or give a data frame."
                )
            self._chosen = tables.auto_family(columns)
            log.info("family='auto': %s.", tables.said_of(self._chosen))
        texts = tables.find_categories(columns or ())
        if texts:
            self._texts = texts

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
        columns = tables.table_columns(X)
        if columns is None:
            return filled
        texts = tables.decoded(filled, self._texts_in([column.name for column in columns]))
        if tables.is_frame(X):
            return tables.replaced(X, dict(enumerate(filled.T)) | texts)
        return _with_texts(filled, texts)

    def _columns(self) -> list[ColumnOf]:
        check_is_fitted(self)
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        names = names or [f"column {j}" for j in range(self.n_features_in_)]
        return columns_of(self.family_, self.params_, names, getattr(self, "categories_", {}))

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

        Columns that are not independent given the component, such as directions, have bars of
        their parameters.

        Parameters
        ----------
        X : array-like, shape (n, d), optional
            Rows in memory; columns of numbers and counts then have a histogram of them in grey.
        columns : sequence of int or str, optional
            Numbers or names of the columns to draw; by default the first 24.
        axes : array of matplotlib axes, optional
            One for each panel; by default of a new figure.

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
        from swiftem.mixture.plots import draw_columns

        found = self._columns()
        chosen = chosen_places(columns, [column.name for column in found])
        source = None if X is None else self._source(X)
        rows = None if source is None else source.rows_in_memory
        if source is not None and rows is None:
            raise ValueError(f"X must be rows in memory to be drawn, got {shown(X)}.")
        data = [None if rows is None else rows[~np.isnan(rows[:, place]), place] for place in chosen]
        return draw_columns([panel_of(found[place]) for place in chosen], self.weights_, data, axes)

    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        return {"weights_": self.weights_} | flat(self.params_, "params_")

    def _state_to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super()._state_to_file()
        header["family_"] = to_header(self.family_, file_types())
        if "_texts" in self.__dict__:  # codes are in the family
            plain = {
                name: tuple(part if isinstance(part, PLAIN) else str(part) for part in parts)
                for name, parts in self._texts.items()
            }
            header["categories_"] = to_header(plain)
        return header, arrays

    def _read_fitted(self, content: ModelContent, d: int) -> None:
        self.family_ = content.value(content.header["family_"])
        if isinstance(self.family_, Blocks):
            self.family_.check_columns(d)
        if "categories_" in content.header:
            self._texts = _read_categories(content.value(content.header["categories_"]))
        model = self._fitted_model()
        weights = content.array("weights_", (self.n_components,), single=True)
        params = read_params(content, model.kind.shapes(self.n_components, d), "params_")
        check_simplex("weights_", weights)
        model.kind.check_params(_converted(params, np.float64))
        self.weights_, self.params_ = weights, params
        self._given_start(model, d)


def _read_categories(found: Any) -> Categories:
    if not isinstance(found, dict) or not all(
        isinstance(name, str | int)
        and isinstance(parts, tuple)
        and all(isinstance(one, PLAIN) for one in parts)
        for name, parts in found.items()
    ):
        raise ValueError("categories_ must be a dict of columns and their categories")
    return found


def _with_texts(rows: NDArray[Any], texts: Mapping[int, NDArray[Any]]) -> NDArray[Any]:
    """Return rows (n, d), as objects if there are columns of text."""
    found = rows.astype(object) if texts else rows
    for place, part in texts.items():
        found[:, place] = part
    return found


def _numbers(family: Family) -> Any:
    """Return the columns of blocks; None if they are names."""
    columns = family.columns if isinstance(family, Blocks) else ()
    return None if any(isinstance(part, str) for block in columns for part in block) else columns


def _converted(params: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """Return parameters, arrays in dicts, as another type."""
    return {
        name: _converted(part, dtype) if isinstance(part, Mapping) else np.asarray(part, dtype=dtype)
        for name, part in params.items()
    }
