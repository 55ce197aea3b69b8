"""The sets of the constants: S_0, the possible statistics of the data, and S_ρ, a neighbourhood of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paper.theory.family import Family, family_of
from paper.theory.gaussian_mixture import MixtureFamily
from paper.theory.polygon import AFFINE_TOLERANCE, Polygon
from swiftem.core.model import Model
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.mixture.gaussian_model import GaussianMixtureModel
from swiftem.topics.tokens import PLSAModel

__all__ = ["distance_to_S0", "radius", "sample_S0", "sample_S_rho"]


def radius(model: Model) -> float:
    r"""Return ρ: half of min(ε, δ), or of min(α', β'), so that the M-step exists on all of S_ρ.

    >>> import swiftem
    >>> from paper import theory
    >>> theory.radius(swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=0.5))
    0.25
    """
    if isinstance(model, GaussianMixtureModel) and model.covariance == "unit":
        names, strengths = "delta and epsilon", (model.delta, model.epsilon)
    elif isinstance(model, PLSAModel):
        names, strengths = "alpha and beta", (model.alpha, model.beta)
    else:
        raise TypeError(
            f"model must be a GaussianMixtureModel with covariance='unit' or a PLSAModel, got {model!r}."
        )
    if min(strengths) <= 0:
        raise ValueError(
            f"{names} of the model must be positive, got {strengths[0]:g} and {strengths[1]:g}: without a "
            "penalty the constants of H2 to H5 are infinite."
        )
    return 0.5 * min(strengths)


def sample_S0(family: Family, source: Source, rng: np.random.Generator) -> Array:
    r"""Return a point (q,) of :math:`S_0 = \{n^{-1} \sum_i s_i : s_i \in \mathrm{conv}\, S(\cdot, y_i)\}`.

    Its posteriors are Dirichlet, from nearly uniform to nearly certain, or assign each sample to one
    component by a random linear score of its statistics, which gives an extreme point of S_0.
    """
    batch = source.take(np.arange(source.n))
    columns = family.columns
    if rng.random() < 0.5:
        scores = rng.normal(size=family.q)
        value = [
            family.each_statistics(batch, np.tile(unit, (source.n, 1))) @ scores for unit in np.eye(columns)
        ]
        rows = np.eye(columns)[np.argmax(value, axis=0)]
    else:
        rows = rng.dirichlet(rng.dirichlet(np.ones(columns)) * 10.0 ** rng.uniform(-1, 1.5), size=source.n)
    return family.statistics(batch, rows, batch.weight / source.total_weight)


def _middle(family: Family, source: Source) -> Array:
    """Return the statistics of uniform posteriors, a point well inside S_0."""
    batch = source.take(np.arange(source.n))
    columns = family.columns
    rows = np.full((source.n, columns), 1.0 / columns)
    return family.statistics(batch, rows, batch.weight / source.total_weight)


def sample_S_rho(family: Family, source: Source, rho: float, rng: np.random.Generator) -> Array:
    r"""Return a point (q,) of :math:`S_\rho`: one of S_0, moved by up to ρ within the affine hull of S_0."""
    s, one, other = (sample_S0(family, source, rng) for _ in range(3))
    direction = one - other
    size = max_norm(family, direction)
    return s + rho * rng.choice([1.0, rng.random()]) / size * direction if size > 0 else s


def max_norm(family: Family, change: Array) -> float:
    """Return the largest change of a statistic; for a mixture, of those of all M components.

    For M = 2 the last component's changes are minus the first's. For M > 2, if it were omitted, its changes
    could be up to M − 1 times as large as ρ, and the M-step would not exist on all of S_ρ.
    """
    return float(np.abs(family.every_change(change)).max())


def distance_to_S0(model: Model, data: Any, s: ArrayLike) -> float:
    r"""Return the distance in max-norm from s to S_0; infinite outside the affine hull of S_0.

    s lies in :math:`S_\rho` if this is at most ρ, :func:`radius`. For two Gaussians S_0 is a polygon, and the
    cost is that of sorting. Otherwise a linear program with n·M or (entries of the counts)·K variables is
    solved, which is for small data only.

    Parameters
    ----------
    model : GaussianMixtureModel with unit variances, or PLSAModel
        The model.
    data
        As in :func:`swiftem.run`.
    s : array-like
        Statistics, as in :func:`paper.theory.V`.

    Examples
    --------
    >>> import swiftem
    >>> from paper import theory
    >>> model = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
    >>> theory.distance_to_S0(model, [-1.0, 1.0], [0.5, 0.25, 0.0])
    0.0
    >>> theory.distance_to_S0(model, [-1.0, 1.0], [0.5, 0.75, 0.0])  # the second cannot exceed 1/2
    0.25
    """
    family, source = family_of(model, data)
    x = family.coordinates(s)
    if isinstance(family, MixtureFamily) and family.M == 2 and family.d == 1:
        y = source.take(np.arange(source.n)).y.ravel().astype(np.float64)
        return Polygon(y).distance(x)
    return _by_linear_program(family, source, x)


def _by_linear_program(family: Family, source: Source, s: Array) -> float:
    """Return the smallest η such that posteriors exist whose mean statistics differ from s by at most η."""
    import scipy.sparse as sp
    from scipy.optimize import linprog

    batch = source.take(np.arange(source.n))
    kinds, times = np.unique(np.column_stack([batch.y, batch.weight]), axis=0, return_inverse=True)
    first = np.unique(times, return_index=True)[1]
    share = np.bincount(times.ravel(), batch.weight) / source.total_weight
    one = source.take(batch.index[first])
    columns = family.columns
    parts = []
    for unit in np.eye(columns):
        each = family.each_statistics(one, np.tile(unit, (len(kinds), 1))) * share[:, None]
        parts.append(np.apply_along_axis(family.every_change, 1, each))
    target = family.every_change(s)
    A = sp.csr_array(np.concatenate(parts).T)  # (coordinates, columns · kinds)
    size = sp.csr_array(np.ones((A.shape[0], 1)))
    simplex = sp.hstack([sp.eye_array(len(kinds))] * columns + [sp.csr_array((len(kinds), 1))])
    found = linprog(  # type: ignore[call-overload]  # its stubs do not know sparse matrices
        np.append(np.zeros(A.shape[1]), 1.0),
        A_ub=sp.vstack([sp.hstack([A, -size]), sp.hstack([-A, -size])]),
        b_ub=np.concatenate([target, -target]),
        A_eq=simplex,
        b_eq=np.ones(len(kinds)),
        method="highs",
    )
    if not found.success:
        raise RuntimeError(f"the distance to S_0 could not be found: {found.message}")
    return float(found.fun) if _in_hull(family, source, s) else np.inf


def _in_hull(family: Family, source: Source, s: Array) -> bool:
    """Tell whether s lies in the affine hull of S_0: s minus a point of it is a mean of differences."""
    batch = source.take(np.arange(source.n))
    columns = family.columns
    middle = _middle(family, source)
    last = family.each_statistics(batch, np.tile(np.eye(columns)[-1], (source.n, 1)))
    spans = [
        family.each_statistics(batch, np.tile(unit, (source.n, 1))) - last for unit in np.eye(columns)[:-1]
    ]
    differences = np.unique(np.concatenate(spans), axis=0) if spans else np.zeros((1, family.q))
    change = s - middle
    nearest = differences.T @ np.linalg.lstsq(differences.T, change, rcond=None)[0]
    return bool(np.abs(nearest - change).max() <= AFFINE_TOLERANCE * max(1.0, np.abs(s).max()))
