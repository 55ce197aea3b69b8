r"""Successes in a known number of trials: independent binomial columns, with a probability for each.

T(y) = y, φ = log p − log(1 − p), c = Σ_j N_j log(1 − p_j) and h(y) = Π_j (N_j choose y_j), where N_j is the
number of trials of a column. M-step: p is the mean divided by N.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swiftem.core.checks import check_int
from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.bernoulli import Bernoulli
from swiftem.mixture.families.family import Columns, Family, Params

MOST = 1 << 53
"""Maximum number of trials: larger counts are not exact."""


@dataclass(frozen=True)
class Binomial(Bernoulli):
    """Counts 0, 1, ..., ``trials``; ``params_["probabilities"]`` has shape (M, d).

    Parameters
    ----------
    trials : int or tuple of int, optional
        Number of trials: one for all columns, or one per column. By default the largest count of each column
        in the data of the fit, which is right if a row reaches it.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.binomial(10, np.where(rng.random((2000, 1)) < 0.3, [[0.9, 0.5]], [[0.2, 0.4]]))
    >>> family = swiftem.families.Binomial(trials=10)
    >>> mixture = swiftem.Mixture(2, family=family, random_state=0).fit(X)
    >>> mixture.params_["probabilities"].round(1)
    array([[0.9, 0.5],
           [0.2, 0.4]])
    """

    name = "binomial"
    learnt = ("trials",)

    trials: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for count in self.trials if isinstance(self.trials, tuple) else (self.trials,):
            if count is not None:
                check_int("trials", count, minimum=1, maximum=MOST)

    @property
    def bounds(self) -> tuple[Any, Any]:  # type: ignore[override]
        """Zero and the number of trials."""
        return 0.0, np.inf if self.trials is None else np.array(self.trials, dtype=np.float64)

    def learn(self, columns: Columns) -> Family:
        """Set the trials of each column to its largest count."""
        return replace(self, trials=tuple(int(most) for most in np.clip(columns.highest, 1.0, MOST)))

    def trials_of(self, d: int) -> Array:
        """Return N, the number of trials of each column."""
        if self.trials is None:
            raise ValueError(
                "trials must be given if there are no data to find them in: Binomial(trials=10)."
            )
        if isinstance(self.trials, tuple) and len(self.trials) != d:
            raise ValueError(f"trials must be one number or one per column ({d}), got {len(self.trials)}.")
        return np.broadcast_to(np.array(self.trials, dtype=np.float64), (d,))

    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for values that are not counts of successes."""
        trials = self.trials_of(y.shape[1])
        bad = (y < 0) | (y != np.floor(y)) | (y > trials)
        if bad.any():
            column = int(np.argmax(bad.any(axis=0)))
            value = y[:, column][bad[:, column]][0]
            raise ValueError(
                f"must be counts from 0 to {trials[column]:.0f} (trials) in column {column}, got {value:g}"
            )

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return counts of successes."""
        yes = params["probabilities"][labels]
        trials = self.trials_of(yes.shape[1]).astype(np.int64)
        return np.asarray(rng.binomial(trials, yes), dtype=np.float64)

    def log_bases(self, y: Rows) -> Array | None:
        """Return log (N choose y)."""
        from scipy.special import gammaln

        y, trials = y.astype(np.float64), self.trials_of(y.shape[1])
        return np.asarray(gammaln(trials + 1.0) - gammaln(y + 1.0) - gammaln(trials - y + 1.0))
