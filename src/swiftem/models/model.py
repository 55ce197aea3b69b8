"""The contracts of a model and of a model bound to data."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.source import Batch, Source

__all__ = ["BoundModel", "Model"]


class Model(Protocol):
    """Hyper-parameters of a latent-variable model of the curved exponential family, equation (exp).

    A model does not depend on the data; :meth:`bind` fixes what does.
    """

    def bind(self, source: Source) -> BoundModel:
        """Return the model for these data, or raise an error if they do not match."""
        ...


class BoundModel(Protocol):
    """A model for data of known size and kind.

    ``rows`` is what a memory stores of a sample: the posterior if the statistics are linear in it, else the
    statistics themselves. Statistics are one flat float64 vector, additive over samples.
    """

    def initial_theta(self, rng: np.random.Generator) -> Theta:
        """Return random initial parameters."""
        ...

    def check_theta(self, theta: Theta, name: str = "theta0") -> Theta:
        """Return ``theta``, or raise an error, with its ``name``, if it does not match model and data."""
        ...

    def posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        """E-step: rows (b, R) and log-likelihood (b,) of the samples."""
        ...

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return Σ_i weight_i S(rows_i, y_i), flat, linear in ``rows`` and in ``weight``."""
        ...

    def m_step(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep), in new arrays."""
        ...

    def penalty(self, theta: Theta) -> float:
        """Return Pen(θ), added to the mean loss."""
        ...

    def in_domain(self, s: Array) -> bool:
        """Tell whether the M-step exists at ``s``."""
        ...

    def unpack(self, s: Array) -> Any:
        """Return named views of the flat statistics; raise ValueError for another size."""
        ...
