"""The cases of ``tests/gate.py``: runs and fits on small data, through public names only.

Modules move between commits, public names do not. Where the spelling of an option may change, it is in one of
the functions at the top, which then choose by what the sources offer: the same file runs at both commits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import swiftem
from swiftem import data, methods, models, schedules

Case = tuple[str, Callable[[], Any]]

N_ITER, PASSES, BATCHES = 300, 30, (1, 7, 256)
NAMES = ("em", "sem", "iem", "sem-vr", "fiem")
WITH_MEMORY = ("iem", "fiem")
KINDS = ("unit", "full", "tied", "diag", "spherical")
SCHEMES = ("squarem", "anderson")
MIXED = {"gaussian": [0], "poisson": [1], "categorical": [2]}
PACKAGES = ("torch", "dask")
"""Optional packages. The names of the cases that need one begin with it."""


# Spellings that may change.


def method(name: str, b: int, **options: Any) -> Any:
    """Return a method by name, with those of batch size, step size and options that it has."""
    chosen = methods.METHODS[name]
    options = {"batch_size": b, "step_size": 0.02 * b**0.5} | options
    return chosen(**{key: value for key, value in options.items() if key in chosen.__dataclass_fields__})


def averaged(average: Any) -> Any:
    """Return online EM with averaged statistics."""
    return methods.Averaged(methods.OnlineEM(step_size=schedules.power(0.9, 0.6), batch_size=7), average)


def accelerated(scheme: str) -> Any:
    return methods.Accelerated(methods.EM(), scheme)


def plain() -> dict[str, Any]:
    """Return the options of ``run`` and ``posterior`` that choose NumPy's arithmetic."""
    return {"kernels": "reference"}


def on_torch() -> dict[str, Any]:
    """Return the options of calls that choose PyTorch on the CPU."""
    return {"device": "torch:cpu"}


def checkpointed(folder: Path, resume: bool) -> dict[str, Any]:
    return {"checkpoint": folder, "checkpoint_every": 10, "resume": resume}


# Data.


def rows() -> Any:
    """Return rows (700, 2) of three groups, with an offset."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [4.0, 1.0], [-2.0, 5.0]])
    return 10.0 + centres[rng.integers(3, size=700)] + rng.normal(size=(700, 2)) * [1.0, 0.5]


def weights() -> Any:
    return np.random.default_rng(1).uniform(0.2, 3.0, size=700)


def counts(documents: int = 12, words: int = 15, rate: float = 0.6) -> Any:
    return sp.csr_array(np.random.default_rng(2).poisson(rate, size=(documents, words)))


def corpus() -> Any:
    """Return counts (600, 40) of four topics: enough documents for a start from clusters."""
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.full(40, 0.1), size=4)
    shares = rng.dirichlet(np.full(4, 0.2), size=600)
    return sp.csr_array(rng.poisson(25.0 * shares @ topics))


def with_gaps(y: Any, share: float = 0.1) -> Any:
    y = np.array(y, dtype=np.float64)
    y[np.random.default_rng(4).random(y.shape) < share] = np.nan
    return y


def rows_of(family: str) -> Any:
    """Return rows (700, 2) in the range of a family."""
    y = rows() - 9.0
    if family == "student-t":  # with normal rows, rounding would decide the degrees of freedom
        return y + 0.5 * np.random.default_rng(8).standard_t(2.0, size=y.shape)
    if family == "bernoulli":
        return (y > 1.5) * 1.0
    if family in ("binomial", "categorical"):
        return np.clip(np.round(np.abs(y)), 0, 4)
    if family == "poisson":
        return np.round(np.abs(y))
    if family == "von-mises-fisher":
        return y / np.linalg.norm(y, axis=1, keepdims=True)
    return y if family == "gaussian" else np.abs(y) + 0.1


def mixed_rows() -> Any:
    """Return rows (700, 3) of a number, a count and a code."""
    return np.column_stack([rows()[:, 0], rows_of("poisson")[:, 1], rows_of("categorical")[:, 0]])


def responses(name: str) -> tuple[Any, Any]:
    """Return rows (700, 2) and responses (700,) of two regressions."""
    rng = np.random.default_rng(6)
    X, group = rng.uniform(-1.0, 1.0, size=(700, 2)), rng.integers(2, size=700)
    middle = np.array([0.5, 2.5])[group] + np.sum(X * np.array([[1.0, -0.5], [-0.8, 0.3]])[group], axis=1)
    return X, rng.poisson(np.exp(middle)) if name == "poisson" else middle + 0.3 * rng.normal(size=700)


# Models.


def gaussians(covariance: str, **options: Any) -> Any:
    return models.GaussianMixtureModel(3, covariance=covariance, **options)


def topics() -> Any:
    return models.PLSAModel(3, alpha=1e-4, beta=1e-4)


@cache
def waiting_times() -> tuple[Any, Any]:
    """Return a model of compiled functions, a mixture of two exponential distributions, and its data."""
    from numba import njit

    @njit(error_model="numpy")
    def e_step(y, theta):  # type: ignore[no-untyped-def]
        found, loglik = np.empty((len(y), 4)), np.empty(len(y))
        for i in range(len(y)):
            time, total = np.sum(y[i : i + 1]), 0.0
            for m in range(2):
                found[i, m] = theta[0][m] * theta[1][m] * np.exp(-theta[1][m] * time)
                total += found[i, m]
            for m in range(2):
                found[i, m] /= total
                found[i, 2 + m] = found[i, m] * time
            loglik[i] = np.log(total)
        return found, loglik

    @njit(error_model="numpy")
    def m_step(s):  # type: ignore[no-untyped-def]
        weights, rates = np.empty(2), np.empty(2)
        for m in range(2):
            weights[m] = (s[m] + 1e-3) / (s[0] + s[1] + 2e-3)
            rates[m] = (s[m] + 1e-3) / (s[2 + m] + 1e-3)
        return weights, rates

    start = np.array([0.4, 0.6]), np.array([0.5, 2.0])
    model = models.FunctionModel(lambda y, rng: start, e_step, m_step, lambda theta: 0.0)
    rng = np.random.default_rng(0)
    return model, np.where(rng.random(200) < 0.5, 1.0, 20.0) * rng.exponential(size=200) + 0.1


@cache
def distances() -> tuple[Any, Any]:
    """Return a model of plain Python functions, one exponential distribution, and its data."""
    model = models.FunctionModel(
        lambda y, rng: (np.float64(1.0),),
        lambda y, theta: (np.abs(y[:, :1]), np.log(theta[0]) - theta[0] * np.abs(y[:, 0])),
        lambda s: (1.0 / s[0],),
        lambda theta: 0.0,
    )
    return model, rows()


def usual() -> dict[str, tuple[Any, Any]]:
    """Return one model of each kind by name, with data."""
    found = {kind: (gaussians(kind), rows()) for kind in KINDS}
    found |= {"plsa": (topics(), counts()), "functions": waiting_times()}
    return found | {"poisson": (models.MixtureModel(3, "poisson"), rows_of("poisson"))}


# What a case computes.


def result_of(model: Any, source: Any, chosen: Any, n_iter: int | None = None, **options: Any) -> Any:
    if n_iter is None:
        n_iter = N_ITER if chosen.index_streams else PASSES
    return swiftem.run(model, source, chosen, n_iter=n_iter, seed=3, **options)


def run(model: Any, source: Any, chosen: Any, n_iter: int | None = None, **options: Any) -> Any:
    """Return θ, s and counts of a run."""
    return outcome(result_of(model, source, chosen, n_iter, **options))


def outcome(result: Any) -> Any:
    return result.theta, result.s, result.passes, result.n_iter, result.rejected


def resumed(model: Any, source: Any, chosen: Any) -> Any:
    """Return what a run gives that is continued from its state; both parts are in the middle of an epoch."""
    first, rest = (130, 110) if chosen.index_streams else (7, 9)
    half = result_of(model, source, chosen, first)
    return run(model, source, chosen, rest, theta0=half.theta, s0=half.s, state=half.state)


def from_checkpoint(folder: Path, model: Any, source: Any, chosen: Any) -> Any:
    """Return what a run gives that is continued from a folder."""
    first, both = (130, 240) if chosen.index_streams else (7, 16)
    result_of(model, source, chosen, first, **checkpointed(folder, resume=False))
    return run(model, source, chosen, both, **checkpointed(folder, resume=True))


def posterior(model: Any, source: Any, **options: Any) -> Any:
    """Return log-likelihoods, responsibilities and labels at the parameters of a short run of em."""
    theta = result_of(model, source, methods.EM(), 5).theta
    found = [
        swiftem.posterior(model, source, theta, **wanted, **options)
        for wanted in ({"responsibilities": True}, {"labels": True})
    ]
    return found[0].log_likelihood, found[0].responsibilities, found[1].labels


OF_GAUSSIANS = ("weights_", "means_", "covariances_", "lower_bounds_", "n_iter_", "stationarity_")
OF_MIXTURES = ("weights_", "params_", "lower_bounds_", "n_iter_", "stationarity_")
OF_LINES = ("weights_", "coef_", "intercept_", "variances_", "lower_bounds_", "n_iter_", "stationarity_")
OF_COUNTS = ("weights_", "coef_", "intercept_", "lower_bounds_", "n_iter_")
OF_TOPICS = ("components_", "doc_topic_", "topic_counts_", "log_likelihood_", "stationarity_", "n_iter_")


def fit(estimator: Any, names: tuple[str, ...], X: Any, *given: Any, **options: Any) -> Any:
    """Return the attributes of a fit."""
    estimator.set_params(random_state=0).fit(X, *given, **options)
    return [getattr(estimator, name) for name in names]


def fit_gaussians(X: Any, sample_weight: Any = None, **parameters: Any) -> Any:
    """Return the attributes of a mixture of Gaussians, and what it says about its rows."""
    mixture = swiftem.GaussianMixture(3, **parameters)
    found = fit(mixture, OF_GAUSSIANS, X, sample_weight=sample_weight)
    return found, mixture.score_samples(X), mixture.predict(X)


def fit_mixture(X: Any, **parameters: Any) -> Any:
    mixture = swiftem.Mixture(3, **{"family": "poisson"} | parameters)
    return fit(mixture, OF_MIXTURES, X), mixture.predict_proba(X)


def fit_topics(X: Any, names: tuple[str, ...] = OF_TOPICS, **parameters: Any) -> Any:
    """Return the attributes of a topic model, and the topics that it gives to a few documents."""
    model = swiftem.PLSA(4, **parameters)
    return fit(model, names, X), model.transform(corpus()[:5])


def streamed(estimator: Any, names: tuple[str, ...], *arrays: Any) -> Any:
    """Return the attributes after ``partial_fit`` to blocks of rows."""
    estimator.set_params(random_state=0)
    n = arrays[0].shape[0]
    for start in range(0, n, 200):
        estimator.partial_fit(*(part[start : start + 200] for part in arrays))
    return [getattr(estimator, name) for name in names]


# The cases.


def batch_sizes() -> Iterator[Case]:
    """Yield every method with a compiled loop, at batch sizes that differ in how they are computed."""
    for name in NAMES:
        for b in BATCHES if name != "em" else (1,):
            chosen = method(name, b)
            for label, (model, source) in usual().items():
                if label != "poisson":
                    yield f"{label}, {name}, b={b}", partial(run, model, source, chosen)
        chosen, unit = method(name, 7), gaussians("unit")
        full = gaussians("full", reg_covar=1e-6)
        yield f"full, {name}, weights", partial(run, full, rows(), chosen, sample_weight=weights())
        yield f"unit, {name}, float32", partial(run, unit, rows().astype(np.float32), chosen)
        yield f"unit, {name}, reference", partial(run, unit, rows(), chosen, **plain())


def further_methods() -> Iterator[Case]:
    for name in ("opt-fiem", "spider"):
        for label, (model, source) in usual().items():
            yield f"{label}, {name}, b=7", partial(run, model, source, method(name, 7))
        for b in (1, 256):
            yield f"unit, {name}, b={b}", partial(run, gaussians("unit"), rows(), method(name, b))
    for label in ("unit", "full", "plsa", "poisson", "functions"):
        model, source = usual()[label]
        yield f"{label}, averaged", partial(run, model, source, averaged(40))
        for scheme in SCHEMES:
            yield f"{label}, {scheme}", partial(run, model, source, accelerated(scheme))
    yield "diag, averaged, suffix", partial(run, gaussians("diag"), rows(), averaged("suffix"))
    for name in ("em", "sem", "fiem"):
        yield f"Python functions, {name}", partial(run, *distances(), method(name, 7))


def orders() -> Iterator[Case]:
    for name in ("sem", "iem", "sem-vr", "fiem", "spider"):
        problem = gaussians("full"), rows(), method(name, 7, order="weighted")
        yield f"full, {name}, weighted", partial(run, *problem, sample_weight=weights())
    for name in ("sem", "fiem"):
        chosen = method(name, 7, order="shuffled", memory_order="shuffled")
        yield f"diag, {name}, shuffled", partial(run, gaussians("diag"), rows(), chosen)


def plain_runs() -> Iterator[Case]:
    for label, (model, source) in usual().items():
        for name in ("em", "sem", "fiem") if label != "unit" else ():
            yield f"{label}, {name}, reference", partial(run, model, source, method(name, 7), **plain())


def options_of_runs() -> Iterator[Case]:
    for name in WITH_MEMORY:
        for label in ("unit", "full", "plsa", "poisson"):
            model, source = usual()[label]
            chosen = method(name, 7, memory_dtype="float32")
            yield f"{label}, {name}, float32 memory", partial(run, model, source, chosen)
    for kind, name in (("unit", "em"), ("unit", "fiem"), ("full", "em"), ("full", "sem")):
        model = gaussians(kind, known_weights=(0.2, 0.3, 0.5))
        yield f"{kind}, {name}, known weights", partial(run, model, rows(), method(name, 7))
    prior = models.NormalInverseWishart(scale=np.eye(2), degrees_of_freedom=5.0)
    for name in ("em", "sem-vr"):
        model = gaussians("full", prior=prior, concentration=2.0)
        yield f"full, {name}, prior", partial(run, model, rows(), method(name, 7))
    given = np.random.default_rng(7).integers(700, size=(2, 100, 7))
    for name in ("sem", "fiem"):
        draws = tuple(given) if name == "fiem" else given[0]
        problem = gaussians("full"), rows(), method(name, 7), 100
        yield f"full, {name}, draws", partial(run, *problem, draws=draws)


def family_runs() -> Iterator[Case]:
    more = {"poisson", "categorical", "student-t"}
    for family in swiftem.families.FAMILIES:
        model = models.MixtureModel(3, family)
        for name in NAMES if family in more else ("em", "fiem"):
            yield f"{family}, {name}", partial(run, model, rows_of(family), method(name, 7))
    for family in ("poisson", "bernoulli"):
        model = models.MixtureModel(3, family)
        yield f"{family}, sem-vr, b=1", partial(run, model, rows_of(family), method("sem-vr", 1))
    diagonal = models.MixtureModel(2, "student-t(covariance='diag')")
    yield "student-t diag, em", partial(run, diagonal, rows_of("student-t"), method("em", 1))
    for name in ("em", "sem", "fiem"):
        yield f"blocks, {name}", partial(run, models.MixtureModel(3, MIXED), mixed_rows(), method(name, 7))


def missing_cells() -> Iterator[Case]:
    for kind in KINDS[1:]:
        model = gaussians(kind, missing="ignore", reg_covar=1e-6)
        for name in ("em", "sem-vr", "fiem") if kind in ("full", "diag") else ("em",):
            yield f"missing {kind}, {name}", partial(run, model, with_gaps(rows()), method(name, 7))
    full = gaussians("full", missing="ignore", reg_covar=1e-6)
    yield "missing full, em, reference", partial(run, full, with_gaps(rows()), method("em", 1), **plain())
    for label, family, y in (
        ("poisson", "poisson", rows_of("poisson")),
        ("categorical", "categorical", rows_of("categorical")),
        ("blocks", MIXED, mixed_rows()),
    ):
        model = models.MixtureModel(3, family, missing="ignore")
        for name in ("em", "fiem"):
            yield f"missing {label}, {name}", partial(run, model, with_gaps(y), method(name, 7))


def stored_files(folder: Path) -> Iterator[Case]:
    """Yield runs on files; those of units are computed by the pool of this process."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    y = rows()
    table = pa.table({"a": y[:, 0], "b": y[:, 1], "w": weights()})
    files = {ending: folder / f"rows.{ending}" for ending in ("npy", "parquet", "csv")}
    np.save(files["npy"], y)
    pyarrow.parquet.write_table(table.drop_columns("w"), files["parquet"], row_group_size=100)
    pyarrow.csv.write_csv(table.drop_columns("w"), files["csv"])
    full = gaussians("full")
    for ending, file in files.items():
        for name in ("em", "sem") if ending == "csv" else NAMES:
            yield f"{ending}, {name}", partial(run, full, file, method(name, 7))
    weighted = folder / "weighted.parquet"
    pyarrow.parquet.write_table(table, weighted, row_group_size=100)
    for name in ("em", "sem"):
        source = data.open_source(weighted, weight="w")
        yield f"parquet, {name}, weights", partial(run, full, source, method(name, 7))
    blocks = partial(iter, np.array_split(y, 5))
    yield "stream, em", partial(run, full, blocks, method("em", 1))
    for name in (*NAMES, "spider"):
        yield f"units, {name}", partial(run, full, data.open_units(files["parquet"]), method(name, 2), 60)
    yield "units, em, npy", partial(run, gaussians("diag"), data.open_units(files["npy"]), method("em", 1))
    units = data.UnitSource(np.array_split(rows_of("poisson"), 4))
    yield "units, em, poisson", partial(run, models.MixtureModel(3, "poisson"), units, method("em", 1))
    yield "GaussianMixture, npy", partial(fit_gaussians, files["npy"])


def interrupted(folder: Path) -> Iterator[Case]:
    full = gaussians("full")
    chosen = {name: method(name, 7) for name in methods.METHODS}
    chosen |= {"averaged": averaged(40)} | {scheme: accelerated(scheme) for scheme in SCHEMES}
    for name, one in chosen.items():
        yield f"full, {name}, resumed", partial(resumed, full, rows(), one)
    for label, name in (("unit", "fiem"), ("plsa", "spider"), ("poisson", "iem"), ("plsa", "fiem")):
        yield f"{label}, {name}, resumed", partial(resumed, *usual()[label], chosen[name])
    for label, name in (("full", "em"), ("full", "fiem"), ("unit", "sem-vr"), ("plsa", "iem")):
        place = folder / f"{label} {name}"
        yield f"{label}, {name}, checkpoint", partial(from_checkpoint, place, *usual()[label], chosen[name])


def posteriors() -> Iterator[Case]:
    for label in ("unit", "full", "tied", "diag", "poisson", "plsa"):
        yield f"posterior, {label}", partial(posterior, *usual()[label])
    for family in ("categorical", "student-t"):
        model = models.MixtureModel(3, family)
        yield f"posterior, {family}", partial(posterior, model, rows_of(family))
    gaps = gaussians("full", missing="ignore", reg_covar=1e-6), with_gaps(rows())
    yield "posterior, missing full", partial(posterior, *gaps)
    yield "posterior, full, reference", partial(posterior, *usual()["full"], **plain())


def gaussian_fits() -> Iterator[Case]:
    for kind in KINDS[1:]:
        yield f"GaussianMixture, {kind}", partial(fit_gaussians, rows(), covariance_type=kind)
    yield "GaussianMixture, weights", partial(fit_gaussians, rows(), weights())
    yield "GaussianMixture, missing", partial(fit_gaussians, with_gaps(rows()), missing="ignore")
    yield "GaussianMixture, float32", partial(fit_gaussians, rows().astype(np.float32))
    yield "GaussianMixture, two starts", partial(fit_gaussians, rows(), n_init=2, init_params="random")
    quick = accelerated("anderson")
    yield "GaussianMixture, anderson", partial(fit_gaussians, rows(), tol=1e-9, method=quick)
    for name in ("sem", "sem-vr", "fiem"):
        yield (
            f"GaussianMixture, {name}",
            partial(fit_gaussians, rows(), method=methods.METHODS[name](batch_size=16)),
        )
    three = swiftem.GaussianMixture(3)
    yield "GaussianMixture, partial_fit", partial(streamed, three, OF_GAUSSIANS[:3], rows())


def mixture_fits() -> Iterator[Case]:
    for family in ("poisson", "gaussian", "gamma", "bernoulli", "categorical", "student-t"):
        yield f"Mixture, {family}", partial(fit_mixture, rows_of(family), family=family)
    yield "Mixture, blocks", partial(fit_mixture, mixed_rows(), family=MIXED)
    yield "Mixture, missing", partial(fit_mixture, with_gaps(rows_of("poisson")), missing="ignore")
    by = methods.VarianceReducedEM(batch_size=16)
    yield "Mixture, sem-vr", partial(fit_mixture, rows_of("poisson"), method=by)
    three = swiftem.Mixture(3, family="poisson")
    yield "Mixture, partial_fit", partial(streamed, three, OF_MIXTURES[:2], rows_of("poisson"))


def regression_fits() -> Iterator[Case]:
    def lines(**parameters: Any) -> Any:
        return fit(swiftem.RegressionMixture(2, **parameters), OF_LINES, *responses("gaussian"))

    yield "RegressionMixture", lines
    yield "RegressionMixture, fiem", partial(lines, method=methods.FastIncrementalEM(batch_size=16))
    of_counts = swiftem.RegressionMixture(2, family="poisson")
    yield "RegressionMixture, poisson", partial(fit, of_counts, OF_COUNTS, *responses("poisson"))
    by_blocks = swiftem.RegressionMixture(2), OF_COUNTS[:3], *responses("gaussian")
    yield "RegressionMixture, partial_fit", partial(streamed, *by_blocks)


def topic_fits(folder: Path) -> Iterator[Case]:
    """Yield fits of topics: sem and sem-vr draw documents there, the others tokens."""
    for name in ("auto", "em", "sem", "sem-vr"):
        yield f"PLSA, {name}", partial(fit_topics, corpus(), method=name)
    for name in ("iem", "fiem"):
        yield f"PLSA, {name}", partial(fit_topics, corpus()[:60], method=name, max_iter=4)
    yield "PLSA, few documents", partial(fit_topics, corpus()[:60])
    yield "PLSA, float64", partial(fit_topics, corpus(), method="em", tol=1e-7, max_iter=60)
    yield "PLSA, weights", lambda: fit(swiftem.PLSA(4), OF_TOPICS, corpus(), sample_weight=weights()[:600])
    yield "PLSA, learned alpha", partial(fit_topics, corpus(), alpha="learn")
    yield "PLSA, partial_fit", lambda: streamed(swiftem.PLSA(4), ("components_", "doc_topic_"), corpus())
    file = folder / "counts.npz"
    sp.save_npz(file, sp.csr_matrix(corpus()))
    for name in ("em", "sem"):
        yield f"PLSA, {name}, file", partial(fit_topics, file, method=name)


def with_packages() -> Iterator[Case]:
    """Yield the cases that need an optional package, if it is there."""
    if find_spec("torch") is not None:
        for label in ("full", "tied", "diag", "poisson"):
            for name in NAMES if label == "full" else ("em", "sem-vr"):
                yield f"torch, {label}, {name}", partial(run, *usual()[label], method(name, 7), **on_torch())
        yield "torch, posterior, full", partial(posterior, *usual()["full"], **on_torch())
        yield "torch, GaussianMixture", partial(fit_gaussians, rows(), **on_torch())
        yield "torch, PLSA, em", partial(fit_topics, corpus(), method="em", **on_torch())
    if find_spec("dask") is not None:
        import dask.array as da

        X = da.from_array(corpus().toarray(), chunks=(150, -1))
        for name in ("em", "sem"):
            yield f"dask, PLSA, {name}", partial(fit_topics, X, ("components_", "n_iter_"), method=name)


def cases(folder: Path) -> Iterator[Case]:
    """Yield the name and the function of every case; files are written into a folder."""
    yield from batch_sizes()
    yield from further_methods()
    yield from orders()
    yield from plain_runs()
    yield from options_of_runs()
    yield from family_runs()
    yield from missing_cells()
    yield from stored_files(folder)
    yield from interrupted(folder)
    yield from posteriors()
    yield from gaussian_fits()
    yield from mixture_fits()
    yield from regression_fits()
    yield from topic_fits(folder)
    yield from with_packages()


def is_available(name: str) -> bool:
    """Return whether the package is installed that a case of this name needs, if any."""
    package = name.partition(",")[0]
    return package not in PACKAGES or find_spec(package) is not None


def numbers(value: Any) -> Any:
    """Return all numbers in nested tuples, lists and dicts as one vector."""
    return np.concatenate(leaves(value))


def leaves(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves(part)]
    return [np.ravel(np.asarray(value, dtype=np.float64))]


def compute(case: Callable[[], Any]) -> Any:
    """Return the numbers of a case; warnings about fits that did not converge are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return numbers(case())
