"""Algorithm 1 of the paper, and :func:`run`, its entry point."""

from __future__ import annotations

import logging
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from swiftem._typing import Array, Theta
from swiftem._warn import warn
from swiftem.budget import Budget, read_memory_limit
from swiftem.checkpoints import NoCheckpoint, kept_seed, open_checkpoint
from swiftem.checkpoints.run_checkpoint import Position, check_position
from swiftem.data.as_source import as_source
from swiftem.data.draws import INITIAL_THETA, Entropy, Seed, generator
from swiftem.data.foreign import kernels_of
from swiftem.engine.expectation import Expectation
from swiftem.engine.lane import Current, Lane, Task, choose_lane
from swiftem.methods.method import Method
from swiftem.methods.online_em import AveragedState
from swiftem.models.model import Model
from swiftem.problem import (
    Problem,
    check_access,
    check_callable,
    check_kernels,
    check_method,
    check_model,
    check_state,
    copy_arrays,
    read_n_iter,
    read_start,
)
from swiftem.process import DeferredInterrupt
from swiftem.recording import Averaging, Records
from swiftem.result import Iterate, Result, State, Status
from swiftem.schedules import check_step, resolve
from swiftem.termination import RandomTermination

__all__ = ["objective", "run", "run_problem"]

log = logging.getLogger("swiftem")


class Algorithm1:
    """The lane that runs iteration by iteration, for every method and model: the paper's Algorithm 1."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def advance(self, now: Current, stop: int) -> None:
        """Stochastic EM, iterations ``now.k`` to ``stop`` − 1 (Algorithm 1, the loop).

        The sE-step is s + γ(S − s), as in the paper: (1 − γ)s + γS drifts, as the two factors do not sum to 1
        in floating point.
        """
        model, method, _, gamma, draws, e_step, interrupt, _ = self.task
        for k in range(now.k, stop):
            interrupt.check()
            drawn, step = draws.at(k), check_step(gamma(k + 1), k + 1)
            proxy, now.state = method.proxy(k, now.theta, drawn, now.state, e_step)  # (iem), (oem), ...
            s = now.s + step * (proxy - now.s) if step < 1 else proxy  # (sestep)
            if model.in_domain(s):
                now.s, now.theta = s, model.m_step(s)  # (mstep)
            else:
                now.rejected += 1
            now.k, now.evaluations = k + 1, e_step.evaluations

    def snapshot(self) -> Any:
        """Return the state of the E-steps; everything else is in ``now``."""
        return self.task.e_step.snapshot()

    def restore(self, snapshot: Any, now: Current) -> None:
        """Restore the state of the E-steps."""
        self.task.e_step.restore(snapshot)


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
    draws: Any = None,
    state: State | None = None,
    record_every: int | None = None,
    record: Callable[[Iterate], Any] | None = None,
    callback: Callable[[Iterate], bool | None] | None = None,
    kernels: str = "auto",
    device: str = "auto",
    device_memory_limit: int | str | None = None,
    client: Any = None,
    memory_limit: int | str | None = None,
    scratch: str | PathLike[str] | None = None,
    checkpoint: str | Path | NoCheckpoint | None = None,
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
    kernels, device : {"auto", "reference"} and {"auto", "cpu", "cuda"}
        The fastest implementation, or plain NumPy; where passes and iterations are computed: ``docs/gpu.md``.
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
    check_kernels(kernels)
    check_model(model)
    check_method(method)
    check_callable("record", record)
    check_callable("callback", callback)
    on_device = kernels_of(device, data)
    allow_missing = getattr(model, "missing", "error") == "ignore"
    source = as_source(
        data, sample_weight, on_device=on_device is not None, allow_missing=allow_missing, client=client
    )
    check_access(method, source)
    there = read_memory_limit(device_memory_limit, "device_memory_limit")
    budget = Budget(read_memory_limit(memory_limit), scratch, on_device=there)
    budget.reserve(source, method)  # before the data are read to bind the model
    return run_problem(
        Problem(model, source, kernels=on_device or kernels, budget=budget), method, n_iter=n_iter,
        theta0=theta0, s0=s0, seed=seed, draws=draws, state=state, record_every=record_every, record=record,
        callback=callback, checkpoint=checkpoint, checkpoint_every=checkpoint_every, resume=resume,
    )  # fmt: skip


def run_problem(
    problem: Problem, method: Method, *, n_iter: int | RandomTermination, theta0: Theta | None = None,
    s0: ArrayLike | None = None, seed: Seed = None, draws: Any = None, state: State | None = None,
    record_every: int | None = None, record: Callable[[Iterate], Any] | None = None,
    callback: Callable[[Iterate], bool | None] | None = None,
    checkpoint: str | Path | NoCheckpoint | None = None, checkpoint_every: int | None = None,
    resume: bool | Literal["auto"] = False,
) -> Result:  # fmt: skip
    """Fit a model that is already bound to its data; arguments and result are those of :func:`run`."""
    bound, source, budget = problem.bound, problem.source, problem.reserve(method)
    entropy = check_state(state, method, source, seed, theta0, s0)
    if seed is None and state is None:
        entropy = kept_seed(checkpoint, resume, entropy)
    gamma = resolve(method.step_size, source.n, method.batch_size)
    if state is not None and state.is_before_first_pass:
        state = None
    k0, rejected0 = (0, 0) if state is None else (state.k, state.rejected)
    indices = problem.draws(method, entropy, n_iter, k0, draws)
    k_end = k0 + read_n_iter(n_iter, gamma, entropy, k0)
    records = Records(record_every, record, callback, method.epoch(source.n))
    averaging = Averaging(method, bound, source.n)
    keeper = open_checkpoint(
        checkpoint, checkpoint_every, resume, model=problem.model, method=method, source=source,
        entropy=entropy, start=(theta0, s0, state), draws=draws, first=k0, n_iter=n_iter,
        record_every=records.every, kernels=problem.kernels, allocate=budget.make_memory,
    )  # fmt: skip
    log.info("%s: iterations %d to %d on %d samples", method.name, k0, k_end, source.n)
    with keeper, DeferredInterrupt() as interrupt:
        e_step = problem.e_step
        records.per_pass = e_step.per_pass
        dtype = getattr(method, "memory_dtype", np.float64)
        e_step.begin(dtype, budget.make_memory, is_divided=method.order == "weighted")
        task = Task(bound, method, source, gamma, indices, e_step, interrupt, Algorithm1)
        lane: Lane = choose_lane(problem.kernels, task) or Algorithm1(task)
        theta, s = read_start(bound, theta0, s0, generator(entropy, INITIAL_THETA))
        kept = keeper.load(lambda at: check_position(at, bound, method, source, theta, entropy))
        if kept is not None:
            theta, s, state = kept.theta, kept.s, kept.state
            records.restore(kept)
            if k_end < state.k:
                raise ValueError(f"n_iter must be at least {state.k - k0}, the iterations of the checkpoint.")
        try:
            with e_step.checked_by(interrupt.check):
                now = (
                    first_pass(method, e_step, theta, s)
                    if state is None
                    else go_on_from(state, theta, s, budget.scratch, is_ours=kept is not None)
                )
        except KeyboardInterrupt:  # there is only θ^(0) so far
            begun = State(method.name, source.n, 0, 0, 0, entropy, None)
            return Result(theta, s, begun, 0.0, 0, 0, "interrupted", records.path)
        e_step.evaluations = now.evaluations
        keeper.begin(now.state)
        if state is not None:
            lane.restore(state.lane, now)

        def position() -> Position:
            here = now_state(method, source.n, now, entropy, lane, now.state)
            return Position(now.theta, now.s, here, records.last, records.stopped, records.path)

        try:
            if state is None or kept is not None:  # a resumed run has recorded its first iterate
                records.take(averaging.reported(now))
            while now.k < k_end and not records.stopped:
                with e_step.checked_by(interrupt.check):  # the callback's own passes are not interrupted
                    stop = averaging.next(now.k, records.next(now.k, k_end))
                    lane.advance(now, keeper.next(now.k, stop))
                averaging.add(now)
                if records.is_due(now.k):
                    records.take(averaging.reported(now))
                if keeper.is_due(now.k):
                    keeper.save(position())
            interrupt.check()
            status = ending(now, k0, k_end, rejected0, records.stopped)
        except KeyboardInterrupt:
            status = "interrupted"
        keeper.end(position)
    log.info("%s: %s after %d iterations, %d rejected", method.name, status, now.k, now.rejected)
    if status == "rejected" and not records.stopped:  # a callback that stops a run has seen it
        warn_of_rejection(now.k - k0, now.s)
    end, last = now_state(method, source.n, now, entropy, lane, averaging.kept(now)), averaging.reported(now)
    passes = now.evaluations / e_step.per_pass
    return Result(last.theta, last.s, end, passes, now.k, now.rejected, status, records.path)


def first_pass(method: Method, e_step: Expectation, theta: Theta, s_given: Array | None) -> Current:
    r"""Return the start of Algorithm 1: :math:`\hat s^{(0)} = \bar s(\theta^{(0)})` unless it is given."""
    memory = None
    if method.remembers:
        s, memory = e_step.remember(theta)
    elif s_given is None:
        s = e_step.full(theta)
    else:
        s = s_given
    state = method.init(theta, s, memory)
    return Current(0, theta, s if s_given is None else s_given, state, 0, e_step.evaluations)


def ending(now: Current, k0: int, k_end: int, rejected0: int, stopped: bool) -> Status:
    """Return the status of a run from ``k0`` that was not interrupted; raise ValueError if θ has NaN."""
    accepted = now.k - k0 - (now.rejected - rejected0)
    if accepted:
        check_end(now.theta)
    if stopped and now.k < k_end:
        return "stopped"
    return "rejected" if now.k > k0 and not accepted else "completed"


def check_end(theta: Theta) -> None:
    """Raise ValueError if a model's M-step returned NaN for statistics in its domain."""
    if isinstance(theta, tuple | list):
        for part in theta:
            check_end(part)
    elif isinstance(theta, float | np.ndarray | np.floating):
        array = np.asarray(theta)
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError(
                "m_step must return numbers, got NaN: in_domain must be False if there is no M-step."
            )


def warn_of_rejection(steps: int, s: Array) -> None:
    """Warn that a run has changed nothing, with the reason if it is known."""
    why = "their statistics left the model's domain"
    if not np.isfinite(s).all():
        why = "the E-step gives statistics that are not finite"
    warn(f"All {steps} steps of the run were rejected, as {why}: theta is the initial one.", UserWarning)


def go_on_from(
    state: State, theta: Theta, s: Array, scratch: Any = None, *, is_ours: bool = False
) -> Current:
    """Return the end of an earlier run; its state is copied, so that it can be resumed twice.

    A state from the run's own checkpoint is not copied. If θ and s are averages, the last ones are in the
    state.
    """
    of_method = state.method if is_ours else copy_arrays(state.method, scratch)
    if isinstance(of_method, AveragedState) and not is_ours:
        theta, s = of_method.theta, of_method.s
    return Current(state.k, theta, s, of_method, state.rejected, state.evaluations)


def now_state(method: Method, n: int, now: Current, entropy: Entropy, lane: Lane, of_method: Any) -> State:
    """Return the state of a run, without θ and s."""
    return State(method.name, n, now.k, now.evaluations, now.rejected, entropy, of_method, lane.snapshot())


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
    problem = Problem.read(model, data, sample_weight)
    return problem.e_step.objective(problem.bound.check_theta(theta, "theta"))
