"""One run of Algorithm 1: :func:`run`, its entry point, and what it does before and after the loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.algorithm import Iterate, Result, State, Task
from swiftem.core.checkpoint import RunCheckpoint, kept_seed, open_checkpoint
from swiftem.core.checks import as_floats, check_choice, check_int, shown
from swiftem.core.compute import Evaluation, Placement
from swiftem.core.describe import describe, digest
from swiftem.core.draws import INITIAL_THETA, TERMINATION, Entropy, Seed, generator, read_seed
from swiftem.core.loop import DeferredInterrupt, Records, RunLoop
from swiftem.core.messages import warn
from swiftem.core.method import Method
from swiftem.core.model import BoundModel, Model
from swiftem.core.problem import Budget, Problem, check_access, check_model, read_memory_limit
from swiftem.core.schedules import RandomTermination, resolve
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta, Tree
from swiftem.data.as_source import as_source, is_planned, kernels_of, read_problem
from swiftem.data.units.source import UnitSource

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger("swiftem")


def run(
    model: Model,
    data: Any,
    method: Method,
    *,
    n_iter: int | RandomTermination,
    theta0: Theta | None = None,
    s0: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    seed: Seed = None,
    draws: ArrayLike | None = None,
    state: State | None = None,
    record_every: int | None = None,
    record: Callable[[Iterate], Tree] | None = None,
    callback: Callable[[Iterate], bool | None] | None = None,
    kernels: Literal["auto", "reference"] = "auto",
    device: str = "auto",
    device_memory_limit: int | str | None = None,
    client: Client | None = None,
    memory_limit: int | str | None = None,
    scratch: str | PathLike[str] | None = None,
    checkpoint: str | Path | RunCheckpoint | None = None,
    checkpoint_every: int | None = None,
    resume: bool | Literal["auto"] = False,
) -> Result:
    r"""Fit a model by a method: Algorithm 1.

    Iteration k = 0, 1, ... uses :math:`\theta^{(k)}` and ends with
    :math:`\theta^{(k+1)} = \bar\theta(\hat s^{(k+1)})`. A step whose statistics leave the model's domain is
    rejected and counted: :math:`\hat s` and θ stay, k and the method's memory advance.

    Parameters
    ----------
    model : Model
        From :mod:`swiftem.models`, or your own.
    data : array-like, SciPy sparse matrix, tuple of two arrays, path, function, or Source
        Rows of shape (n,) or (n, d); for pLSA a matrix of counts (D, V) or the tokens' (documents, words).
        Files and blocks as in :func:`swiftem.data.as_source`; they are read on demand.
    method : Method
        From :mod:`swiftem.methods`, or your own.
    n_iter : int or RandomTermination
        Number of iterations.
    theta0 : NamedTuple, optional
        :math:`\theta^{(0)}`, from ``model.theta``; by default drawn from the seed, or the M-step of ``s0``.
    s0 : array-like, shape (q,), optional
        :math:`\hat s^{(0)}`. By default :math:`\bar s(\theta^{(0)})`, by a full pass, in addition to the
        method's own first pass at :math:`\theta^{(0)}`.
    sample_weight : array-like, optional
        Weights of rows, documents or tokens, zero or from 1e-100 to 1e100: the objective is penalty +
        Σ w_i (−log g(y_i; θ)) / Σ w_i. Samples of weight zero are ignored.
    seed : int, Generator or None
        For ``theta0`` and draws. The draws depend only on seed, method, n and batch size.
    draws : array-like of int, shape (n_iter,) or (n_iter, b), or a pair of them, optional
        Sample indices instead of random ones; a pair (i, j) for fiem.
    state : State, optional
        ``result.state`` of an earlier run: with its θ and s as ``theta0`` and ``s0``, the run continues
        exactly where that one ended. Counts continue, too.
    record_every : int, optional
        Iterations between records; k = 0 is the first. By default an epoch (n / b iterations) if ``record``
        or ``callback`` is given, else nothing is recorded.
    record : callable, optional
        Gets an :class:`Iterate`, returns what ``path`` stores of it (None: nothing). By default the iterate.
    callback : callable, optional
        Gets each :class:`Iterate` after it was recorded; the run stops if it returns True.
    kernels : {"auto", "reference"}
        The fastest form of E-steps and iterations, or the plain NumPy one, which defines the others.
    device : {"auto", "cpu", "cuda", "cuda:0", ...}
        Where passes and iterations are computed: ``docs/gpu.md``.
    device_memory_limit : int, str or None
        Memory limit on a GPU, in bytes or as a text such as "4GB", without data that are given there. Rows
        that do not fit are copied in every pass, a memory of iem or fiem stays on the CPU's side. Raises
        MemoryLimitError if not even blocks of rows fit.
    client : distributed.Client, optional
        Dask client that computes full passes of units: a Dask collection, ``open_units``, or files. By
        default the current client for collections, see ``docs/many_machines.md``.
    memory_limit : int, str or None
        Memory limit of the run, in bytes or as a text such as "500MB": memory of the process in addition to
        imports and data given in memory; files, and pages of memory maps, do not count. Raises
        MemoryLimitError if the run does not fit. Results do not depend on it.
    scratch : path, optional
        Folder for the memory of iem and fiem if it does not fit into ``memory_limit``; by default the
        system's folder for temporary files. It is deleted after the run.
    checkpoint : str or Path, optional
        Folder for checkpoints. The run can be killed at any moment and resumed: the result is the same, bit
        by bit, as without the interruption. See ``docs/checkpoints.md``.
    checkpoint_every : int, optional
        Iterations between checkpoints. By default an epoch, or more if that takes too much time.
    resume : bool or "auto"
        Whether to resume the run in the folder. True: the folder must have a run; False: it must have none,
        so that nothing is overwritten by accident; "auto": resume if there is one, else start.

    Returns
    -------
    Result
        theta, s, state, passes, n_iter, rejected, status, path. Ctrl-C ends the run after the current
        iteration; ``status`` says so, and the run can be resumed. If every step was rejected, ``status`` is
        "rejected", with a warning, and θ is the initial one.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=1000) + np.where(rng.random(1000) < 0.5, 2.0, -2.0)
    >>> model = models.GaussianMixtureModel(n_components=2)
    >>> theta0 = model.theta(weights=[0.5, 0.5], means=[[1.0], [-1.0]])
    >>> method = methods.FastIncrementalEM(step_size=0.01)
    >>> result = swiftem.run(model, y, method, theta0=theta0, n_iter=5000, seed=0, record_every=1000)
    >>> result.theta.means.round(1).ravel()
    array([ 1.9, -2. ])
    >>> [(k, passes) for k, passes, theta in result.path][:3]
    [(0, 1.0), (1000, 3.0), (2000, 5.0)]
    """
    check_model(model)
    if not isinstance(method, Method):
        raise TypeError(f"method must be an instance such as methods.EM(), got {shown(method)}.")
    for name, function in (("record", record), ("callback", callback)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function of an iterate, got {shown(function)}.")
    if isinstance(data, Problem):
        problem = read_problem(model, data, sample_weight)
    else:
        limit = read_memory_limit(device_memory_limit, "device_memory_limit")
        placement = read_placement(data, kernels, device, limit)
        is_on_device, allow_missing = placement.device != "cpu", model.missing == "ignore"
        source = as_source(
            data, sample_weight, on_device=is_on_device, allow_missing=allow_missing, client=client
        )
        check_access(method, source)
        budget = Budget(read_memory_limit(memory_limit), scratch)
        budget.reserve(source, method)  # before the data are read to bind the model
        problem = Problem(model, source, placement=placement, budget=budget)
    source, budget = problem.source, problem.reserve(method)
    entropy = check_state(state, method, source, seed, theta0, s0)
    if checkpoint is not None and seed is None and state is None:
        entropy = kept_seed(checkpoint, resume, entropy)
    gamma = resolve(method.step_size, source.n, method.batch_size)
    if state is not None and state.is_before_first_pass:
        state = None
    k0 = 0 if state is None else state.k
    indices = problem.draws(method, entropy, n_iter, k0, draws)
    if isinstance(n_iter, RandomTermination):
        k_end = k0 + n_iter.draw(gamma, generator(entropy, TERMINATION, k0), first=k0)
    else:
        k_end = k0 + check_int("n_iter", n_iter, minimum=0)
    records = Records(record_every, record, callback, method.epoch(source.n))

    def identity() -> dict[str, object]:
        # Draws from a seed do not depend on the length of a run: it may be extended.
        is_fixed = draws is not None or not isinstance(n_iter, Integral)
        given = draws if draws is None or isinstance(draws, tuple) else (draws,)
        return {
            "kind": "run",
            "model": describe(problem.model),
            "method": describe(method),
            "data": source.fingerprint(),
            "seed": entropy.tolist(),
            "start": digest(theta0, s0, state),
            "draws": given if given is None else digest(*map(np.asarray, given)),
            "first iteration": k0,
            "n_iter": describe(n_iter) if is_fixed else "any",
            "record_every": records.every,
            "kernels": f"{problem.placement.form} on {problem.placement.device}",
        }

    checkpoints = None
    if checkpoint is not None:
        every, epoch = checkpoint_every, method.epoch(source.n)
        checkpoints = open_checkpoint(
            checkpoint, every, resume, identity=identity, epoch=epoch, allocate=budget.make_memory
        )
    elif checkpoint_every is not None or resume is not False:
        name = "resume" if checkpoint_every is None else "checkpoint_every"
        raise ValueError(f"{name} needs checkpoint, the folder for the checkpoints.")
    log.info("%s: iterations %d to %d on %d samples", method.name, k0, k_end, source.n)
    with checkpoints or nullcontext(), DeferredInterrupt() as interrupt:
        compute = problem.compute
        compute.begin(method.memory_dtype, budget.make_memory, is_divided=method.order == "weighted")
        task = Task(problem.bound, method, source, gamma, indices, compute, interrupt)
        theta, s = read_start(problem.bound, theta0, s0, generator(entropy, INITIAL_THETA))
        loop = RunLoop(task, records, checkpoints, entropy, k0, k_end, budget.scratch)
        result = loop.result(theta, s, state)
    ended = result.status, result.n_iter, result.rejected
    log.info("%s: %s after %d iterations, %d rejected", method.name, *ended)
    if result.status == "rejected" and not records.stopped:  # a callback that stops a run has seen it
        why = "their statistics left the model's domain"
        if not np.isfinite(result.s).all():
            why = "the E-step gives statistics that are not finite"
        steps = f"All {result.n_iter - k0} steps of the run"
        warn(f"{steps} were rejected, as {why}: theta is the initial one.", UserWarning)
    return result


def run_problem(problem: Problem, method: Method, **options: Any) -> Result:
    """Fit a model that is already bound to its data; ``options`` are arguments of :func:`run`."""
    return run(problem.model, problem, method, **options)


def check_state(
    state: State | None,
    method: Method,
    source: Source,
    seed: Seed,
    theta0: Theta | None,
    s0: ArrayLike | None,
) -> Entropy:
    """Return the seed's words: of the state, if there is a valid one."""
    if state is None:
        return read_seed(seed)
    if not isinstance(state, State):
        raise TypeError(f"state must be the state of a result, got {type(state).__name__}.")
    if theta0 is None or (s0 is None and not state.is_before_first_pass):
        raise ValueError("state needs theta0 and s0, the theta and s of the same result.")
    if seed is not None and not np.array_equal(read_seed(seed), state.entropy):
        raise ValueError("seed must be left out if state is given, or be the seed of the first run.")
    if (state.name, state.n) != (method.name, source.n):
        raise ValueError(
            f"state must come from a run of {method.name} on {source.n} samples, "
            f"got one of {state.name} on {state.n}."
        )
    return state.entropy


def read_start(
    model: BoundModel, theta0: Theta | None, s0: ArrayLike | None, rng: np.random.Generator
) -> tuple[Theta, Array | None]:
    """Return θ^(0), given, drawn, or from ``s0``, and ``s0`` as an array or None."""
    s: Array | None = None
    if s0 is not None:
        s = as_floats("s0", s0, shape=(None,)).copy()
        try:
            model.unpack(s)
        except ValueError as error:
            raise ValueError(f"s0 does not fit model and data: {error}") from None
        if not model.in_domain(s):
            raise ValueError("s0 must lie in the model's domain, where the M-step exists.")
    if theta0 is not None:
        return model.check_theta(theta0), s
    return (model.initial_theta(rng) if s is None else model.m_step(s)), s


def read_placement(
    data: object, kernels: Literal["auto", "reference"], device: str, limit: int | None = None
) -> Placement:
    """Return where and in which form E-steps are computed; raise ValueError for an unknown form."""
    check_choice("kernels", kernels, ("auto", "reference"))
    return Placement(kernels_of(device, data) or "cpu", kernels, limit)


def objective(model: Model, data: Any, theta: Theta, *, sample_weight: ArrayLike | None = None) -> float:
    r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate), which the methods minimise.

    Parameters
    ----------
    model, data, sample_weight
        As in :func:`run`.
    theta : NamedTuple
        Parameters.

    Returns
    -------
    float
        Penalty plus mean negative log-likelihood.

    Examples
    --------
    >>> import swiftem
    >>> model = swiftem.models.GaussianMixtureModel(n_components=1, delta=0.0, epsilon=0.0)
    >>> round(swiftem.objective(model, [0.0], model.theta(means=[[0.0]])), 4)
    0.9189
    """
    problem = read_problem(model, data, sample_weight)
    return problem.compute.objective(problem.bound.check_theta(theta, "theta"))


def posterior(
    model: Model,
    data: Any,
    theta: Theta,
    *,
    responsibilities: bool = False,
    labels: bool = False,
    kernels: Literal["auto", "reference"] = "auto",
    device: str = "auto",
) -> Evaluation:
    """Return the log-likelihood of each sample and, optionally, responsibilities or most likely components.

    Data are read in blocks, by all cores; only the returned arrays grow with n.

    Parameters
    ----------
    model : Model
        The model.
    data : array-like (n,) or (n, d), path, or Source
        Samples, not of Dask; a mixture with covariances accepts fewer samples than components, too.
    theta : NamedTuple
        Parameters, from ``model.theta`` or from a run.
    responsibilities, labels : bool
        Whether to return them.
    kernels, device
        As in :func:`swiftem.run`; the returned arrays are NumPy's.

    Examples
    --------
    >>> import swiftem
    >>> from swiftem import models
    >>> model = models.GaussianMixtureModel(2, covariance="spherical")
    >>> theta = model.theta(means=[[0.0], [4.0]], covariances=[1.0, 1.0])
    >>> found = swiftem.posterior(model, [[0.0], [2.0]], theta, responsibilities=True, labels=True)
    >>> found.log_likelihood.round(3), found.labels
    (array([-1.612, -2.919]), array([0, 0]))
    >>> found.responsibilities[1]
    array([0.5, 0.5])
    """
    if is_planned(data) or isinstance(data, UnitSource):
        kind = "units" if isinstance(data, UnitSource) else "a Dask collection"
        raise TypeError(
            f"data must be an array or a file for posterior, got {kind}: call it for each chunk, or use "
            "predict_proba of a mixture."
        )
    if isinstance(data, Problem):
        problem = read_problem(model, data)
    else:
        placement = read_placement(data, kernels, device)
        source = as_source(data, on_device=placement.device != "cpu", allow_missing=model.missing == "ignore")
        problem = Problem(model, source, bound=model.bind_near(source, theta), placement=placement)
    return problem.compute.evaluate(
        problem.bound.check_theta(theta, "theta"), responsibilities=responsibilities, labels=labels
    )
