r"""Families whose rows have missing cells.

Cells are missing at random: whether a cell is missing may depend on what was observed, not on its value. The
likelihood of a row is then the one of its observed cells. With independent columns and o_j = 1 for an
observed cell, else 0,

.. math:: \log f(y_{obs}; \theta_m)
   = \sum_j o_j \big( \langle T_j(y_j), \phi_j(\theta_m) \rangle + c_j(\theta_m) + \log h_j(y_j) \big),

again an exponential family: its features are (o_j T_j(y_j), o_j), its natural parameters (φ_j, c_j), and its
constant is zero. The statistics thus have the mass of the observed cells, Σ_i r_im o_ij, and the M-step is
the one of the complete family for the means over observed cells,

.. math:: \bar T_{mj} = \sum_i r_{im} o_{ij} T_j(y_{ij}) \Big/ \sum_i r_{im} o_{ij}.

Statistics do not depend on θ otherwise, so that every method works. A missing cell of codes has a code of its
own, the last one, with φ = 0. Rows of the prior have missing cells like the mean of all rows.

Student-t with diagonal scales has columns that are independent given u, the second latent variable of a row:
the same holds for the complete log-density of (y, u). See :class:`ObservedT`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.blocks import Blocks
from swiftem.mixture.families.categorical import projected
from swiftem.mixture.families.family import Columns, Family, Params
from swiftem.mixture.families.student_t import StudentT


def _own(name: str) -> Any:
    """Return a member of :class:`Observed` that is the complete family's own."""
    return property(attrgetter(f"family.{name}"))


@dataclass(frozen=True)
class Observed(Family):
    """A family with independent columns, for rows in which NaN is a missing cell; parameters are the same.

    Parameters
    ----------
    family : Family
        The family of complete rows.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.mixture.families import Bernoulli
    >>> answers = Observed(Bernoulli())
    >>> answers.features(np.array([[1.0, np.nan], [0.0, 1.0]]))
    array([[1., 0., 1., 0.],
           [0., 1., 1., 1.]])
    >>> answers.m_step(np.ones(1), np.array([[0.5, 0.25, 1.0, 0.5]]))
    {'probabilities': array([[0.5, 0.5]])}
    """

    family: Family

    name = _own("name")
    is_coded, channels, needs_data = _own("is_coded"), _own("channels"), _own("needs_data")
    shapes, check_params, n_free = _own("shapes"), _own("check_params"), _own("n_free")
    draw, imputed, drawn = _own("draw"), _own("imputed"), _own("drawn")

    def learn(self, columns: Columns) -> Family:
        """Let the family learn from the observed cells."""
        return replace(self, family=self.family.learn(columns))

    def streamed(self, columns: Columns) -> Family:
        """Let the family learn from more rows."""
        return replace(self, family=self.family.streamed(columns))

    def _filled(self, y: Rows) -> tuple[Rows, NDArray[np.bool_]]:
        """Return rows with a valid value in missing cells, and which cells are observed."""
        seen = ~np.isnan(y)
        return (y if seen.all() else np.where(seen, y, np.asarray(self.family.filler, y.dtype))), seen

    def check_rows(self, y: Rows) -> None:
        """Let the family check the observed cells."""
        self.family.check_rows(self._filled(y)[0])

    def checked(self, y: Rows, first: int) -> Rows:
        """Return the features of rows whose first has index ``first``; errors name the row."""
        return self.features(self.valid(y, first))

    def features(self, y: Rows) -> Rows:
        """Return o·T(y), kind after kind, and o; nothing for codes."""
        if self.is_coded:
            return y[:, :0]
        filled, seen = self._filled(y)
        features = self.family.features(filled)
        b, d = y.shape
        dtype = features.dtype if features.dtype.kind == "f" else np.float64
        made = np.empty((b, self.family.kinds + 1, d), dtype=dtype)
        np.multiply(features.reshape(b, -1, d), seen[:, None], out=made[:, :-1])
        made[:, -1] = seen
        return made.reshape(b, -1)

    @property
    def n_codes(self) -> int:
        """Σ levels, and one for all missing cells."""
        return self.family.n_codes + 1 if self.is_coded else 0

    def codes(self, y: Rows, first: int = 0) -> NDArray[np.int32]:
        """Return which indicators are one; the last one belongs to missing cells."""
        if not self.is_coded:
            return super().codes(y, first)
        filled, seen = self._filled(y)
        codes = self.family.codes(filled, first)
        np.copyto(codes, np.int32(self.n_codes - 1), where=~seen)
        return codes

    def for_start(self, y: Rows) -> Rows:
        """Return the family's rows for k-means; missing cells are at the mean of their column."""
        if self.is_coded:
            return projected(self.codes(y), self.family.n_codes)
        filled, seen = self._filled(y)
        rows = np.array(self.family.for_start(filled))
        total = np.sum(rows, axis=0, where=seen, dtype=np.float64)
        mean = total / np.maximum(seen.sum(axis=0), 1)
        np.copyto(rows, mean.astype(rows.dtype), where=~seen)
        return rows

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return φ and c of each column, (M, p + d), and zeros; φ and a zero for codes."""
        phi, constant = self.family.natural(params)
        if self.is_coded:
            return np.column_stack([phi, np.zeros(len(phi))]), constant
        return np.concatenate([phi, self.family.constants(params)], axis=1), np.zeros(len(phi))

    def log_bases(self, y: Rows) -> Array | None:
        """Return log h of the observed cells, (b, d), zero for the others."""
        filled, seen = self._filled(y)
        log_h = self.family.log_bases(filled)
        if log_h is None and self.family.log_base(filled) is not None:
            raise ValueError(
                f"family {self.name!r} must define log_bases(y), log h of each column, if cells are missing."
            )
        return None if log_h is None else np.where(seen, log_h, 0.0)

    def clipped(self, counts: Array, sums: Array) -> Array:
        """Return sums of features within their bounds, and masses of observed cells from 0 to ``counts``."""
        if self.is_coded:
            return np.column_stack([self.family.clipped(counts, sums[:, :-1]), sums[:, -1]])
        *parts, mass = np.split(sums, self.family.kinds + 1, axis=1)
        mass = np.clip(mass, 0.0, counts)
        return np.hstack([*(self.family.clipped(mass, part) for part in parts), mass])

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return the M-step of the means over observed cells; None if a component has none in a column."""
        if self.is_coded:
            return self.family.m_step(counts, means[:, :-1])
        *parts, mass = np.split(means, self.family.kinds + 1, axis=1)
        if not (mass > 0.0).all():
            return None
        return self.family.m_step(counts[:, None] * mass, np.hstack([part / mass for part in parts]))


@dataclass(frozen=True)
class ObservedT(Observed):
    r"""Student-t with diagonal scales, for rows in which NaN is a missing cell.

    A row's observed cells are a multivariate t with the same degrees of freedom: with :math:`d_o` of them
    and δ the square over them, :math:`E[u] = (\nu + d_o) / (\nu + \delta)` and :math:`E[\log u] = \psi((\nu +
    d_o) / 2) - \log((\nu + \delta) / 2)`. Features are o of the channel r, (o, o·z, o·z²) of r·u, and 1 of
    r·(log u − u). M-step: m is the mean of z by the weights r·u·o, the scales are
    :math:`\sum r u o (z - m)^2 / \sum r o`.
    """

    family: StudentT

    def widths(self, d: int) -> tuple[int, ...]:
        """Return the numbers of features of the three channels."""
        return d, 3 * d, 1

    def features(self, y: Rows) -> Rows:
        """Return o; o, o·z and o·z²; and 1."""
        filled, seen = self._filled(y)
        z = np.where(seen, self.family.for_start(filled), 0.0)
        return np.concatenate([seen, seen, z, z * z, np.ones((len(z), 1))], axis=1)

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return φ of the features, and c."""
        phi, constant = self.family.natural(params)
        m, a = self.family.matrices(params)
        own = -0.5 * np.log(2.0 * np.pi * params["scales"])
        wide = np.concatenate([own, -0.5 * m * m / a, phi[:, 1:]], axis=1)
        return wide, constant - own.sum(axis=1)

    def e_step(self, y: Rows, params: Params) -> tuple[Array, list[Array]]:
        """Return log f of the observed cells, E[u | y, m] and E[log u − u | y, m]."""
        from scipy.special import gammaln, psi

        filled, seen = self._filled(y)
        (m, a), nu = self.family.matrices(params), params["degrees_of_freedom"]
        z, square = self.family.for_start(filled), np.empty((len(y), len(m)))
        for k in range(len(m)):
            away = np.where(seen, (z - m[k]) / np.sqrt(a[k]), 0.0)
            square[:, k] = (away * away).sum(axis=1)
        sizes, count = np.arange(y.shape[1] + 1.0)[:, None], seen.sum(axis=1)
        half = 0.5 * (nu + sizes)  # of each number of observed cells
        constant = gammaln(half) - gammaln(0.5 * nu) - 0.5 * sizes * np.log(nu * np.pi)
        logits = constant[count] - 0.5 * (seen @ np.log(params["scales"]).T)
        logits -= half[count] * np.log1p(square / nu)
        u = 2.0 * half[count] / (nu + square)
        return logits, [u, psi(half)[count] - np.log(0.5 * (nu + square)) - u]

    def clipped(self, counts: Array, sums: Array) -> Array:
        """Return sums with masses of observed cells from 0 to ``counts``."""
        d = (sums.shape[1] - 1) // 4
        return np.hstack([np.clip(sums[:, :d], 0.0, counts), sums[:, d:]])

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return means, scales and degrees of freedom; None if a component has no cell in a column."""
        d = (means.shape[1] - 1) // 4
        mass, size, total, squares, last = np.split(means, [d, 2 * d, 3 * d, 4 * d], axis=1)
        if not ((mass > 0.0).all() and (size > 0.0).all()):
            return None
        m = total / size
        return self.family.solve(m, (squares - total * m) / mass, last[:, 0])

    def drawn(self, y: Rows, params: Params, labels: Index, rng: np.random.Generator) -> Rows:
        """Return rows with random values in missing cells, which share u with the observed ones."""
        seen, nu = ~np.isnan(y), params["degrees_of_freedom"][labels]
        means, scales = params["means"][labels], params["scales"][labels]
        square = np.where(seen, (y - means) ** 2 / scales, 0.0).sum(axis=1)
        u = rng.gamma(0.5 * (nu + seen.sum(axis=1)), 2.0 / (nu + square))
        values = means + rng.normal(size=y.shape) * np.sqrt(scales / u[:, None])
        return np.where(seen, y, values)


def observed(family: Family) -> Family:
    """Return a family for rows with missing cells, block by block.

    Families without independent columns are returned unchanged: they check that no cell is missing.

    >>> from swiftem.mixture.families import read_family
    >>> observed(read_family({"poisson": [0, 1], "student-t": [2, 3]})).families[0]
    Observed(family=Poisson())
    """
    if isinstance(family, Blocks):
        return replace(family, families=tuple(map(observed, family.families)))
    if not family.takes_missing:
        return family
    return ObservedT(family) if isinstance(family, StudentT) else Observed(family)


def complete(family: Family) -> Family:
    """Return the family of complete rows.

    >>> from swiftem.mixture.families import Poisson
    >>> complete(observed(Poisson()))
    Poisson()
    """
    if isinstance(family, Blocks):
        return replace(family, families=tuple(map(complete, family.families)))
    return family.family if isinstance(family, Observed) else family


def widened(family: Family, counts: Array, sums: Array) -> Array:
    """Return sums of features (M, p) of complete rows of shares (M,), in the form for missing cells.

    >>> from swiftem.mixture.families import Poisson
    >>> widened(Observed(Poisson()), np.array([0.5]), np.array([[3.0, 4.0]]))
    array([[3. , 4. , 0.5, 0.5]])
    """
    if isinstance(family, Blocks):
        before = complete(family)
        assert isinstance(before, Blocks)
        wide = np.empty((len(sums), sum(map(len, family.places))))
        for part, old, new in zip(family.families, before.places, family.places, strict=True):
            wide[:, new] = widened(part, counts, sums[:, old])
        return wide
    if not isinstance(family, Observed):
        return sums
    if isinstance(family, ObservedT):
        d = sums.shape[1] // 2 - 1
        masses = np.repeat(np.column_stack([counts, sums[:, 0]]), d, axis=1)
        return np.hstack([masses, sums[:, 1:]])
    if family.is_coded:
        return np.column_stack([sums, np.zeros(len(sums))])
    return np.hstack([sums, np.repeat(counts[:, None], sums.shape[1] // family.family.kinds, axis=1)])
