"""The contracts of a model and of a model bound to data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from swiftem.core.compute import Compute, Placement
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Theta, Tree


class Model(ABC):
    """Hyper-parameters of a latent-variable model of the curved exponential family, equation (exp).

    A model does not depend on the data; :meth:`bind` fixes what does.
    """

    missing: str = "error"
    """What to do with rows that have missing cells: "error", or "ignore" these cells."""
    in_counts: bool = False
    """Whether there is a prior in counts: its weight in the objective depends on the total weight."""

    @abstractmethod
    def bind(self, source: Source) -> BoundModel:
        """Return the model for these data, or raise an error if they do not match."""

    def bind_units(self, units: Any) -> BoundModel:
        """Return the model for rows in units (:class:`swiftem.data.UnitSource`), which are read elsewhere."""
        raise TypeError(f"model must be a mixture for data in units, got {type(self).__name__}.")

    def bind_near(self, source: Source, theta: Theta) -> BoundModel:
        """Return the model for E-steps at θ; it may avoid a pass that :meth:`bind` makes."""
        return self.bind(source)


class BoundModel(ABC):
    """A model for data of known size and kind.

    ``rows`` is what a memory stores of a sample: the posterior if the statistics are linear in it, else the
    statistics themselves. Statistics are one flat float64 vector, additive over samples.
    """

    size: int | None = None
    """Number of statistics q, or None if only an E-step can tell."""
    row_length: int | None = None
    """Length R of a sample's row, or None if only an E-step can tell."""
    n_classes: int | None = None
    """How many entries of a row, from the first on, are posterior probabilities; None for all."""

    @abstractmethod
    def initial_theta(self, rng: np.random.Generator) -> Theta:
        """Return random initial parameters."""

    @abstractmethod
    def check_theta(self, theta: Theta, name: str = "theta0") -> Theta:
        """Return ``theta``, or raise an error, with its ``name``, if it does not match model and data."""

    @abstractmethod
    def posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        """E-step: rows (b, R) and log-likelihood (b,) of the samples."""

    @abstractmethod
    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return Σ_i weight_i S(rows_i, y_i), flat, linear in ``rows`` and in ``weight``."""

    @abstractmethod
    def m_step(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep), in new arrays."""

    @abstractmethod
    def penalty(self, theta: Theta) -> float:
        """Return Pen(θ), added to the mean loss."""

    @abstractmethod
    def in_domain(self, s: Array) -> bool:
        """Return whether the M-step exists at ``s``."""

    @abstractmethod
    def unpack(self, s: Array) -> Tree:
        """Return named views of the flat statistics; raise ValueError for another size."""

    def unit_factors(self, s: Array) -> Array:
        """Return factors (q,) that make each statistic free of units; by default ones."""
        return np.ones_like(s)

    def certificate_factors(self, s: Array) -> Array:
        """Return factors (q,) of the statistics in the certificate of convergence; zero leaves one out."""
        return self.unit_factors(s)

    def compute(self, source: Source, placement: Placement) -> Compute:
        """Return the E-steps on these data; by default in plain NumPy."""
        return Compute(self, source, placement)
