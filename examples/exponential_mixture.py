"""A model of your own in one file: a mixture of exponential distributions.

Run it: python examples/exponential_mixture.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import swiftem
from swiftem import methods, models


class ExponentialMixtureTheta(NamedTuple):
    """Parameters: ``weights`` (M,) and ``rates`` (M,)."""

    weights: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True)
class ExponentialMixture(models.ExponentialFamilyModel):
    """Waiting times y > 0 of M kinds: g(y) = Σ_m weight_m · rate_m · exp(−rate_m · y).

    The statistics of a sample are (r_m, r_m·y), where r_m is the probability that it is of kind m.
    The penalty −ε Σ_m (log weight_m + log rate_m − rate_m) is conjugate and keeps weights and rates positive.
    """

    n_components: int = 2
    epsilon: float = 1e-3

    def initial_theta(self, y, rng):
        """Return equal weights and rates spread around the one that fits all samples."""
        spread = np.exp(rng.normal(size=self.n_components))
        return ExponentialMixtureTheta(np.full(self.n_components, 1 / self.n_components), spread / y.mean())

    def expected_statistics(self, y, theta):
        """E-step of samples (b,): statistics (b, 2M) and log-likelihood (b,)."""
        log_joint = np.log(theta.weights * theta.rates) - theta.rates * y[:, None]
        log_likelihood = np.logaddexp.reduce(log_joint, axis=1)
        r = np.exp(log_joint - log_likelihood[:, None])
        return np.hstack([r, r * y[:, None]]), log_likelihood

    def m_step(self, s):
        """Minimise penalty − Σ_m (s_m log(weight_m rate_m) − s_(M+m) rate_m), the weights summing to 1."""
        count, total = s[: self.n_components] + self.epsilon, s[self.n_components :] + self.epsilon
        return ExponentialMixtureTheta(count / count.sum(), count / total)

    def penalty(self, theta):
        """Return −ε Σ (log weight + log rate − rate)."""
        return -self.epsilon * float((np.log(theta.weights) + np.log(theta.rates) - theta.rates).sum())

    def in_domain(self, s):
        """Tell whether the M-step gives positive weights and rates."""
        return bool((s + self.epsilon > 0).all())


def main() -> None:
    """Fit two kinds of waiting times with all methods."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.exponential(1.0, size=700), rng.exponential(20.0, size=300)])
    model = ExponentialMixture()
    for name, method in methods.METHODS.items():
        n_iter = 30 if name == "em" else 30 * len(y)
        result = swiftem.run(model, y, method(), n_iter=n_iter, seed=0)
        value = swiftem.objective(model, y, result.theta)
        print(
            f"{name:7s} mean waiting times {np.sort(1 / result.theta.rates).round(2)}, objective {value:.5f}"
        )


if __name__ == "__main__":
    main()
