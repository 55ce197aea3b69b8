"""User-defined models, from four functions or one class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Real

import numpy as np

from swiftem.core.checks import shown
from swiftem.core.compute import Compute, Placement
from swiftem.core.model import BoundModel, Model
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Theta

SAMPLE = 10_000
"""Maximum number of rows passed to ``initial_theta``."""


def is_finite(s: Array) -> bool:
    """Return whether no statistic is NaN or infinite."""
    return bool(np.isfinite(s).all())


class ExponentialFamilyModel(Model):
    r"""Base class of user-defined models of the curved exponential family, equation (exp).

    Write four methods; all five methods of the paper, weights, seeds and resuming then work. Memories store
    statistics, so that no posterior is needed. A frozen dataclass is a good choice.

    Examples
    --------
    A mixture of two exponential distributions, with the parameters as a pair of arrays:

    >>> from dataclasses import dataclass
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> @dataclass(frozen=True)
    ... class ExponentialMixture(models.ExponentialFamilyModel):
    ...     epsilon: float = 1e-3
    ...
    ...     def initial_theta(self, y, rng):
    ...         return np.array([0.5, 0.5]), rng.uniform(0.5, 2.0, size=2) / y.mean()
    ...
    ...     def expected_statistics(self, y, theta):
    ...         weights, rates = theta
    ...         joint = weights * rates * np.exp(-rates * y[:, None])  # (b, 2)
    ...         r = joint / joint.sum(axis=1, keepdims=True)
    ...         return np.hstack([r, r * y[:, None]]), np.log(joint.sum(axis=1))
    ...
    ...     def m_step(self, s):
    ...         weights = s[:2] + self.epsilon
    ...         return weights / weights.sum(), (s[:2] + self.epsilon) / (s[2:] + self.epsilon)
    ...
    ...     def penalty(self, theta):
    ...         weights, rates = theta
    ...         return -self.epsilon * (np.log(weights).sum() + (np.log(rates) - rates).sum())
    >>> rng = np.random.default_rng(0)
    >>> y = np.concatenate([rng.exponential(1.0, 300), rng.exponential(10.0, 300)])
    >>> result = swiftem.run(ExponentialMixture(), y, methods.IncrementalEM(), n_iter=3000, seed=1)
    >>> weights, rates = result.theta
    >>> bool(abs(weights.sum() - 1) < 1e-12)
    True
    """

    @abstractmethod
    def initial_theta(self, y: np.ndarray, rng: np.random.Generator) -> Theta:
        """Return initial parameters.

        ``y`` has up to 10,000 samples, drawn at random if there are more.
        """

    @abstractmethod
    def expected_statistics(self, y: np.ndarray, theta: Theta) -> tuple[Array, Array]:
        r"""E-step: :math:`\bar s_i(\theta)`, shape (b, q), and log g(y_i; θ), shape (b,), of ``y``."""

    @abstractmethod
    def m_step(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)` for statistics of shape (q,), in new arrays."""

    @abstractmethod
    def penalty(self, theta: Theta) -> float:
        """Return Pen(θ): the objective is this plus the mean negative log-likelihood."""

    def in_domain(self, s: Array) -> bool:
        """Return whether the M-step exists at ``s``; by default if ``s`` is finite."""
        return is_finite(s)

    def bind(self, source: Source) -> BoundFunctions:
        """Return the model for these data."""
        return BoundFunctions(self, source)


@dataclass(frozen=True)
class FunctionModel(Model):
    """A model from four functions, without a class.

    Parameters
    ----------
    initial_theta, expected_statistics, m_step, penalty : callable
        The methods of :class:`ExponentialFamilyModel`, without ``self``.
    in_domain : callable, optional
        Likewise; by default the M-step exists for all finite statistics.

    Examples
    --------
    The mean of a Gaussian, with nothing latent:

    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> model = models.FunctionModel(
    ...     initial_theta=lambda y, rng: rng.normal(),
    ...     expected_statistics=lambda y, theta: (y[:, None], -0.5 * (y - theta) ** 2),
    ...     m_step=lambda s: s[0],
    ...     penalty=lambda theta: 0.0,
    ... )
    >>> float(swiftem.run(model, [1.0, 2.0, 6.0], methods.EM(), n_iter=1, seed=0).theta)
    3.0
    """

    initial_theta: Callable[[np.ndarray, np.random.Generator], Theta]
    expected_statistics: Callable[[np.ndarray, Theta], tuple[Array, Array]]
    m_step: Callable[[Array], Theta]
    penalty: Callable[[Theta], float]
    in_domain: Callable[[Array], bool] = is_finite

    def __post_init__(self) -> None:
        for part in fields(self):
            if not callable(getattr(self, part.name)):
                raise TypeError(f"{part.name} must be a function, got {shown(getattr(self, part.name))}.")

    def bind(self, source: Source) -> BoundFunctions:
        """Return the model for these data."""
        return BoundFunctions(self, source)


@dataclass(frozen=True)
class BoundFunctions(BoundModel):
    """A user-defined model with its data; the memory of a sample is its statistics."""

    model: ExponentialFamilyModel | FunctionModel
    source: Source
    _width: list[int] = field(default_factory=list, repr=False, compare=False)
    #: Description of the parameters of the first E-step that worked.
    _worked: list[str] = field(default_factory=list, repr=False, compare=False)

    def compute(self, source: Source, placement: Placement) -> Compute:
        """Return the E-steps, with compiled iterations if the functions are compiled."""
        from swiftem.functions.compute import FunctionsCompute

        return FunctionsCompute(self, source, placement)

    def initial_theta(self, rng: np.random.Generator) -> Theta:
        """Return the model's initial parameters from a sample of the data."""
        n = self.source.n
        index = np.arange(n) if n <= SAMPLE else np.sort(rng.choice(n, SAMPLE, replace=False))
        return _read_theta("initial_theta", self.model.initial_theta(self.source.take(index).y, rng))

    def check_theta(self, theta: Theta, name: str = "theta0") -> Theta:
        """Return ``theta`` unchanged: only the model's author knows what is valid."""
        return theta

    def posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        """E-step: statistics (b, q) and log-likelihood (b,)."""
        try:
            returned = self.model.expected_statistics(batch.y, theta)
            statistics = _read_statistics(returned, len(batch.index), self._width)
        except Exception as error:
            self._explain(error, theta)
            raise
        if not self._worked:
            self._worked.append(_described(theta))
        return statistics

    def _explain(self, error: Exception, theta: Theta) -> None:
        """Raise an error that names the function at fault if the E-step fails or does not compile."""
        now, reason = _described(theta), " ".join(str(error).split()).rstrip(".")[:300]
        if self._worked and now != self._worked[0]:
            raise TypeError(
                f"m_step must return parameters that expected_statistics takes, such as {self._worked[0]}, "
                f"with which the run began, got {now} ({reason})."
            ) from error
        if type(error).__module__.partition(".")[0] == "numba":
            raise TypeError(
                f"expected_statistics must compile for parameters that are {now}, but does not ({reason})."
            ) from error

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the rows, shape (q,)."""
        return weight @ rows

    def m_step(self, s: Array) -> Theta:
        """Return the model's M-step."""
        return _read_theta("m_step", self.model.m_step(s))

    def penalty(self, theta: Theta) -> float:
        """Return the model's penalty."""
        penalty = self.model.penalty(theta)
        if np.ndim(penalty) or np.asarray(penalty).dtype.kind not in "biuf":
            raise TypeError(f"penalty must return a number, got {_described(penalty)}.")
        return float(penalty)

    def in_domain(self, s: Array) -> bool:
        """Return the model's ``in_domain``."""
        truth = self.model.in_domain(s)
        if np.ndim(truth) or np.asarray(truth).dtype.kind not in "bi":
            raise TypeError(f"in_domain must return True or False, got {_described(truth)}.")
        return bool(truth)

    def unpack(self, s: Array) -> Array:
        """Return ``s``, which has no named parts; raise ValueError if it has the wrong size."""
        one = next(self.source.blocks(1))
        rows, _ = self.posterior(one, self.initial_theta(np.random.default_rng(0)))
        if np.shape(s) != rows.shape[1:]:
            raise ValueError(f"s must have shape {rows.shape[1:]}, got {np.shape(s)}.")
        return s


def _described(value: object) -> str:
    """Return a short description; parameters with different descriptions have different forms.

    >>> _described((np.zeros(2), 1.0)), _described(None)
    ('a tuple of 2 (an array of shape (2,), a number)', 'None')
    """
    if value is None:
        return "None"
    if isinstance(value, tuple | list):
        parts = f" ({', '.join(map(_described, value))})" if 0 < len(value) < 5 else ""
        return f"a {'tuple' if isinstance(value, tuple) else 'list'} of {len(value)}{parts}"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    if isinstance(value, Real | np.number | np.ndarray):
        return "a number"
    return f"an object of type {type(value).__name__}"


def _read_statistics(returned: object, b: int, known: list[int]) -> tuple[Array, Array]:
    """Return statistics (b, q) and log-likelihoods (b,) from ``expected_statistics``, validated.

    ``known`` stores q once it is known.
    """
    wanted = f"expected_statistics must return arrays of shape (b, q) and (b,) for b = {b} samples"
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise TypeError(f"{wanted}, got {_described(returned)}.")
    rows, loglik = (np.asarray(part) for part in returned)
    if rows.dtype.kind not in "biuf" or loglik.dtype.kind not in "biuf":
        raise TypeError(f"{wanted}, of real numbers, got dtypes {rows.dtype} and {loglik.dtype}.")
    if rows.ndim != 2 or len(rows) != b or loglik.shape != (b,) or not rows.shape[1]:
        raise ValueError(f"{wanted}, got {rows.shape} and {loglik.shape}.")
    known += [] if known else [rows.shape[1]]
    if rows.shape[1] != known[0]:
        raise ValueError(f"{wanted}, with the same q for all samples, got {known[0]} and {rows.shape[1]}.")
    return rows.astype(np.float64, copy=False), loglik.astype(np.float64, copy=False)


def _read_theta(name: str, theta: Theta) -> Theta:
    """Return parameters unchanged; raise TypeError if function ``name`` returned None."""
    if theta is None:
        raise TypeError(f"{name} must return the parameters, got None.")
    return theta
