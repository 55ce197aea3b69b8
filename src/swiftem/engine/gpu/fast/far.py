"""Passes if clusters are far apart: expanded squares only choose candidates, see ``list_kernels.py``."""

from __future__ import annotations

from typing import Any, cast

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from swiftem.engine.gpu.fast import list_kernels as kernels
from swiftem.engine.gpu.fast.lists import NEGLIGIBLE, Lists, chunk_of, in_two
from swiftem.engine.gpu.fast.rows import LOG2_E, PADDING, FastRows
from swiftem.engine.gpu.fast.two_passes import TwoPasses
from swiftem.engine.gpu.passes import Extents, Sums
from swiftem.engine.small_expectation import DIAG, SPHERICAL
from swiftem.models.components import Coefficients

__all__ = ["FarRows"]

PER_LOGIT = 2.0**-9
"""Largest error of the difference of two screened logits, per product of norms: four roundings to float16."""
FARTHEST = 1e12
"""Largest squared distance, in standard deviations, at which sums in float64 give variances."""


class FarRows(FastRows):
    """For spherical and diagonal covariances at any spread; ``rows`` are those of :class:`TwoPasses`."""

    NEEDS = ("phi", "constant", "means", "plain", "scales")
    SPLITS = 4

    def __init__(self, rows: TwoPasses) -> None:
        super().__init__(*rows.made_of)
        self._two = rows

    def _fill(self) -> None:
        """Do nothing: the rows are those of two passes."""

    def serves(self, at: Extents) -> bool:
        """Tell whether sums have enough digits."""
        return self._code in (DIAG, SPHERICAL) and at.squared_reach <= FARTHEST

    def sums(self, theta: Coefficients) -> Sums:
        """Return the sums of a full pass."""
        count, n, d, given = self._n_components, len(self._rows), len(self._unit), self._two.given(theta)
        padded, columns, device = len(given.scale), given.phi_hi.shape[1], given.scale.device
        lists = Lists(n, count, padded, padded // 64, chunk_of(n, padded, 128), device)
        sums = torch.zeros((self.SPLITS, count, 3, columns), dtype=torch.float64, device=device)
        means, whiten = sums.new_zeros((count, columns)), sums.new_zeros((count, columns))
        means[:, :d] = theta.means + self._rows.centre
        whiten[:, :d] = theta.scales * (0.5 * LOG2_E) ** 0.5
        plain = theta.plain * LOG2_E
        constant = plain.max()
        means = in_two(means)
        of_components = means, whiten.float(), torch.clamp(plain - constant, min=PADDING).float()
        screened, square = torch.full_like(given.scale, PADDING), torch.zeros_like(given.scale)
        screened[:count] = torch.clamp(theta.constant * LOG2_E - constant, min=PADDING).float()
        spherical = self._code == SPHERICAL
        if spherical:
            square[:count] = theta.phi[-1] * (float(self._unit[0]) ** 2 * LOG2_E)
        cut = self._cut(theta)
        of_rows = TensorDescriptor.from_tensor(self._two.hi, [128, columns])
        phi = TensorDescriptor.from_tensor(given.phi_hi, [64, columns])
        grid, options = (count, self.SPLITS), {"D": columns, "COLUMNS": d, "B": 32}
        for first, here, segments in lists.chunks():
            kernels.screen[(padded // 64, self._processors // 4)](
                of_rows, phi, self._two.norm, given.scale, screened, square, lists.logits, lists.maxima,
                first, here, lists.size, triton.cdiv(here, 128), B=128, C=64, SPHERICAL_ROWS=spherical,
                num_warps=8, num_stages=3,
            )  # fmt: skip
            lists.make(first, here, segments, cut)
            listed = lists.ends, lists.rows, lists.logits
            kernels.exact_logits[grid](
                self._rows.y, *of_components, *listed, first, lists.size, segments, **options
            )
            kernels.list_sums[grid](
                self._rows.y, self._weight, means, *listed, *lists.logarithms(first, here), sums, first,
                lists.size, segments, count, **options, WEIGHTED=self._weighted,
            )  # fmt: skip
        value = self._log_likelihood(self._log_of(lists.logs), constant)
        return Sums(self._about_centre(sums, theta.means), value)

    def _cut(self, theta: Coefficients) -> Any:
        """Return the largest difference of the logits of a candidate from the largest logit (1,)."""
        d, norm, phi = len(self._unit), self._rows.norm, cast(Any, theta.phi)
        logit = norm * torch.linalg.vector_norm(phi[:d], dim=0) + norm**2 * phi[d:].abs().amax(dim=0)
        return (NEGLIGIBLE + PER_LOGIT * LOG2_E * logit.max()).float().reshape(1)

    def _about_centre(self, sums: Any, means: Any) -> Any:
        """Return sums (M, 1 + p) about the centre of the data, from those about the means."""
        d = means.shape[1]
        counts, linear, squares = (sums.sum(dim=0) * self._largest_weight)[..., :d].unbind(1)
        squares = squares + 2.0 * means * linear + counts * means.square()
        linear = linear + counts * means
        if self._code == SPHERICAL:
            squares = squares.sum(dim=1, keepdim=True)
        return torch.cat([counts[:, :1], linear, squares], dim=1)
