r"""Hidden Markov models: a sequence is a sample, and the components of a mixture are its emissions.

The states :math:`z_1, z_2, \dots` of a sequence are a Markov chain with start probabilities π and transitions
A, and step t has the density of component :math:`z_t`. A sequence's complete-data statistics are sums over
it,

.. math:: s_i = \big( E[z_1], \ \sum_t E[z_t z_{t+1}^T], \ \sum_t E[z_t] \otimes T(y_t) \big),

with expectations given the whole sequence, by the forward-backward recursion. How many steps are in each
state follows from the first two. The M-step has the closed forms

.. math:: \pi_k \propto s^{(1)}_k + (\alpha_k - 1) / W, \qquad
   A_{jk} \propto s^{(2)}_{jk} + (\beta_{jk} - 1) / W,

with Dirichlet priors, W steps and negative entries read as zero, and that of the mixture for the emissions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import as_floats, check_simplex
from swiftem.core.compute import Compute, Placement, choose
from swiftem.core.model import BoundModel, Model
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Index, Theta
from swiftem.hmm.compute import HMM, numpy
from swiftem.hmm.sequences import SequenceSource, Steps, steps_of
from swiftem.mixture.components import BoundComponents, width_of
from swiftem.mixture.model import MixtureModel
from swiftem.mixture.online import AnyMixtureModel

IMPOSSIBLE = (
    "data must have a positive probability under the model, got a sequence without: a transition or a value "
    "has probability zero in every state; give more states, priors or smoothing."
)


class MarkovTheta(NamedTuple):
    """Parameters: ``start`` (K,), ``transitions`` (K, K), and ``emissions``, of a mixture.

    The weights of the emissions are the share of steps in each state; no E-step uses them.
    """

    start: Array
    transitions: Array
    emissions: Theta

    @property
    def logs(self) -> tuple[Array, Array]:
        """Logarithms of the probabilities of the chain."""
        with np.errstate(divide="ignore"):
            return np.log(self.start), np.log(self.transitions)


class MarkovStatistics(NamedTuple):
    """Statistics, means over steps: ``start`` (K,), ``transitions`` (K, K), and the mixture's, flat."""

    start: Array
    transitions: Array
    emissions: Array


@dataclass(frozen=True, eq=False)
class MarkovModel(Model):
    """Hidden Markov model with K states.

    Parameters
    ----------
    emissions : GaussianMixtureModel or MixtureModel
        The states' distributions: its components. Its ``missing`` says what missing cells are.
    startprob_prior, transmat_prior : float or array-like
        Dirichlet priors, of shapes (K,) and (K, K), from 1 on.
    start_allowed, transitions_allowed : ndarray of bool, optional
        Which probabilities are not fixed to zero; by default none is.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import methods, models
    >>> from swiftem.data import ArraySource
    >>> from swiftem.hmm.model import MarkovModel
    >>> from swiftem.hmm.sequences import SequenceSource
    >>> model = MarkovModel(models.MixtureModel(2, "poisson"))
    >>> y = np.array([[0.0], [1.0], [9.0], [8.0], [1.0], [7.0], [9.0], [8.0]])
    >>> source = SequenceSource(ArraySource(y), np.array([4, 4]))
    >>> theta0 = model.theta([0.5, 0.5], np.full((2, 2), 0.5), rates=[[1.0], [5.0]])
    >>> theta = swiftem.run(model, source, methods.EM(), theta0=theta0, n_iter=30).theta
    >>> theta.transitions.round(2)
    array([[0.33, 0.67],
           [0.  , 1.  ]])
    """

    emissions: AnyMixtureModel
    startprob_prior: ArrayLike = 1.0
    transmat_prior: ArrayLike = 1.0
    start_allowed: NDArray[np.bool_] | None = None
    transitions_allowed: NDArray[np.bool_] | None = None

    @property
    def n_components(self) -> int:
        """K."""
        return int(self.emissions.n_components)

    @property
    def missing(self) -> str:  # type: ignore[override]
        """As of the emissions."""
        return self.emissions.missing

    @property
    def in_counts(self) -> bool:  # type: ignore[override]
        """Whether there is a prior in counts."""
        priors = np.ravel(self.startprob_prior), np.ravel(self.transmat_prior)
        return self.emissions.in_counts or bool((np.concatenate(priors) > 1.0).any())

    def allowed(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which start probabilities (K,) and transitions (K, K) are not fixed to zero."""
        k = self.n_components
        start, transitions = self.start_allowed, self.transitions_allowed
        return (
            np.ones(k, dtype=bool) if start is None else start,
            np.ones((k, k), dtype=bool) if transitions is None else transitions,
        )

    @property
    def n_free(self) -> int:
        """Number of free probabilities."""
        return int(sum(allowed.sum(axis=-1).sum() - allowed[..., 0].size for allowed in self.allowed()))

    def theta(self, start: ArrayLike, transitions: ArrayLike, **emissions: Any) -> MarkovTheta:
        """Return validated parameters; others as in ``theta`` of the mixture."""
        return MarkovTheta(*self.check_chain(start, transitions, ""), self.emissions.theta(**emissions))

    def check_chain(self, start: ArrayLike, transitions: ArrayLike, prefix: str) -> tuple[Array, Array]:
        """Return start probabilities and transitions in new arrays; errors use their names."""
        k = self.n_components
        first = as_floats(f"{prefix}start", start, shape=(k,)).copy()
        then = as_floats(f"{prefix}transitions", transitions, shape=(k, k)).copy()
        check_simplex(f"{prefix}start", first)
        for row in then:
            check_simplex(f"each row of {prefix}transitions", row)
        may_start, may_follow = self.allowed()
        if first[~may_start].any() or then[~may_follow].any():
            raise ValueError(
                f"{prefix}start and {prefix}transitions must be zero where they are fixed to zero."
            )
        return first, then

    def bind(self, source: Source) -> BoundMarkov:
        """Return the model for these sequences."""
        steps = _sequences(source).steps
        return self._bound(self.emissions.learnt(steps).bind(steps), source)

    def bind_near(self, source: Source, theta: Theta) -> BoundMarkov:
        """Return the model for E-steps at θ, without a pass for the mean of the steps."""
        emissions, steps = theta.emissions, _sequences(source).steps
        if isinstance(self.emissions, MixtureModel):
            centre = np.zeros(self.emissions.width(width_of(steps)))
        else:
            centre = emissions.weights @ emissions.means
        return self._bound(self.emissions.bind(steps, centre=centre), source)

    def bind_past(self, source: Source, centre: Array, share: float) -> BoundMarkov:
        """Return the model for more sequences, with statistics about ``centre`` and a part of the priors."""
        emissions, steps = self.emissions, _sequences(source).steps
        emissions = emissions if self.missing == "error" else emissions.with_holes()
        if len(centre) != emissions.width(width_of(steps)):
            _, centre = emissions.widened(np.empty(0), centre)
        bound = self._bound(emissions.bind(steps, centre=centre), source)
        priors = bound.start_prior * share, bound.transitions_prior * share
        return BoundMarkov(bound.model, bound.emissions.with_share(share), *priors)

    def _bound(self, emissions: BoundComponents, source: Source) -> BoundMarkov:
        k = self.n_components
        priors = (
            np.where(allowed, np.broadcast_to(np.asarray(prior, dtype=np.float64), shape) - 1.0, 0.0)
            / source.total_weight
            for allowed, prior, shape in zip(
                self.allowed(), (self.startprob_prior, self.transmat_prior), ((k,), (k, k)), strict=True
            )
        )
        return BoundMarkov(self, emissions, *priors)


def _sequences(source: Source) -> SequenceSource:
    if not isinstance(source, SequenceSource):
        raise TypeError("data must be sequences, swiftem.hmm.sequences.SequenceSource.")
    return source


@dataclass(frozen=True, eq=False)
class BoundMarkov(BoundModel):
    """A :class:`MarkovModel` for its data.

    Attributes
    ----------
    emissions : BoundComponents
        The mixture, bound to the steps.
    start_prior, transitions_prior : ndarray, shapes (K,) and (K, K)
        Priors, for means over steps; zero where a probability is fixed to zero.
    """

    model: MarkovModel
    emissions: BoundComponents
    start_prior: Array
    transitions_prior: Array

    @property
    def n_components(self) -> int:
        """K."""
        return self.model.n_components

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """K: a row begins with the probabilities of the first state."""
        return self.n_components

    @property
    def is_held(self) -> bool:
        """False: start and transitions are estimated."""
        return False

    @property
    def size(self) -> int:  # type: ignore[override]
        """q: K, K² and the mixture's statistics without its counts, which follow from these."""
        return self.n_components**2 + self.emissions.size

    @property
    def row_length(self) -> int:  # type: ignore[override]
        """R: a row has the statistics of its sequence."""
        return self.size

    def compute(self, source: Source, placement: Placement) -> Compute:
        """Return the E-steps in the first technology that can be used."""
        return choose(HMM, self, source, placement)

    def like(self) -> MarkovTheta:
        """Return parameters with arrays of the right shapes."""
        k = self.n_components
        return MarkovTheta(np.empty(k), np.empty((k, k)), self.emissions.like())

    def uniform(self) -> tuple[Array, Array]:
        """Return equal start probabilities and transitions, where they are not fixed to zero."""
        start, transitions = (given / given.sum(axis=-1, keepdims=True) for given in self.model.allowed())
        return start, transitions

    def initial_theta(self, rng: np.random.Generator) -> MarkovTheta:
        """Return equal probabilities, and a random start of the mixture."""
        return MarkovTheta(*self.uniform(), self.emissions.initial_theta(rng))

    def check_theta(self, theta: Theta, name: str = "theta0") -> MarkovTheta:
        """Return ``theta``, checked against model and data."""
        if not isinstance(theta, MarkovTheta):
            raise TypeError(f"{name} must be made by model.theta, got {type(theta).__name__}.")
        chain = self.model.check_chain(theta.start, theta.transitions, f"{name}.")
        return MarkovTheta(*chain, self.emissions.check_theta(theta.emissions, f"{name}.emissions"))

    def log_densities(self, steps: Steps, theta: MarkovTheta, first: int = 0) -> Array:
        """Return the log-densities of steps in each state, (t, K): zero for a step without observed cells."""
        logs = self.emissions.log_densities(steps.batch(first), theta.emissions)
        return np.require(logs, np.float64, ["C", "W"])

    def rows_of(self, steps: Steps, theta: MarkovTheta, gamma: Array) -> Array:
        """Return the mixture's rows (t, R) of steps whose states have probabilities ``gamma`` (t, K).

        They are these unless a row also has expectations given each component, which an E-step with the
        weight of one component alone has.
        """
        k, batch = self.n_components, steps.batch()
        if self.emissions.row_length == k:
            return gamma
        alone = (
            self.emissions.posterior(batch, theta.emissions._replace(weights=one))[0] for one in np.eye(k)
        )
        return np.asarray(sum(rows * gamma[:, m, None] for m, rows in enumerate(alone)))

    def of_emissions(self, steps: Steps, theta: MarkovTheta, gamma: Array, weight: Array) -> Array:
        """Return the mixture's statistics of steps without its counts, weighted by (t,)."""
        rows = self.rows_of(steps, theta, gamma)
        return self.emissions.statistics(steps.batch(), rows, weight)[self.n_components :]

    def posterior(self, batch: Batch, theta: MarkovTheta) -> tuple[Array, Array]:
        """E-step: statistics (b, q) and log-likelihood (b,) of the sequences."""
        steps = steps_of(batch)
        logs, rows = self.log_densities(steps, theta), np.empty((len(batch.index), self.size))
        log_likelihood = np.empty(len(rows))
        for i, here in enumerate(map(slice, steps.begin[:-1], steps.begin[1:])):
            gamma, counts, terms = numpy.forward_backward(logs[here], *theta.logs)
            if terms[-1] == -np.inf:
                raise ValueError(IMPOSSIBLE)
            emissions = self.of_emissions(steps.piece(here), theta, gamma, np.ones(len(gamma)))
            rows[i], log_likelihood[i] = np.hstack([gamma[0], counts.ravel(), emissions]), terms.sum()
        return rows, log_likelihood

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the sequences' statistics."""
        return np.asarray(
            np.einsum("i,iq->q", weight, rows)
        )  # not by BLAS, whose last bit depends on its threads

    def unpack(self, s: Array) -> MarkovStatistics:
        """Return named views of flat statistics; those of the mixture in a new array, with its counts."""
        if np.shape(s) != (self.size,):
            raise ValueError(f"s must have shape ({self.size},), got {np.shape(s)}.")
        k = self.n_components
        start, transitions = s[:k], s[k : k + k * k].reshape(k, k)
        counts = start + transitions.sum(axis=0)
        return MarkovStatistics(start, transitions, np.concatenate([counts, s[k + k * k :]]))

    def widened(self, s: Array) -> Array:
        """Return statistics of complete steps in the form of this model, which may be for missing cells."""
        if len(s) == self.size:
            return s
        k, model = self.n_components, self.emissions.model
        counts = s[:k] + s[k : k + k * k].reshape(k, k).sum(axis=0)
        emissions, _ = model.widened(np.concatenate([counts, s[k + k * k :]]), np.zeros(self.emissions.d))
        return np.concatenate([s[: k + k * k], emissions[k:]])

    def in_domain(self, s: Array) -> bool:
        """Return whether there are sequences, and the mixture's M-step exists."""
        parts = self.unpack(s)
        is_finite = bool(np.isfinite(s).all())
        return is_finite and bool((parts.start > 0.0).any()) and self.emissions.in_domain(parts.emissions)

    @property
    def ILL_DEFINED(self) -> str:
        """The error for data that do not allow such states."""
        return self.emissions.ILL_DEFINED

    def dead(self, s: Array, n: int) -> Index:
        """Return the states without steps."""
        return self.emissions.dead(self.unpack(s).emissions, n)

    def collapsed(self, s: Array) -> Index:
        """Return the states without an M-step of their own, or all."""
        found = self.emissions.collapsed(self.unpack(s).emissions)
        return found if len(found) else np.arange(self.n_components)

    def m_step(self, s: Array) -> MarkovTheta:
        """Return θ; a row of transitions without counts is uniform over those not fixed to zero."""
        parts, (may_start, may_follow) = self.unpack(s), self.model.allowed()
        start = _normalised(parts.start, self.start_prior, may_start)
        transitions = _normalised(parts.transitions, self.transitions_prior, may_follow)
        return MarkovTheta(start, transitions, self.emissions.m_step(parts.emissions))

    def penalty(self, theta: MarkovTheta) -> float:
        """Return the priors' part of the objective."""
        value = self.emissions.penalty(theta.emissions)
        for prior, given in ((self.start_prior, theta.start), (self.transitions_prior, theta.transitions)):
            held = prior > 0.0
            with np.errstate(divide="ignore"):
                value -= float((prior[held] * np.log(given[held])).sum())
        return value

    def unit_factors(self, s: Array) -> Array:
        """Return ones for probabilities, and the mixture's factors."""
        k, emissions = self.n_components, self.emissions.unit_factors(self.unpack(s).emissions)
        return np.concatenate([np.ones(k + k * k), emissions[k:]])


def _normalised(counts: Array, prior: Array, allowed: NDArray[np.bool_]) -> Array:
    """Return max(counts, 0) + prior as probabilities along the last axis; uniform if there are none.

    >>> allowed = np.array([[True, True], [False, True]])
    >>> _normalised(np.array([[1.0, 3.0], [0.0, 0.0]]), np.zeros((2, 2)), allowed)
    array([[0.25, 0.75],
           [0.  , 1.  ]])
    """
    filled = np.where(allowed, np.maximum(counts, 0.0) + prior, 0.0)
    totals = filled.sum(axis=-1, keepdims=True)
    uniform = allowed / allowed.sum(axis=-1, keepdims=True)
    return np.where(totals > 0.0, filled / np.where(totals > 0.0, totals, 1.0), uniform)
