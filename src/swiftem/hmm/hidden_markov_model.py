"""``swiftem.HiddenMarkovModel``: hidden states of sequences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import pairwise
from math import ceil, inf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core import schedules
from swiftem.core.checks import as_floats, check_choice, check_int, shown
from swiftem.core.problem import Problem, check_access
from swiftem.core.process import clock
from swiftem.core.types import Array, Index
from swiftem.data.array import ArraySource
from swiftem.fit.config import budget
from swiftem.fit.driver import StartWatch
from swiftem.fit.estimator import Estimator
from swiftem.fit.history import History
from swiftem.fit.model_file import ModelContent
from swiftem.fit.parameters import (
    ARRAY,
    AT_LEAST_ONE,
    COMMON,
    NONE,
    NOT_NEGATIVE,
    Allowed,
    instance_of,
    one_of,
)
from swiftem.fit.selection import Candidate, Selection
from swiftem.hmm import plots
from swiftem.hmm.fit import MarkovEm
from swiftem.hmm.model import BoundMarkov, MarkovModel, MarkovTheta
from swiftem.hmm.read import divided, sequences_of
from swiftem.hmm.sequences import SequenceSource, Steps, steps_of
from swiftem.kernels.threads import in_order, one_thread_blas
from swiftem.methods import METHODS, Method, OnlineEM
from swiftem.mixture.estimator import MixtureEstimator, criteria
from swiftem.mixture.file import file_types
from swiftem.mixture.fit import MixtureFit, certified, fit_from
from swiftem.mixture.gaussian_mixture import GaussianMixture
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.resolve import METHOD_NAMES, Facts, resolve
from swiftem.mixture.starts.race import find_starts
from swiftem.mixture.starts.settings import Start, StartSettings, check_start
from swiftem.mixture.tables.profile import percent_text
from swiftem.show.numbers import counted, criterion_text, mean_text
from swiftem.show.table import Table

if TYPE_CHECKING:
    from swiftem.hmm.compute.emissions import Emissions

__all__ = ["HiddenMarkovModel"]

T = TypeVar("T")
PART = 4096
"""Maximum number of sequences computed at a time."""
BATCHES, BATCH_STEPS = 128, 1024
"""Batches of an epoch of a stochastic method, if each has so many steps."""
NOT_CONVERGED = "The fit did not converge: increase max_iter or tol."
POWER = 2.0
"""In a stream from scratch the weight of a step grows with this power of the total weight before it."""


class Past(NamedTuple):
    """What a later ``partial_fit`` needs.

    Attributes
    ----------
    s, centre : ndarray
        Statistics, or None, and the centre of the emissions' statistics.
    seen : float
        Total weight of the steps so far.
    power : float
        Power of it with which the weight of a step grows.
    """

    s: Array | None
    centre: Array
    seen: float
    power: float = 0.0


@dataclass(eq=False, repr=False)
class HiddenMarkovModel(DensityMixin, Estimator):  # type: ignore[misc]
    """Hidden Markov model: sequences whose steps depend on a hidden state that changes from step to step.

    The states are a Markov chain, and the steps have a distribution of any family of
    :class:`swiftem.Mixture` in each state. X is an array of all steps with the ``lengths`` of the sequences,
    as in hmmlearn, a list of arrays, or a table or a file with a column that names the ``sequence``.

    Parameters
    ----------
    n_components : int
        Number of states.
    family : str, Family or dict
        Distribution of a step in each state: "gaussian", or a family or columns of families as in
        :class:`swiftem.Mixture`.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Kind of the covariances of "gaussian".
    reg_covar : float
        Added to the variances of "gaussian" in the M-step.
    smoothing : float
        Size of the prior of other families, as in :class:`swiftem.Mixture`.
    startprob_prior, transmat_prior : float or array-like
        Dirichlet priors of start probabilities and transitions, from 1 on, of shapes (K,) and (K, K) or
        common to all.
    startprob_init, transmat_init : array-like, optional
        Where to start. Zeros stay zero, as in left-right models.
    params_init : dict of array-like, optional
        Parameters of the states to start from, as in ``params_``.
    init_params : {"race", "kmeans", "k-means++", "random", "random_from_data"}
        How the states are found at the start, from single steps, as in :class:`swiftem.GaussianMixture`; the
        transitions then follow from a first pass.
    algorithm : {"viterbi", "map"}
        What :meth:`predict` returns: the most likely sequence of states, or the most likely state of each
        step.
    tol : float
        A fit has converged if em gains less than this in the mean log-likelihood per step and pass, and all
        further passes would gain less than eight times this.
    max_iter : int
        Maximum number of passes over the data.
    n_init : int
        Number of starts, as in :class:`swiftem.GaussianMixture`.
    random_state, warm_start, verbose
        As in :class:`swiftem.Mixture`.
    method : str or Method
        How to fit, as in :class:`swiftem.GaussianMixture`; "auto" is em. A stochastic method draws sequences,
        and needs several of them.
    missing : {"error", "ignore"}
        Missing cells, as in :class:`swiftem.Mixture`; a step may be missing as a whole.
    device : {"auto", "cpu"}
        There are no passes on a GPU.

    Attributes
    ----------
    startprob_ : ndarray, shape (K,)
        Probabilities of the first state.
    transmat_ : ndarray, shape (K, K)
        Probabilities of the next state, a row for each state.
    emissions_ : GaussianMixture or Mixture
        The states' distributions as a mixture; its weights are the share of steps in each state. Its
        fitted attributes, such as ``means_`` and ``covariances_``, or ``params_`` and ``family_``, are the
        model's, too.
    sequence_name_ : str or None
        Column that named the sequences.
    converged_, n_iter_, lower_bound_, lower_bounds_, method_, history_, stationarity_, log_likelihood_, \
n_features_in_, feature_names_in_
        As in :class:`swiftem.Mixture`; objectives and log-likelihoods are means over steps.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat(rng.permutation(np.arange(40) % 2), 10)
    >>> X = rng.normal(3.0 * states)[:, None]
    >>> model = swiftem.HiddenMarkovModel(2, random_state=0).fit(X, lengths=[150, 250])
    >>> np.sort(model.means_.ravel()).round(1)
    array([-0.1,  3.1])
    >>> model.transmat_.diagonal().round(1)
    array([0.9, 0.9])
    """

    _results: ClassVar[Mapping[str, type]] = Estimator._results | {"sequence_name_": str}  # type: ignore[operator]
    _allowed: ClassVar[dict[str, Sequence[Allowed]]] = {
        **COMMON,
        "family": Mixture._allowed["family"],
        "covariance_type": GaussianMixture._allowed["covariance_type"],
        "reg_covar": [NOT_NEGATIVE],
        "smoothing": [NOT_NEGATIVE],
        "params_init": [NONE, instance_of(dict)],
        "startprob_init": [NONE, ARRAY],
        "transmat_init": [NONE, ARRAY],
        "init_params": [MixtureEstimator._allowed["init_params"][0]],
        "algorithm": [one_of(["viterbi", "map"])],
        "max_iter": [AT_LEAST_ONE],
        "n_init": [AT_LEAST_ONE],
        "method": [one_of(METHOD_NAMES), instance_of(Method)],
        "missing": MixtureEstimator._allowed["missing"],
        "device": [one_of(["auto", "cpu"])],
    }

    n_components: int = 1
    _: KW_ONLY
    family: Any = "gaussian"
    covariance_type: str = "diag"
    reg_covar: float = 1e-6
    smoothing: float = 1e-3
    startprob_prior: ArrayLike = 1.0
    transmat_prior: ArrayLike = 1.0
    startprob_init: ArrayLike | None = None
    transmat_init: ArrayLike | None = None
    params_init: Mapping[str, ArrayLike] | None = None
    init_params: str = "race"
    algorithm: str = "viterbi"
    tol: float = 1e-4
    max_iter: int = 100
    n_init: int = 1
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0
    method: str | Method = "auto"
    missing: str = "error"
    device: str = "auto"

    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute of the emissions."""
        if name.endswith("_") and not name.startswith("_") and "emissions_" in vars(self):
            return getattr(self.emissions_, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "ignore"
        return tags

    def _mixture(self) -> MixtureEstimator:
        """Return the unfitted mixture that reads steps, and is the states' distributions after a fit."""
        common: dict[str, Any] = {"missing": self.missing, "device": "cpu", "init_params": self.init_params}
        if isinstance(self.family, str) and self.family == "gaussian":
            common |= {"covariance_type": self.covariance_type, "reg_covar": self.reg_covar}
            return GaussianMixture(self.n_components, **common)
        return Mixture(self.n_components, family=self.family, smoothing=self.smoothing, **common)

    def _model(self, mixture: MixtureEstimator) -> MarkovModel:
        """Return the model, in which zeros of given probabilities are fixed."""
        k, given = self.n_components, []
        for name, shape in (("startprob_init", (k,)), ("transmat_init", (k, k))):
            value = getattr(self, name)
            given.append(None if value is None else as_floats(name, value, shape=shape) > 0.0)
        for name, shape in (("startprob_prior", (k,)), ("transmat_prior", (k, k))):
            prior = as_floats(name, getattr(self, name))
            if prior.shape not in ((), shape) or not (prior >= 1.0).all():
                raise ValueError(
                    f"{name} must be a number or an array {shape} of at least 1, got {shown(prior)}."
                )
        fitted = hasattr(mixture, "weights_")
        emissions = mixture._fitted_model() if fitted else mixture._model()
        return MarkovModel(emissions, self.startprob_prior, self.transmat_prior, *given)

    def _read(
        self, mixture: MixtureEstimator, data: tuple[Any, Any, Any], weight: Any = None, *, reset: bool
    ) -> SequenceSource:
        """Return the sequences; ``data`` are X, lengths and sequence."""
        X, lengths = divided(*data, self.missing == "ignore")
        rows = mixture._read(X, None, reset=True).source if reset else self._as_fitted()._source(X)
        return sequences_of(rows, lengths, weight)

    def _as_fitted(self) -> MixtureEstimator:
        """Return the emissions with the names of columns and the parameters of today."""
        if "feature_names_in_" in vars(self):
            self.emissions_.feature_names_in_ = self.feature_names_in_
        self.emissions_.set_params(missing=self.missing)
        return self.emissions_

    @property
    def _theta(self) -> MarkovTheta:
        return MarkovTheta(self.startprob_, self.transmat_, self.emissions_._theta())

    def _bound(self, source: SequenceSource) -> BoundMarkov:
        """Return the fitted model for new sequences."""
        return self._model(self.emissions_).bind_near(source, self._theta)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: ArrayLike | None = None,
        sequence: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Estimate the parameters.

        Parameters
        ----------
        X : array-like of shape (t, d), list of them, data frame, path or source
            The steps of all sequences, one after the other, or a list with an array for each sequence. Files
            are read on demand.
        y : ignored
            For scikit-learn's conventions; ``fit(X, lengths)`` is hmmlearn's.
        lengths : array-like of int, shape (n,), optional
            Number of steps of each sequence; by default X is one sequence.
        sequence : str, int or array-like, optional
            Instead of ``lengths``: the column of a data frame or a file that names the sequence of each step,
            or an array (t,) of such names. Steps of a sequence follow each other.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights of the sequences.

        Returns
        -------
        self
            Ctrl-C leaves a fitted model, with a warning, unless the start is not found yet.
        """
        self._validate_params()
        warm = self._theta if self.warm_start and hasattr(self, "emissions_") else None
        if warm is not None and len(warm.start) != self.n_components:
            raise ValueError(
                f"n_components must be {len(warm.start)}, as fitted, for warm_start, got {self.n_components}."
            )
        mixture = self._mixture() if warm is None else self.emissions_
        data = (X, self._lengths(X, y, lengths), sequence)
        source = self._read(mixture, data, sample_weight, reset=True)
        self._fit(source, mixture, warm)
        self.sequence_name_ = sequence if isinstance(sequence, str) else None
        return self

    def _fit(self, source: SequenceSource, mixture: MixtureEstimator, warm: MarkovTheta | None) -> None:
        model, limits = self._model(mixture), budget()
        problem = Problem(model, source, budget=limits)
        bound: BoundMarkov = problem.bound
        facts = Facts(source.n, int(source.lengths.sum()), bound.size, "named", is_free=False)
        spec = resolve(self.get_params(deep=False) | {"method": self._method(source)}, facts)
        if spec.method is not None and source.n < 2:
            raise ValueError(
                f"method must be 'em' for one sequence, got {spec.name!r}, which draws sequences."
            )
        check_access(spec.for_run, source)
        with self._checkpoint_of(source, warm) as kept:
            kept.allocate = limits.reserve(
                source, spec.for_run, statistics=bound.size, starts=True
            ).make_memory

            def check(made: Any) -> None:
                for start in made[0]:
                    check_start(problem.bound, start.theta, start.s)

            starts, seeds = kept.starts(partial(self._starts, bound, source, warm), check)

            def one(number: int, watch: StartWatch) -> MixtureFit:
                given = problem, spec, seeds[number], watch, kept.of_start(number)
                return fit_from(starts[number], *given, em_step=MarkovEm)

            with self._watcher(len(starts), most_passes=self.max_iter) as watcher:
                fit = max(watcher.map(one), key=lambda fit: fit.bound if np.isfinite(fit.bound) else -inf)
                fit = fit if spec.method is not None else certified(fit, problem, spec)
                self._take(mixture, bound, fit.theta)
                watcher.is_fitted = True
        self.converged_, self.n_iter_, self.method_ = (
            fit.converged,
            int(np.ceil(fit.passes - 1e-9)),
            spec.name,
        )
        self.lower_bound_, self.lower_bounds_ = fit.bound, [-moment.objective for moment in fit.moments]
        self.history_, self.stationarity_ = History(fit.moments), fit.stationarity
        self.log_likelihood_ = float(bound.penalty(fit.theta) - fit.objective)
        self._warn_of_end(fit, NOT_CONVERGED)
        self._past = Past(fit.s, bound.emissions.about, source.total_weight)

    def _method(self, source: SequenceSource) -> str | Method:
        """Return the method with a batch size for sequences, unless it has one, or the library chooses it."""
        method, steps = self.method, float(source.lengths.mean())
        if isinstance(method, str):
            if method == "auto":
                return method
            method = METHODS[method]()
        return method.resolved(batch_size=min(source.n, max(source.n // BATCHES, ceil(BATCH_STEPS / steps))))

    def _starts(
        self, bound: BoundMarkov, source: SequenceSource, warm: MarkovTheta | None
    ) -> tuple[list[Start], list[int]]:
        """Return the starts of the fits, and their seeds."""
        random_state = check_random_state(self.random_state)
        if warm is not None:
            found = [Start(warm, None, 0)]
        else:
            emissions = Problem(bound.emissions.model, source.steps, bound=bound.emissions)
            if self.params_init is not None:
                given = [Start(bound.emissions.model.theta(**self.params_init), None, 0)]
            else:
                settings = StartSettings(self.init_params, self.n_init, float(self.tol))
                given = find_starts(emissions, settings, random_state, is_for_em=False)
            found = [start._replace(theta=self._chain(bound, start.theta), s=None) for start in given]
        return found, random_state.randint(np.iinfo(np.int32).max, size=len(found)).tolist()

    def _chain(self, bound: BoundMarkov, emissions: Any) -> MarkovTheta:
        """Return θ with given probabilities of the chain, or of steps that are independent."""
        k = self.n_components
        start, transitions = emissions.weights, np.tile(emissions.weights, (k, 1))
        if self.startprob_init is not None:
            start = as_floats("startprob_init", self.startprob_init, shape=(k,))
        if self.transmat_init is not None:
            transitions = as_floats("transmat_init", self.transmat_init, shape=(k, k))
        return bound.check_theta(MarkovTheta(start, transitions, emissions), "startprob_init, transmat_init")

    def _set(self, chain: Sequence[Array], mixture: MixtureEstimator) -> None:
        """Set the fitted parameters: start probabilities and transitions, and a fitted mixture."""
        self.startprob_, self.transmat_, self.emissions_ = chain[0], chain[1], mixture
        self.n_features_in_ = mixture.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if "feature_names_in_" in vars(mixture):
            self.feature_names_in_ = mixture.feature_names_in_

    def _take(self, mixture: MixtureEstimator, bound: BoundMarkov, theta: MarkovTheta) -> None:
        """Set the fitted parameters from θ, and the mixture that has read the steps."""
        mixture._become(theta.emissions, bound.emissions.d, bound.emissions.model)
        self._set(theta[:2], mixture)

    def attributes_of(self, theta: MarkovTheta) -> dict[str, Any]:
        """Return the attributes for ``theta``, for callbacks."""
        return {"startprob_": theta.start, "transmat_": theta.transitions}

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: ArrayLike | None = None,
        sequence: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Update the model with more sequences, by online EM; memory use does not grow with the data.

        The first call fits its sequences, or continues from a fitted model. After ``fit`` every step counts
        once, also those of the fit; in a stream that begins with ``partial_fit`` early steps fade. With
        ``method=methods.OnlineEM(step_size=0.05)`` each call has this share.

        Parameters
        ----------
        X, y, lengths, sequence, sample_weight
            As in :meth:`fit`: whole sequences.
        """
        self._validate_params()
        data = (X, self._lengths(X, y, lengths), sequence)
        if not hasattr(self, "emissions_"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                mixture = self._mixture()
                self._fit(self._read(mixture, data, sample_weight, reset=True), mixture, None)
            self._past = self._past._replace(power=POWER)
            return self
        source, theta, past = (
            self._read(self.emissions_, data, sample_weight, reset=False),
            self._theta,
            self._past,
        )
        seen = past.seen + source.total_weight
        bound = self._model(self.emissions_).bind_past(source, past.centre, source.total_weight / seen)
        compute = Problem(bound.model, source, bound=bound).compute
        s, self.lower_bound_ = compute.full(theta), -compute.objective(theta)
        share = 1.0 - (past.seen / seen) ** (1.0 + past.power)
        if isinstance(self.method, OnlineEM) and "step_size" not in self.method.left_out:
            share = schedules.resolve(self.method.step_size, source.n, source.n)(self.n_iter_ + 1)
        before = s if past.s is None else bound.widened(past.s)
        s = before + share * (s - before)
        if bound.in_domain(s):
            self._take(self.emissions_, bound, bound.m_step(s))
        self._past = past._replace(s=s, seen=seen)
        self.converged_, self.method_, self.n_iter_ = False, "sem", self.n_iter_ + 1
        self.stationarity_ = self.log_likelihood_ = np.nan
        return self

    @staticmethod
    def _lengths(X: Any, y: Any, lengths: ArrayLike | None) -> ArrayLike | None:
        """Return the lengths, which hmmlearn takes by position, where scikit-learn has y."""
        if y is None or lengths is not None or np.ndim(y) != 1:
            return lengths
        return y if len(y) != (X.shape[0] if hasattr(X, "shape") else len(X)) else None

    def _over(self, function: Callable[..., T], X: Any, lengths: Any, sequence: Any) -> Iterator[T]:
        """Yield ``function(emissions, steps)`` of parts of the sequences, computed by several threads."""
        check_is_fitted(self)
        source = self._read(self.emissions_, (X, lengths, sequence), reset=False)
        from swiftem.hmm.compute.emissions import Emissions  # with what is compiled

        emissions = Emissions(self._bound(source), self._theta)
        work = ((emissions, steps_of(batch)) for batch in source.blocks(PART))
        with one_thread_blas(), closing(in_order(function, work)) as done:
            yield from done

    def predict(self, X: Any, lengths: ArrayLike | None = None, sequence: Any = None) -> Index:
        """Return the states of all steps, by ``algorithm``.

        Parameters
        ----------
        X, lengths, sequence
            As in :meth:`fit`.

        Returns
        -------
        ndarray of int, shape (t,)
            States.
        """
        return self.decode(X, lengths, sequence)[1]

    def decode(
        self, X: Any, lengths: ArrayLike | None = None, sequence: Any = None, *, algorithm: str | None = None
    ) -> tuple[float, Index]:
        """Return the states of all steps, and their log joint density, or the sum of log-probabilities.

        Parameters
        ----------
        X, lengths, sequence
            As in :meth:`fit`.
        algorithm : {"viterbi", "map"}, optional
            Instead of the parameter.

        Returns
        -------
        value : float
            Of "viterbi", the log joint density of steps and states; of "map", Σ log γ of the states.
        states : ndarray of int, shape (t,)
            States.
        """
        algorithm = self.algorithm if algorithm is None else algorithm
        check_choice("algorithm", algorithm, ("viterbi", "map"))
        function = most_likely_states if algorithm == "viterbi" else likely_states
        values, states = zip(*self._over(function, X, lengths, sequence), strict=True)
        return float(np.concatenate(values).sum()), np.concatenate(states)

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None, sequence: Any = None) -> Array:
        """Return the probabilities of the states (t, K) of each step, given its whole sequence.

        Parameters
        ----------
        X, lengths, sequence
            As in :meth:`fit`.
        """
        return np.concatenate([gamma for gamma, _ in self._over(smooth, X, lengths, sequence)])

    def score_samples(self, X: Any, lengths: ArrayLike | None = None, sequence: Any = None) -> Array:
        """Return log p(x_t | x_1, ..., x_{t−1}) of each step, shape (t,); sums are log-likelihoods.

        Parameters
        ----------
        X, lengths, sequence
            As in :meth:`fit`.
        """
        return np.concatenate([terms for _, terms in self._over(smooth, X, lengths, sequence)])

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: ArrayLike | None = None,
        sequence: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean log-likelihood per step, weighted if weights are given.

        Parameters
        ----------
        X, y, lengths, sequence, sample_weight
            As in :meth:`fit`.
        """
        return self._total(X, y, lengths, sequence, sample_weight)[0]

    def _total(
        self, X: Any, y: Any, lengths: Any, sequence: Any, sample_weight: ArrayLike | None
    ) -> tuple[float, float]:
        """Return the mean log-likelihood per step, and the weight of all steps."""
        check_is_fitted(self)
        data = X, self._lengths(X, y, lengths), sequence
        source = self._read(self.emissions_, data, sample_weight, reset=False)
        bound, theta = self._bound(source), self._theta
        loss = Problem(bound.model, source, bound=bound).compute.objective(theta) - bound.penalty(theta)
        return -loss, source.total_weight

    def bic(
        self, X: Any, lengths: ArrayLike | None = None, sequence: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the Bayesian information criterion, with steps counted as rows.

        Parameters
        ----------
        X, lengths, sequence, sample_weight
            As in :meth:`fit`.
        """
        return self._criteria(X, lengths, sequence, sample_weight)["bic"]

    def aic(
        self, X: Any, lengths: ArrayLike | None = None, sequence: Any = None, sample_weight: Any = None
    ) -> float:
        """Return Akaike's information criterion.

        Parameters
        ----------
        X, lengths, sequence, sample_weight
            As in :meth:`fit`.
        """
        return self._criteria(X, lengths, sequence, sample_weight)["aic"]

    def _criteria(self, X: Any, lengths: Any, sequence: Any, sample_weight: Any) -> dict[str, float]:
        mean, steps = self._total(X, None, lengths, sequence, sample_weight)
        return criteria(mean * steps, steps, self._n_parameters()) | {"total": mean * steps}

    def icl(
        self, X: Any, lengths: ArrayLike | None = None, sequence: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the integrated completed likelihood criterion: BIC with the most likely states as data.

        Parameters
        ----------
        X, lengths, sequence, sample_weight
            As in :meth:`fit`.
        """
        parts = self._over(most_likely_states, X, lengths, sequence)
        values = np.concatenate([values for values, _ in parts])
        found = self._criteria(X, lengths, sequence, sample_weight)
        weight = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight)
        return found["bic"] + 2.0 * (found["total"] - float(weight @ values))

    def _n_parameters(self) -> int:
        """Return the number of free parameters."""
        n_free = self._model(self.emissions_).n_free
        return int(n_free + self.emissions_._n_parameters() - (self.n_components - 1))

    def select(
        self,
        X: Any,
        n_components: Iterable[int] = range(1, 7),
        criterion: str = "bic",
        *,
        lengths: ArrayLike | None = None,
        sequence: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Selection[Self, Candidate]:
        """Fit models with several numbers of states, and choose one by a criterion.

        Parameters
        ----------
        X, lengths, sequence, sample_weight
            As in :meth:`fit`.
        n_components : iterable of int
            Numbers of states to try; other parameters are this model's.
        criterion : {"bic", "aic"}
            Lower is better.

        Returns
        -------
        Selection
            As of :func:`swiftem.select`.
        """
        check_choice("criterion", criterion, ("bic", "aic"))
        data, weight = {"lengths": lengths, "sequence": sequence}, sample_weight
        models: dict[tuple[str, int], Self] = {}
        rows = []
        for count in sorted({check_int("n_components", count, minimum=1) for count in n_components}):
            began, model = clock(), clone(self).set_params(n_components=count)
            models["states", count] = model.fit(X, **data, sample_weight=weight)
            found = model._criteria(X, lengths, sequence, weight)
            how = model.log_likelihood_, model._n_parameters(), model.converged_, model.n_iter_
            values = found[criterion], found["bic"], found["aic"], np.nan
            rows.append(Candidate("states", count, *values, *how, clock() - began, "fresh", ""))
        ranking = sorted(rows, key=lambda row: row.value)
        reason = f"{criterion} is lowest for {counted(ranking[0].n_components, 'state')}"
        heads = ("states", criterion, "log-likelihood", "parameters", "passes", "converged")
        cells = [
            (*row[1:3], row.log_likelihood, row.n_parameters, row.passes, row.converged) for row in ranking
        ]
        formats = {criterion: criterion_text, "log-likelihood": mean_text}
        curves = {criterion: {"states": {row.n_components: row.value for row in rows}}}
        shown = Table(reason, heads, cells, formats=formats)
        return Selection(
            models[ranking[0].key], rows, ranking, criterion, reason, models, False, shown, curves
        )

    def sample(self, n_samples: int = 1) -> tuple[Array, Index]:
        """Return a random sequence of steps (n_samples, d), and its states (n_samples,).

        Parameters
        ----------
        n_samples : int
            Number of steps.
        """
        check_is_fitted(self)
        check_int("n_samples", n_samples, minimum=1)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        start, ways = np.cumsum(self.startprob_), np.cumsum(self.transmat_, axis=1)
        states, last = np.empty(n_samples, dtype=np.intp), self.n_components - 1
        for t, at in enumerate(rng.random(n_samples)):
            ends = start if t == 0 else ways[states[t - 1]]
            states[t] = min(int(np.searchsorted(ends, at * ends[-1], side="right")), last)
        one_step = SequenceSource(ArraySource(np.zeros((1, self.n_features_in_))), np.array([1]))
        return self._bound(one_step).emissions.draw(self._theta.emissions, states, rng), states

    def impute(
        self, X: Any, lengths: ArrayLike | None = None, sequence: Any = None, random_state: Any = None
    ) -> NDArray[Any]:
        """Return the steps with missing cells filled in, given their whole sequences.

        Parameters
        ----------
        X, lengths, sequence
            As in :meth:`fit`; in memory.
        random_state : int, RandomState or None
            None: cells have their mean. Otherwise they are random draws.
        """
        gamma = self.predict_proba(X, lengths, sequence)
        source = self._read(self.emissions_, (X, lengths, sequence), reset=False)
        seed = None if random_state is None else check_random_state(random_state).randint(2**31 - 1)
        rng = None if seed is None else np.random.default_rng(seed)
        steps, theta = steps_of(source.take(np.arange(source.n))), self._theta.emissions
        return np.asarray(self._bound(source).emissions.imputed(steps.rows, gamma, theta, rng))

    def summary(self) -> Table:
        """Return a table to print: start, transitions and distribution of each state.

        Examples
        --------
        >>> import swiftem
        >>> given = [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], {"rates": [[1.0], [4.0]]}
        >>> swiftem.HiddenMarkovModel.from_parameters(*given, family="poisson").summary()
        Hidden Markov model with 2 states, poisson
        <BLANKLINE>
                    family   state 0  state 1
        share                67 %     33 %
        start                50 %     50 %
        to state 0           90 %     20 %
        to state 1           10 %     80 %
        column 0    poisson  rate 1   rate 4
        """
        check_is_fitted(self)
        table, states = self._as_fitted().summary(), range(self.n_components)
        blank = [""] * (len(table.columns) - self.n_components - 1)
        shares, *others = table.rows
        chain = {"start": self.startprob_} | {f"to state {k}": self.transmat_[:, k] for k in states}
        rows = [(name, *blank, *map(percent_text, values.tolist())) for name, values in chain.items()]
        kind = table.title.partition(", ")[2]
        title = f"Hidden Markov model with {counted(self.n_components, 'state')}, {kind}"
        columns = ["", *table.columns[1 : 1 + len(blank)], *(f"state {k}" for k in states)]
        return Table(title, columns, [("share", *shares[1:]), *rows, *others], n_index=table.n_index)

    def plot_states(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        sequence: Any = None,
        *,
        column: int = 0,
        axes: Any = None,
    ) -> Any:
        """Draw a column over time, with bands in the colours of the predicted states; return the axes.

        Parameters
        ----------
        X, lengths, sequence
            As in :meth:`fit`; in memory.
        column : int
            The column.
        axes : matplotlib axes, optional
            By default of a new figure.
        """
        check_is_fitted(self)
        source = self._read(self.emissions_, (X, lengths, sequence), reset=False)
        states = self.predict(X, lengths, sequence)
        names = getattr(self, "feature_names_in_", [f"column {j}" for j in range(self.n_features_in_)])
        values = steps_of(source.take(np.arange(source.n))).rows[:, column]
        return plots.draw_states(values, states, str(names[column]), axes)

    def plot_transitions(self, axes: Any = None) -> Any:
        """Draw the probabilities of transitions; return the axes."""
        check_is_fitted(self)
        return plots.draw_transitions(self.transmat_, axes)

    def plot_convergence(self, axes: Any = None) -> Any:
        """Plot the objective against passes, and return the matplotlib axes."""
        return self.history_.plot(axes)

    @classmethod
    def from_parameters(
        cls, startprob: ArrayLike, transmat: ArrayLike, params: Mapping[str, ArrayLike], **parameters: Any
    ) -> Self:
        """Return a fitted model with these parameters.

        Parameters
        ----------
        startprob, transmat : array-like, shapes (K,) and (K, K)
            Start probabilities and transitions.
        params : dict of array-like
            Parameters of the states: "means" and "covariances", or a family's, as in ``params_``.
        **parameters
            Other parameters of the estimator.
        """
        made = cls(len(as_floats("startprob", startprob, shape=(None,))), **parameters)
        made._validate_params()
        mixture = made._mixture()
        chain = made._model(mixture).check_chain(startprob, transmat, "")
        lazy = 0.5 * (chain[1] + np.eye(made.n_components))  # its powers converge also for cycles
        weights = chain[0] @ np.linalg.matrix_power(lazy, 1 << 12)
        options = mixture.get_params(deep=False)
        options.pop("n_components")
        given = params if isinstance(mixture, GaussianMixture) else {"params": params}
        made._set(chain, type(mixture).from_parameters(weights / weights.sum(), **given, **options))
        made.converged_, made.n_iter_, made.lower_bound_, made.lower_bounds_ = True, 0, -inf, []
        made.method_, made.history_ = "given", History([])
        made.stationarity_ = made.log_likelihood_ = np.nan
        return made

    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        chain = {"startprob_": self.startprob_, "transmat_": self.transmat_}
        return chain | self.emissions_._fitted_arrays()

    def _read_fitted(self, content: ModelContent, d: int) -> None:
        mixture, k = self._mixture(), self.n_components
        mixture.n_features_in_ = d
        mixture._read_fitted(content, d)
        chain = content.array("startprob_", (k,)), content.array("transmat_", (k, k))
        self._set(self._model(mixture).check_chain(*chain, ""), mixture)

    @classmethod
    def _file_types(cls) -> Mapping[str, type[Any]]:
        return file_types()

    def _state_to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = self.emissions_._state_to_file()
        past: Past | None = vars(self).get("_past")
        if past is not None and past.s is not None:
            header |= {"seen": past.seen, "power": past.power}
            arrays |= {"past_s": past.s, "past_centre": past.centre}
        return header, arrays

    def _read_state(self, content: ModelContent, d: int) -> None:
        if "feature_names_in_" in vars(self):
            self.emissions_.feature_names_in_ = self.feature_names_in_
        if "seen" in content.header:
            s, centre = (content.array(name, (None,)) for name in ("past_s", "past_centre"))
            self._past = Past(s, centre, content.real("seen", 0.0), content.real("power", 0.0))


def smooth(emissions: Emissions, steps: Steps) -> tuple[Array, Array]:
    """Return the probabilities of the states (t, K), and log p(y_t | y_1, ..., y_{t−1}) (t,)."""
    from swiftem.hmm.compute.passes import smoothed

    n, k = len(steps.rows), emissions.model.n_components
    gamma, terms = np.empty((n, k)), np.empty(n)
    for piece in smoothed(emissions, steps, np.empty((len(steps.begin) - 1, k, k))):
        gamma[piece.place], terms[piece.place] = piece.gamma, piece.terms
    return gamma, terms


def likely_states(emissions: Emissions, steps: Steps) -> tuple[Array, Index]:
    """Return the log-probability of the most likely state of each step, and these states."""
    gamma, _ = smooth(emissions, steps)
    return np.log(gamma.max(axis=1)), gamma.argmax(axis=1)


def most_likely_states(emissions: Emissions, steps: Steps) -> tuple[Array, Index]:
    """Return the log joint densities of sequences and their most likely states, and these states."""
    from swiftem.hmm.compute.recursions import most_likely

    logs = emissions.densities(steps)[0]
    found = [
        most_likely(logs[first:stop], *emissions.theta.logs) for first, stop in pairwise(steps.begin.tolist())
    ]
    return np.array([value for _, value in found]), np.concatenate([states for states, _ in found])
