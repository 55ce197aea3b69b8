r"""The interface of a family of components.

The density of a component belongs to an exponential family,

.. math:: \log f(y; \theta_m) = \langle T(y), \phi(\theta_m) \rangle + c(\theta_m) + \log h(y),

so that an E-step is a softmax of T(Y)·φᵀ + c + log ω, statistics are [r, r ⊗ T(y)], and the M-step depends on
the means of T(y) over a component's rows. The engine needs nothing else: compiled passes, every method,
weights, files, checkpoints and the estimator then work.

Two more kinds of statistics have the same M-step. *Codes*: T(y) has a one for the code of each column and
zeros elsewhere. It is never formed: φ is gathered, and r is scattered. *Channels*: a second latent variable v
of each row makes T(y, v) = [T_0(y), g_1(v)·T_1(y), ...]; the family then computes log f(y; θ_m) and the means
of g_c(v) given y and m itself, and posterior rows are [r, r·g_1, ...].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Array, Index, Rows

Params = dict[str, Any]
"""Parameters of all components, arrays by name; for several blocks, such a dict per block."""


CONDITIONS: dict[str, Callable[[Array], Any]] = {
    "finite": np.isfinite,
    "positive": lambda values: values > 0.0,
    "at least 0": lambda values: values >= 0.0,
    "from 0 to 1": lambda values: (values >= 0.0) & (values <= 1.0),
}
"""What parameters may have to be."""


class Columns(NamedTuple):
    """Summary of the columns by a pass, (d,) each: minimum and maximum, weighted mean and variance, codes.

    ``codes`` has a boolean array for each column of codes, True at those in the data; else None.
    """

    lowest: Array
    highest: Array
    mean: Array
    variance: Array
    codes: Any = None

    def part(self, here: slice | Index) -> Columns:
        """Return the summary of some of the columns."""
        return Columns._make(None if part is None else part[here] for part in self)


class Family(ABC):
    """A family of components; derive a frozen dataclass, whose fields are the users' choices.

    A family is complete with ``parameters``, :meth:`check_rows`, :meth:`natural`, :meth:`m_step` and
    :meth:`draw`. M is the number of components, d the number of columns, p the number of features.

    Examples
    --------
    Speeds (Rayleigh), with a scale for each component and column:

    >>> from dataclasses import dataclass
    >>> import numpy as np, swiftem
    >>> from swiftem.families import Family
    >>> @dataclass(frozen=True)
    ... class Rayleigh(Family):
    ...     name = "rayleigh"
    ...     bounds = (0.0, np.inf)
    ...     parameters = (("scales", "positive"),)
    ...
    ...     def check_rows(self, y):
    ...         if (y <= 0).any():
    ...             raise ValueError("must be positive")
    ...
    ...     def features(self, y):
    ...         return y * y
    ...
    ...     def natural(self, params):
    ...         return -0.5 / params["scales"] ** 2, -2.0 * np.log(params["scales"]).sum(axis=1)
    ...
    ...     def log_base(self, y):
    ...         return np.log(y).sum(axis=1)
    ...
    ...     def m_step(self, counts, means):
    ...         return {"scales": np.sqrt(0.5 * means)} if (means > 0).all() else None
    ...
    ...     def draw(self, params, labels, rng):
    ...         return rng.rayleigh(params["scales"][labels])
    >>> rng = np.random.default_rng(0)
    >>> X = rng.rayleigh(np.where(rng.random((2000, 1)) < 0.5, 1.0, 20.0) * [1.0, 2.0])
    >>> mixture = swiftem.Mixture(2, family=Rayleigh(), random_state=0).fit(X)
    >>> np.sort(mixture.params_["scales"][:, 0]).round()
    array([ 1., 20.])
    """

    name: ClassVar[str] = ""
    """Name in arguments and files."""

    parameters: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The name of each parameter, and what it must be: one of :data:`CONDITIONS`."""

    bounds: ClassVar[tuple[float, float]] = (-inf, inf)
    """Bounds of the mean of every feature. Stochastic methods may violate them by noise: the statistics are
    then clipped."""

    is_coded: ClassVar[bool] = False
    """Whether the columns are codes; features are then indicators of their levels, column by column."""

    kinds: ClassVar[int] = 1
    """Number of features of a column, if columns are independent."""

    smoothing: ClassVar[float] = 1e-3
    """Default of ``smoothing``, in rows per component."""

    filler: ClassVar[float] = 1.0
    """A value that every column may have, or one for each: features are counted with it, and it replaces
    missing cells, which then count for nothing."""

    remedy: ClassVar[str] = "leave out such rows, or choose another family"
    """Advice if cells are missing, and the family needs complete rows."""

    learnt: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that :meth:`learn` sets if they are None."""

    channels: ClassVar[tuple[float, ...]] = ()
    """Further channels: the values of their factors g_c in rows of the prior and of a start."""

    def shapes(self, n_components: int, d: int) -> dict[str, Any]:
        """Return the shapes of the parameters: the first axis is M; the second of the first parameter is d.

        By default (M, d) of all. ``None`` is a length that depends on the data (see :meth:`learn`).
        """
        if not self.parameters:
            raise TypeError(f"family {self.name!r} must define parameters, or shapes.")
        return {name: (n_components, d) for name, _ in self.parameters}

    @abstractmethod
    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for invalid rows (b, d) of finite numbers.

        The message follows the word "data": "must be counts, got -1".
        """

    @abstractmethod
    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return φ, shape (M, p), and c, shape (M,), all finite."""

    @abstractmethod
    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return the maximum likelihood parameters, or None if there are none.

        Parameters
        ----------
        counts : ndarray, shape (M,), or (M, d) if cells are missing
            Shares of the rows, or of the cells, positive; needed only if components or columns share
            parameters.
        means : ndarray, shape (M, p)
            Means of T(y) over the rows of each component.
        """

    def constants(self, params: Params) -> Array:
        """Return c of each column, (M, d), whose sums over columns are c.

        A family that defines it has columns that are independent given the component: features are then
        ordered kind after kind, all columns of each, (b, k·d), and cells may be missing
        (:class:`swiftem.mixture.families.observed.Observed`).
        """
        raise NotImplementedError

    @property
    def takes_missing(self) -> bool:
        """Whether cells may be missing."""
        return type(self).constants is not Family.constants

    def expected(self, params: Params) -> Array:
        """Return the mean of each column, (M, d), which replaces missing cells in ``impute``."""
        raise ValueError(
            f"family {self.name!r} must define expected(params), the means (M, d), for imputed means: give "
            "random_state, for random draws."
        )

    def imputed(self, y: Rows, rows: Array, params: Params) -> Array:
        """Return rows (b, d) with conditional means in missing cells, given responsibilities (b, M)."""
        return np.where(np.isnan(y), rows @ self.expected(params), y)

    def drawn(self, y: Rows, params: Params, labels: Index, rng: np.random.Generator) -> Rows:
        """Return rows (b, d) with random values in missing cells, given components ``labels`` (b,)."""
        return np.where(np.isnan(y), self.draw(params, labels, rng), y)

    @abstractmethod
    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return random rows, shape (count, d), of the components ``labels`` (count,)."""

    def redraw(self, params: Params, means: Array, labels: Index, rng: np.random.Generator) -> Array:
        """Return random rows like those whose features have ``means`` (M, p); by default :meth:`draw`.

        A conditional family, which has no distribution of some columns, takes these from the means.
        """
        return self.draw(params, labels, rng)

    def features(self, y: Rows) -> Rows:
        """Return T(y) without indicators, shape (b, p), of rows (b, d); by default the rows themselves."""
        return y

    @property
    def needs_data(self) -> bool:
        """Whether :meth:`learn` must be called before there is a model."""
        return any(getattr(self, name) is None for name in self.learnt)

    def learn(self, columns: Columns) -> Family:
        """Return the family with fields that depend on the data.

        A fit stores it as ``family_``. The columns have not been checked yet.
        """
        return self

    def streamed(self, columns: Columns) -> Family:
        """Return the family for ``partial_fit``, with what it learns from more rows; by default the first."""
        return self.learn(columns) if self.needs_data else self

    def coded_columns(self, d: int) -> tuple[int, ...]:
        """Return the columns of codes among ``d``, for :class:`Columns`."""
        return tuple(range(d)) if self.is_coded else ()

    def level_codes(self) -> list[tuple[int, ...]]:
        """Return the code of each level, for the columns of :meth:`coded_columns`."""
        return []

    def for_start(self, y: Rows) -> Rows:
        """Return the rows (b, k) for k-means of a start, from rows (b, d); by default the rows themselves."""
        return y

    def widths(self, d: int) -> tuple[int, ...]:
        """Return the number of features of each channel, r first; by default all belong to r."""
        return (self.features(np.full((1, d), self.filler)).shape[1],)

    def e_step(self, y: Rows, params: Params) -> tuple[Array, list[Array]]:
        """Return log f(y; θ_m) − log h(y), (b, M), and for each further channel E[g_c | y, m], (b, M)."""
        phi, constant = self.natural(params)
        dense = self.features(y)
        p = dense.shape[1]
        logits = dense @ phi[:, :p].T + constant
        if self.n_codes:
            logits += phi[:, p:].T[self.codes(y)].sum(axis=1)
        return logits, []

    @property
    def n_codes(self) -> int:
        """Number of features that are indicators."""
        return 0

    def codes(self, y: Rows, first: int = 0) -> NDArray[np.int32]:
        """Return which indicators are one, shape (b, k), of rows (b, d) whose first has index ``first``.

        Compiled code trusts them: codes beyond the levels raise ValueError.
        """
        return np.empty((len(y), 0), dtype=np.int32)

    def checked(self, y: Rows, first: int) -> Rows:
        """Return the features of rows whose first has index ``first``; errors name the row."""
        if y.dtype.kind == "f" and np.isnan(y.sum(dtype=np.float64)) and np.isnan(y).any():
            row = first + int(np.argmax(np.isnan(y).any(axis=1)))
            raise ValueError(
                f"data must not be missing in columns of family {self.name!r}, got a missing value in row "
                f"{row}: {self.remedy}."
            )
        return self.features(self.valid(y, first))

    def valid(self, y: Rows, first: int) -> Rows:
        """Return rows whose first has index ``first``; errors name the row."""
        try:
            self.check_rows(y)
        except ValueError as error:
            said, row = str(error), first
            for place in range(len(y)):
                try:
                    self.check_rows(y[place : place + 1])
                except ValueError as one:
                    said, row = str(one), first + place
                    break
            raise ValueError(f"data {said} in row {row} (family {self.name!r}).") from None
        return y

    def log_base(self, y: Rows) -> Array | None:
        """Return log h(y), shape (b,), of rows (b, d), or None for zeros; by default from each column."""
        found = self.log_bases(y)
        return None if found is None else np.asarray(found.sum(axis=1))

    def log_bases(self, y: Rows) -> Array | None:
        """Return log h of each column, (b, d), if columns are independent; None, the default, for zeros."""
        return None

    def clipped(self, counts: Array, sums: Array) -> Array:
        """Return sums of features (M, p) within their bounds, for shares (M, 1) of the rows."""
        for end, cut in zip(self.bounds, (np.maximum, np.minimum), strict=True):
            known = np.isfinite(end)
            if known.any():
                sums = np.where(known, cut(sums, np.where(known, end, 0.0) * counts), sums)
        return sums

    def check_params(self, params: Params) -> None:
        """Raise ValueError for invalid parameters, which are finite and of the right shapes."""
        for name, condition in self.parameters:
            if not CONDITIONS[condition](params[name]).all():
                raise ValueError(f"{name} must be {condition}.")

    def n_free(self, n_components: int, d: int) -> int:
        """Return the number of free parameters, without weights; by default all parameters."""
        return sum(int(np.prod(shape)) for shape in self.shapes(n_components, d).values())
