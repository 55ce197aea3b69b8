"""``swiftem.select``: choice of the number of components and the covariance type or family."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from numbers import Integral
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from swiftem.core.checks import check_choice, check_int, shown
from swiftem.core.messages import warn
from swiftem.fit.interrupted import InterruptedWarning
from swiftem.kernels.threads import get_threads, one_thread_blas, one_thread_openmp
from swiftem.mixture.candidate_fits import (
    GAUSSIAN,
    KINDS,
    CandidateFits,
    Criterion,
    Fitted,
)
from swiftem.mixture.families import Given, read_family
from swiftem.mixture.gaussian_mixture import GaussianMixture
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.selection import Candidate, Selection, components
from swiftem.mixture.starts.initial import DegenerateComponentWarning
from swiftem.mixture.starts.spurious import SpuriousComponentWarning
from swiftem.mixture.tables.tabular import AUTO
from swiftem.regression.candidate_fits import RegressionFits
from swiftem.regression.regression_mixture import RegressionMixture

__all__ = ["select"]

CRITERIA = ("bic", "aic", "icl")
RESPONSES = ("gaussian", "poisson")
"""Families of responses."""
NOT_YOURS = {
    "covariance_type": "give covariance_types instead",
    "weights_init": "it would fix the number of components",
    "means_init": "it would fix the number of components",
    "precisions_init": "it would fix the number of components",
    "params_init": "it would fix the number of components",
    "warm_start": "every fit has new starts, and one from the fit before",
    "verbose_interval": "there is a line for each fit",
}
"""Parameters of the estimator that ``select`` does not accept, and why."""


def select(
    X: ArrayLike,
    n_components: int | Iterable[int] = range(1, 20),
    covariance_types: str | Sequence[str] = KINDS,
    criterion: Criterion = "bic",
    *,
    family: Given | Sequence[Given] = GAUSSIAN,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_init: int = 1,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: bool | Callable[[str], None] = False,
    **parameters: Any,
) -> Selection:
    """Fit mixtures of several sizes and covariance types, and choose one by a criterion.

    Each fit starts from the fit with one component less, with one component split (see
    :mod:`swiftem.mixture.starts.split`), and from new starts; the best fit is kept. The log-likelihood
    therefore never falls with the number of components, and criteria depend little on single starts.
    Covariance types run in parallel threads; results do not depend on the number of threads.

    Parameters
    ----------
    X : array-like, shape (n, d)
        The rows.
    n_components : int or iterable of int
        Numbers of components to try.
    covariance_types : str or sequence of str
        Covariance types to try.
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
    counts = _counts(n_components)
    is_gaussian = isinstance(family, str) and family == GAUSSIAN and y is None
    families: dict[str, Any] = {} if is_gaussian else _families(family)
    if y is not None:
        families = {f"{check_choice('family', family, RESPONSES)} regression": family}
    kinds = _kinds(covariance_types) if is_gaussian else list(families)
    if not is_gaussian and covariance_types is not KINDS:
        raise ValueError(f"covariance_types must be left out for family={kinds[0]!r}, which has none.")
    if not callable(criterion):
        check_choice("criterion", criterion, CRITERIA)
    check_int("n_init", n_init, minimum=1)
    threads = _threads(n_jobs)
    if not (isinstance(verbose, bool | np.bool_ | Integral) or callable(verbose)):
        raise TypeError(f"verbose must be True, False or a function, got {shown(verbose)}.")
    kind_of_fit: Any = GaussianMixture if is_gaussian else Mixture if y is None else RegressionMixture
    _check_parameters(parameters, kind_of_fit)
    shared = X, sample_weight, criterion, n_init, _one_seed(random_state, families), parameters
    fits_of: dict[str, CandidateFits]
    if y is not None:
        responses = RegressionFits.prepare_responses(X, y, *shared[1:], str(family), kinds[0])
        fits_of = {kinds[0]: responses}
    elif is_gaussian:
        fits_of = dict.fromkeys(kinds, CandidateFits.prepare(*shared))
    else:
        fits_of = {label: CandidateFits.prepare(*shared, given, label) for label, given in families.items()}
    name = fits_of[kinds[0]].name
    done: dict[tuple[str, int], Fitted] = {}
    stop = Event()

    def chain(kind: str) -> None:
        """Fit one covariance type, from few components to many."""
        before: Fitted | None = None
        for count in counts:
            if stop.is_set():
                return
            fitted = fits_of[kind].fit(kind, count, before)
            done[kind, count] = fitted
            before = fitted if fitted.mixture is not None else before
            if callable(verbose):
                verbose(_line(fitted.row, name))
            elif verbose:
                print(_line(fitted.row, name), flush=True)

    interrupted = _in_threads(chain, kinds, threads, stop)
    found = [done[kind, count] for kind in kinds for count in counts if (kind, count) in done]
    if interrupted and not any(fitted.mixture for fitted in found):
        raise KeyboardInterrupt
    selection = _choose(found, name, interrupted)
    chosen = selection.ranking[0]
    if interrupted:
        said = f"The selection was interrupted after {len(found)} of {len(kinds) * len(counts)} fits."
        warn(said, InterruptedWarning)
    elif not chosen.converged:
        what = f"{chosen.covariance_type} with {components(chosen.n_components)}"
        warn(f"The best fit, {what}, did not converge: increase max_iter or tol.", ConvergenceWarning)
    return selection


def _in_threads(chain: Callable[[str], None], kinds: Sequence[str], threads: int, stop: Event) -> bool:
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


def _choose(found: Sequence[Fitted], name: str, interrupted: bool) -> Selection:
    models = {fitted.row.key: fitted.mixture for fitted in found if fitted.mixture is not None}
    ranked = sorted((row for row, _ in found if not row.failed), key=lambda row: row.value)
    if not ranked:
        raise ValueError(f"None of the {len(found)} fits succeeded. {found[0].row.failed}")
    return Selection(models[ranked[0].key], [row for row, _ in found], name, models, interrupted)


def _counts(n_components: Any) -> list[int]:
    """Return the numbers of components, unique and sorted."""
    given = n_components if np.iterable(n_components) else [n_components]
    counts = {check_int("n_components", count, minimum=1) for count in given}
    if not counts:
        raise ValueError("n_components must have at least one number of components, got none.")
    return sorted(counts)


def _kinds(covariance_types: Any) -> list[str]:
    try:
        given = [covariance_types] if isinstance(covariance_types, str) else list(covariance_types)
    except TypeError:  # reported by the check below
        given = [covariance_types]
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


def _one_seed(random_state: Any, families: Any) -> Any:
    """Return a seed that several families share, if the state would move on from one to the next."""
    if len(families) < 2 or isinstance(random_state, Integral):
        return random_state
    return int(check_random_state(random_state).randint(2**31 - 1))


def _threads(n_jobs: int | None) -> int:
    count = -1 if n_jobs is None else check_int("n_jobs", n_jobs, minimum=-1)
    if count == 0:
        raise ValueError("n_jobs must be a number of threads, or -1 for all cores, got 0.")
    return get_threads() if count == -1 else count


def _check_parameters(parameters: dict[str, Any], kind: Any) -> None:
    for name in parameters:
        if name in NOT_YOURS:
            raise TypeError(f"select cannot take {name}: {NOT_YOURS[name]}.")
        if name not in kind().get_params():
            raise TypeError(f"select has no parameter {name!r}; parameters of {kind.__name__} are allowed.")
    start = parameters.get("init_params", "kmeans")
    if not (isinstance(start, str) or callable(start)):
        raise TypeError("select cannot take init_params as an array: it would fix the number of components.")
    kind(**parameters)._validate_params()


def _line(row: Candidate, name: str) -> str:
    head = f"{row.covariance_type}, {components(row.n_components)}: "
    if row.failed:
        return f"{head}failed. {row.failed}"
    return (
        f"{head}{name} {row.value:.8g}, mean log-likelihood {row.log_likelihood:.6f}, {row.passes} passes, "
        f"{row.seconds:.2f} s, start {row.start}"
    )
