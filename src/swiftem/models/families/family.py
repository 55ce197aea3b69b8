r"""What a family of components has to say.

The density of a component is that of an exponential family,

.. math:: \log f(y; \theta_m) = \langle T(y), \phi(\theta_m) \rangle + c(\theta_m) + \log h(y),

so that an E-step is a softmax of T(Y)·φᵀ + c + log ω, statistics are [r, r ⊗ T(y)], and the M-step depends on
the means of T(y) over a component's rows. That is all the engine needs: compiled passes, every method,
weights, files, checkpoints and the estimator follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array

__all__ = ["Family", "Params"]

Params = dict[str, Array]
"""Parameters of all components, by name."""


class Family(ABC):
    """A family of components; derive a frozen dataclass, whose fields are what a user may choose.

    A family is complete with :meth:`shapes`, :meth:`check_rows`, :meth:`natural`, :meth:`m_step` and
    :meth:`draw`. M is the number of components, d the number of columns, p that of features.

    Examples
    --------
    Waiting times, with a rate for each component and column:

    >>> from dataclasses import dataclass
    >>> import numpy as np, swiftem
    >>> from swiftem.models.families import Family
    >>> @dataclass(frozen=True)
    ... class Exponential(Family):
    ...     name = "exponential"
    ...     bounds = (0.0, np.inf)
    ...
    ...     def shapes(self, n_components, d):
    ...         return {"rates": (n_components, d)}
    ...
    ...     def check_rows(self, y):
    ...         if (y <= 0).any():
    ...             raise ValueError("must be positive")
    ...
    ...     def natural(self, params):
    ...         return -params["rates"], np.log(params["rates"]).sum(axis=1)
    ...
    ...     def m_step(self, counts, means):
    ...         return {"rates": 1.0 / means} if (means > 0).all() else None
    ...
    ...     def draw(self, params, labels, rng):
    ...         return rng.exponential(1.0 / params["rates"][labels])
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(np.where(rng.random((2000, 1)) < 0.5, 1.0, 20.0) * [1.0, 2.0])
    >>> mixture = swiftem.Mixture(2, family=Exponential(), random_state=0).fit(X)
    >>> np.sort(1.0 / mixture.params_["rates"][:, 0]).round()
    array([ 1., 20.])
    """

    name: ClassVar[str]
    """As users and files write it."""

    bounds: ClassVar[tuple[float, float]] = (-inf, inf)
    """Between what the mean of every feature is. Stochastic methods may leave it by noise: the statistics are
    then taken as at the bound."""

    @abstractmethod
    def shapes(self, n_components: int, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters; the first axis is that of the components."""

    @abstractmethod
    def check_rows(self, y: NDArray[Any]) -> None:
        """Raise ValueError for rows (b, d), finite numbers, that cannot be.

        The message follows the words "data": "must be counts, got -1".
        """

    @abstractmethod
    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return φ, shape (M, p), and c, shape (M,), all finite."""

    @abstractmethod
    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return the parameters of the largest likelihood, or None where there are none.

        Parameters
        ----------
        counts : ndarray, shape (M,)
            Shares of the rows, positive; needed only where components have something in common.
        means : ndarray, shape (M, p)
            Means of T(y) over the rows of each component.
        """

    @abstractmethod
    def draw(self, params: Params, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Return random rows, shape (count, d), of the components ``labels`` (count,)."""

    def features(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return T(y), shape (b, p), of rows (b, d); by default the rows themselves."""
        return y

    def checked(self, y: NDArray[Any], first: int) -> NDArray[Any]:
        """Return the features of rows whose first has number ``first``, or name a row that cannot be."""
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
        return self.features(y)

    def log_base(self, y: NDArray[Any]) -> Array | None:
        """Return log h(y), shape (b,), of rows (b, d); None, the default, for zeros."""
        return None

    def check_params(self, params: Params) -> None:
        """Raise ValueError for parameters of the right shapes, finite, that cannot be."""
        return None

    def n_free(self, n_components: int, d: int) -> int:
        """Return how many numbers are free, weights apart; by default all parameters."""
        return sum(int(np.prod(shape)) for shape in self.shapes(n_components, d).values())
