"""``swiftem.select``: choice of the number of components and the covariance type or family."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from math import inf, isfinite
from numbers import Integral, Real
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from swiftem.core.checks import check_choice, check_int, in_numpy, shown
from swiftem.core.messages import warn
from swiftem.core.process import clock
from swiftem.fit.checkpoint import kept_apart
from swiftem.fit.estimator import InterruptedWarning
from swiftem.fit.selection import Candidate, Selection, read_numbers, teller
from swiftem.kernels.threads import get_threads, one_thread_blas, one_thread_openmp
from swiftem.mixture.candidates import KINDS, Candidates, family_candidates, gaussian_candidates
from swiftem.mixture.estimator import criteria
from swiftem.mixture.families import Given, read_family
from swiftem.mixture.gaussian_mixture import GaussianMixture
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.starts.collapsed_components import SpuriousComponentWarning
from swiftem.mixture.starts.named_starts import DegenerateComponentWarning
from swiftem.mixture.tables.columns import AUTO
from swiftem.regression.regression_mixture import RegressionMixture, regression_candidates
from swiftem.show.numbers import counted, criterion_text, mean_text
from swiftem.show.table import Table

CRITERIA = ("bic", "aic", "icl")
SHOWN = 10
"""Rows of a printed selection."""
LAST_COLUMNS = ("log-likelihood", "parameters", "passes", "converged")
RESPONSES = ("gaussian", "poisson")
"""Families of responses."""
FOR_ONE_FIT = ("weights_init", "means_init", "precisions_init", "params_init", "warm_start")
"""Parameters of the estimators that ``select`` does not accept."""

Criterion = str | Callable[..., float]


class Fitted(NamedTuple):
    """A fitted model, its mean log-likelihood, and its start."""

    model: Any
    log_likelihood: float
    start: str


def select(
    X: ArrayLike,
    n_components: int | Iterable[int] = range(1, 11),
    covariance_types: str | Sequence[str] | None = None,
    criterion: Criterion = "bic",
    *,
    family: Given | Sequence[Given] = "gaussian",
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_init: int = 1,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: bool | Callable[[str], None] = False,
    **parameters: Any,
) -> Selection[Any, Candidate]:
    """Fit mixtures of several sizes and covariance types, and choose one by a criterion.

    Each fit starts from the fit with one component less, with one component split (see
    :mod:`swiftem.mixture.starts.split_and_merge`), and from new starts; the best fit is kept. The
    log-likelihood therefore never falls with the number of components, and criteria depend little on single
    starts.
    Covariance types run in parallel threads; results do not depend on the number of threads.

    Parameters
    ----------
    X : array-like, shape (n, d)
        The rows.
    n_components : int or iterable of int
        Numbers of components to try.
    covariance_types : str or sequence of str, optional
        Covariance types to try, by default all four.
    criterion : {"bic", "aic", "icl"} or callable
        Selection criterion; lower is better. A callable gets (mixture, X, sample_weight), like
        ``swiftem.GaussianMixture.bic``, and returns a number.
    family : str, Family, dict, or list of these
        Family of the components: "gaussian" for :class:`swiftem.GaussianMixture`, or a family of
        :class:`swiftem.Mixture`; ``covariance_types`` must then be left out, and ``covariance_type`` in the
        table is the family's name. All families of a list are tried; "gaussian" is then the family of
        independent columns. Criteria of densities and of probabilities of counts are not comparable.
    y : array-like, shape (n,), optional
        Responses: mixtures of regressions of y on X are compared (:class:`swiftem.RegressionMixture`).
        ``family`` is then "gaussian" or "poisson", and a criterion gets (mixture, X, y, sample_weight).
    sample_weight : array-like, shape (n,), optional
        Non-negative weights, for fits and criteria.
    n_init : int
        Number of new starts of each fit.
    n_jobs : int, optional
        Threads, each for one covariance type at a time; by default, and for −1, all cores.
    random_state : int, RandomState or None
        For starts and draws.
    verbose : bool or callable
        Whether to print a line for each fit, or a function that is called with it, in the thread of the fit.
    **parameters
        Further parameters of :class:`swiftem.GaussianMixture`, :class:`swiftem.Mixture` or
        :class:`swiftem.RegressionMixture`, such as ``method``, ``tol`` or ``reg_covar``.
        By default fits by em to up to 5,000 rows have a ``tol`` of 0.1 divided by the number of rows, at most
        1e-3, and a ``max_iter`` of 1,000: criteria compare log-likelihoods of all rows.

    Returns
    -------
    Selection
        The best mixture, the table of all fits, and a plot. It keeps every fitted mixture. A failed fit is in
        the table with its reason. After Ctrl-C the fits under way are completed, and it has all fits so far.

    Raises
    ------
    ValueError
        For bad arguments, and if every fit fails.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1.0, size=(200, 2)) for centre in ([0, 0], [6, 0], [3, 6])])
    >>> found = swiftem.select(X, range(1, 6), random_state=0)
    >>> found.best.n_components, found.best.covariance_type
    (3, 'spherical')
    >>> print(repr(found).partition(" (")[0])
    BIC is lowest for spherical covariances, 3 components
    """
    counts = read_numbers(n_components)
    if not callable(criterion):
        check_choice("criterion", criterion, CRITERIA)
    check_int("n_init", n_init, minimum=1)
    threads, tell = _threads(n_jobs), teller(verbose)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    if isinstance(random_state, Integral):  # fits then start as those of an estimator with this seed
        seed = int(random_state)
    X = in_numpy(X)
    given = (X, sample_weight) if y is None else (X, y, sample_weight)
    kinds = _candidates(covariance_types, family, (X, y, sample_weight), seed, parameters)
    name = criterion.upper() if isinstance(criterion, str) else getattr(criterion, "__name__", "criterion")
    name = name.replace("<lambda>", "criterion")
    rows: dict[tuple[str, int], Candidate] = {}
    models: dict[tuple[str, int], Any] = {}
    stop = Event()

    def chain(candidates: Candidates) -> None:
        """Fit models of one kind, from few components to many."""
        before: Fitted | None = None
        for count in counts:
            if stop.is_set():
                return
            began, row = clock(), Candidate(candidates.kind, count)
            try:
                fitted = _fit(candidates, count, before, n_init, seed)
            except ValueError as error:  # an ill-defined covariance, or fewer rows than components
                row = row._replace(failed=" ".join(str(error).split()))
            else:
                before, models[row.key] = fitted, fitted.model
                row = row._replace(**_measured(candidates, fitted, criterion, given))
            rows[row.key] = row._replace(seconds=clock() - began)
            tell(_line(rows[row.key], name))

    interrupted = _in_threads(chain, kinds, threads, stop)
    order = [(candidates.kind, count) for candidates in kinds for count in counts]
    table = [rows[key] for key in order if key in rows]
    if interrupted and not models:
        raise KeyboardInterrupt
    selection = _selection(table, models, name, interrupted)
    best = selection.ranking[0]
    if interrupted:
        said = f"The selection was interrupted after {len(table)} of {len(order)} fits."
        warn(said, InterruptedWarning)
    elif not best.converged:
        what = f"{best.covariance_type} with {counted(best.n_components, 'component')}"
        warn(f"The best fit, {what}, did not converge: increase max_iter or tol.", ConvergenceWarning)
    return selection


def _in_threads(
    chain: Callable[[Candidates], None], kinds: Sequence[Candidates], threads: int, stop: Event
) -> bool:
    """Run the chains, and return whether Ctrl-C ended them: this thread receives it, and only waits.

    No fit is aborted; therefore even a single chain has its own thread. Seeds depend only on the type and
    the number of components, and BLAS and k-means use one thread each: the number of threads changes no bit.
    """
    interrupted = False
    with warnings.catch_warnings():
        # Warnings of single fits; the table shows which did not converge.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DegenerateComponentWarning)
        warnings.simplefilter("ignore", SpuriousComponentWarning)
        # Around all of them, as the setting is for the whole process.
        with one_thread_blas(), ThreadPoolExecutor(min(threads, len(kinds)), initializer=_alone) as pool:
            futures = [pool.submit(copy_context().run, chain, kind) for kind in kinds]
            try:
                # With a timeout, as a signal does not end every kind of waiting.
                while wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
                    if any(future.done() and future.exception() for future in futures):
                        break
            except KeyboardInterrupt:
                interrupted = True
            if interrupted or any(future.done() and future.exception() for future in futures):
                stop.set()
    for future in futures:
        future.result()
    return interrupted


def _alone() -> None:
    """Limit k-means to one thread: other threads fit other covariance types, and sums keep their order."""
    one_thread_openmp().__enter__()  # for the life of the thread


def _fit(candidates: Candidates, n_components: int, before: Fitted | None, n_init: int, seed: int) -> Fitted:
    """Return the best fit, at least as good as ``before``, which has fewer components."""
    given = {"n_init": n_init, "random_state": seed}
    fits: list[Fitted] = []
    errors: list[ValueError] = []
    for start in ("fresh", "split"):
        try:
            if start == "fresh":
                model = candidates.new(n_components)
            elif before is not None and candidates.sample is not None:
                model = candidates.split(before.model, n_components)
            else:
                continue
            kept_apart(model.set_params(**given)).fit(*candidates.data)
            log_likelihood = float(model.score(*candidates.data))
        except ValueError as error:
            errors.append(error)
        else:
            fits.append(Fitted(model, log_likelihood if isfinite(log_likelihood) else -inf, start))
    if not fits:
        raise errors[0]
    has_prior = any(candidates.parameters.get(name) is not None for name in ("prior", "concentration"))
    best = max(fits, key=lambda fit: fit.model.lower_bound_ if has_prior else fit.log_likelihood)
    if before is not None and not has_prior and best.log_likelihood < before.log_likelihood:
        best = before._replace(model=candidates.doubled(before.model, n_components), start="doubled")
    best.model.set_params(warm_start=False, **given)
    return best


def _measured(
    candidates: Candidates, fitted: Fitted, criterion: Criterion, given: tuple[Any, ...]
) -> dict[str, Any]:
    """Return what is measured of a fit, by field; afterwards the model knows the columns of X."""
    model, total = fitted.model, candidates.total_weight
    n_parameters = model.n_parameters_
    values = criteria(total * fitted.log_likelihood, total, n_parameters)
    values["icl"] = float(model.icl(*candidates.data))
    vars(model).update(candidates.columns)
    value = criterion(model, *given) if callable(criterion) else values[criterion]
    if not isinstance(value, Real):
        raise TypeError(f"criterion must return a number, got {shown(value)}.")
    return dict(
        value=float(value),
        **values,
        log_likelihood=fitted.log_likelihood,
        n_parameters=n_parameters,
        converged=bool(model.converged_),
        passes=int(model.n_iter_),
        start=fitted.start,
        failed="" if isfinite(value) else f"The criterion is {value}.",
    )


def _selection(
    table: Sequence[Candidate], models: Mapping[tuple[str, int], Any], criterion: str, interrupted: bool
) -> Selection[Any, Candidate]:
    """Return the selection, with its table and curves."""
    failed = [row for row in table if row.failed]
    ranking = sorted((row for row in table if not row.failed), key=lambda row: row.value)
    if not ranking:
        raise ValueError(f"None of the {len(table)} fits succeeded. {table[0].failed}")
    best = ranking[0]
    kind, said = ("covariances", "covariances") if best.covariance_type in KINDS else ("family", "mixtures")
    fits = counted(len(table), "fit") + (f", {len(failed)} of them failed" if failed else "")
    reason = (
        f"{criterion} is lowest for {best.covariance_type} {said}, {counted(best.n_components, 'component')} "
        f"({fits}{'; interrupted' if interrupted else ''})"
    )
    notes = []
    counts = [row.n_components for row in table]
    if min(counts) < best.n_components == max(counts):
        notes.append("The best fit has the largest number of components tried: more may be better.")
    for why in dict.fromkeys(row.failed for row in failed):
        which = ", ".join(f"{row.covariance_type} {row.n_components}" for row in failed if row.failed == why)
        notes.append(f"Failed: {which}. {why}")
    names = (kind, "components", criterion, "above the best", *LAST_COLUMNS)
    cells = [
        (*row[:3], row.value - best.value, row.log_likelihood, row.n_parameters, row.passes, row.converged)
        for row in ranking
    ]
    formats = {criterion: criterion_text, "above the best": criterion_text, "log-likelihood": mean_text}
    curves: dict[str, dict[int, float]] = {}
    for row in sorted(ranking, key=table.index):
        curves.setdefault(row.covariance_type, {})[row.n_components] = row.value
    return Selection(
        best=models[best.key],
        table=table,
        ranking=[*ranking, *failed],
        criterion=criterion,
        reason=reason,
        models=models,
        interrupted=interrupted,
        shown=Table(reason, names, cells, notes, n_index=2, formats=formats).head(SHOWN, "fit"),
        curves={f"{criterion} (lower is better)": curves},
    )


def _candidates(
    covariance_types: Any, family: Any, given: tuple[Any, ...], seed: int, parameters: dict[str, Any]
) -> Sequence[Candidates]:
    """Return the kinds of mixtures to compare, with their data."""
    X, y, sample_weight = given
    if y is None and isinstance(family, str) and family == "gaussian":
        kinds = _kinds(KINDS if covariance_types is None else covariance_types)
        _check_parameters(parameters, GaussianMixture)
        return gaussian_candidates(kinds, X, sample_weight, seed, parameters)
    families = _families(family) if y is None else {check_choice("family", family, RESPONSES): family}
    if covariance_types is not None:
        raise ValueError(
            f"covariance_types must be left out for family={next(iter(families))!r}, which has none."
        )
    _check_parameters(parameters, Mixture if y is None else RegressionMixture)
    if y is None:
        return family_candidates(families, X, sample_weight, parameters)
    return [regression_candidates(family, X, y, sample_weight, parameters)]


def _kinds(covariance_types: Any) -> list[str]:
    is_one = isinstance(covariance_types, str) or not np.iterable(covariance_types)
    given = [covariance_types] if is_one else covariance_types
    kinds = list(dict.fromkeys(check_choice("covariance_types", kind, KINDS) for kind in given))
    if not kinds:
        raise ValueError("covariance_types must have at least one type, got none.")
    return kinds


def _families(family: Given | Sequence[Given]) -> dict[str, Given]:
    """Return the families to try, by their names in the table.

    >>> list(_families(["poisson", "binomial(trials=9)", {"poisson": [0], "bernoulli": [1]}]))
    ['poisson', 'binomial(trials=9)', 'poisson + bernoulli']
    """
    given: Sequence[Any] = family if isinstance(family, list | tuple) else [family]
    if not given:
        raise ValueError("family must have at least one family, got none.")
    found: dict[str, Given] = {}
    for part in given:
        is_name = isinstance(part, str)
        label = part if is_name and (part == AUTO or "(" in part) else read_family(part).name
        if label in found:
            raise ValueError(f"family must have families of different names, got {label!r} twice.")
        found[label] = part
    return found


def _threads(n_jobs: int | None) -> int:
    count = -1 if n_jobs is None else check_int("n_jobs", n_jobs, minimum=-1)
    if count == 0:
        raise ValueError("n_jobs must be a number of threads, or -1 for all cores, got 0.")
    return get_threads() if count == -1 else count


def _check_parameters(parameters: dict[str, Any], kind: Any) -> None:
    if "covariance_type" in parameters:
        raise TypeError("select cannot take covariance_type: give covariance_types instead.")
    for name in parameters:
        if name in FOR_ONE_FIT:
            raise TypeError(f"select cannot take {name}, which is for one fit.")
        if name not in kind().get_params():
            raise TypeError(f"select has no parameter {name!r}; parameters of {kind.__name__} are allowed.")
    start = parameters.get("init_params", "kmeans")
    if not (isinstance(start, str) or callable(start)):
        raise TypeError("select cannot take init_params as an array: it would fix the number of components.")
    kind(**parameters)._validate_params()


def _line(row: Candidate, name: str) -> str:
    head = f"{row.covariance_type}, {counted(row.n_components, 'component')}: "
    if row.failed:
        return f"{head}failed. {row.failed}"
    return (
        f"{head}{name} {row.value:.8g}, mean log-likelihood {row.log_likelihood:.6f}, {row.passes} passes, "
        f"{row.seconds:.2f} s, start {row.start}"
    )
