"""A model as a family in the paper's coordinates, and one pass over its data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paper.theory.gaussian_mixture import MixtureFamily
from paper.theory.plsa import PLSAFamily
from swiftem.core.compute import BLOCK
from swiftem.core.model import Model
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta
from swiftem.data.as_source import read_problem
from swiftem.mixture.gaussians import BoundGaussians, GaussianMixtureModel
from swiftem.topics.tokens import BoundPLSA, PLSAModel

Family = MixtureFamily | PLSAFamily
r"""A model as equation (exp): :math:`\log f = \log h + \langle S, \phi(\theta)\rangle - \psi(\theta)`.

Statistics have q coordinates and parameters p, as in the paper, which omits those that are determined by
the others: the last weight, for example. ``vector`` and ``from_vector`` convert the library's θ to p numbers
and back.
"""


def family_of(model: Model, data: Any, sample_weight: ArrayLike | None = None) -> tuple[Family, Source]:
    """Return the family of a model for its data, and the source.

    >>> import swiftem
    >>> from paper.theory.family import family_of
    >>> family, source = family_of(swiftem.models.GaussianMixtureModel(n_components=3), [0.0, 1.0, 2.0])
    >>> family.q, family.p, source.n
    (5, 5, 3)
    """
    unit = isinstance(model, GaussianMixtureModel) and model.covariance == "unit"
    if not (unit or isinstance(model, PLSAModel)):
        raise TypeError(
            "model must be a GaussianMixtureModel with covariance='unit' or a PLSAModel, the two whose B(s) "
            f"is known in closed form, got {model!r}."
        )
    problem = read_problem(model, data, sample_weight)
    bound, source = problem.bound, problem.source
    if isinstance(bound, BoundGaussians):
        return MixtureFamily(bound), source
    assert isinstance(bound, BoundPLSA)
    return PLSAFamily(bound), source


class Pass(NamedTuple):
    r"""``s`` (q,): :math:`\bar s(\theta)`; ``objective``: :math:`\overline{\mathcal L}(\theta)`."""

    s: Array
    objective: float


def full_pass(family: Family, source: Source, theta: Theta) -> Pass:
    r"""Return :math:`\bar s(\theta)`, equation (definition-overline-bss), and (em_motivate), in one pass.

    Each sample is read once, in blocks: a source that can only be read in order is enough.
    """
    s: Array | None = None
    loss = 0.0
    for batch in source.blocks(BLOCK):
        rows, log_likelihood = family.bound.posterior(batch, theta)
        part = family.statistics(batch, rows, batch.weight / source.total_weight)
        s = part if s is None else s + part
        loss -= float(batch.weight @ log_likelihood)
    assert s is not None, "a source has at least one sample"
    return Pass(s, family.bound.penalty(theta) + loss / source.total_weight)


def matrix_B(family: Family, s: Array) -> Array:
    r"""Return :math:`\mathrm B(s)`, equation (Bss), shape (q, q), column by column.

    >>> import numpy as np, swiftem
    >>> family, _ = family_of(swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), [0.0, 1.0])
    >>> matrix_B(family, np.array([0.5, 0.3, 0.5])).round(3)
    array([[ 1.372, -0.222,  0.089],
           [-0.222,  1.333, -0.667],
           [ 0.089, -0.667,  0.667]])
    >>> family, _ = family_of(swiftem.models.PLSAModel(2, alpha=0.1, beta=0.1), ([0, 0, 1], [0, 1, 2]))
    >>> int((np.linalg.eigvalsh(matrix_B(family, np.full(10, 0.2))) < 1e-12).sum())  # D + K
    4
    """
    matrix = np.stack([family.times_B(s, unit) for unit in np.eye(family.q)], axis=1)
    return 0.5 * (matrix + matrix.T)  # exactly symmetric, for the eigenvalues
