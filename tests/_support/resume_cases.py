"""Runs and fits that end early and are resumed by another process: every model, method and estimator.

A case is a function of a folder, or None, and ``resume``; it returns all of the result but seconds. Only what
users import is imported, so that a new process has nothing else when it reads the folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from forks import encode
from surroundings import within

import swiftem
from swiftem import methods, models

Case = Callable[[str | None, bool], bytes]
N = 240
FAMILIES = (
    "bernoulli",
    "binomial",
    "categorical",
    "exponential",
    "gamma",
    "gaussian",
    "inverse-gaussian",
    "log-normal",
    "poisson",
    "student-t",
    "von-mises-fisher",
)
KINDS = ("full", "tied", "diag", "spherical")


def rows(d: int = 2) -> Any:
    """Return rows of a mixture of three components."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, d)) + 3 * rng.normal(size=(3, d))[rng.integers(3, size=N)]


def far_rows() -> Any:
    y = rows()
    y[::12] *= 400.0
    return y


def with_gaps() -> Any:
    y = rows(3)
    y[np.random.default_rng(1).random(y.shape) < 0.1] = np.nan
    return y


def of_family(name: str) -> Any:
    """Return rows in the range of a family."""
    y = rows()
    if name == "bernoulli":
        return (y > 0) * 1.0
    if name in ("binomial", "categorical"):
        return np.clip(np.round(np.abs(y)), 0, 4)
    if name == "poisson":
        return np.round(np.abs(y))
    if name == "von-mises-fisher":
        return y / np.linalg.norm(y, axis=1, keepdims=True)
    return y if name in ("gaussian", "student-t") else np.abs(y) + 0.1


def counts() -> Any:
    return sp.csr_array(np.random.default_rng(0).poisson(0.4, size=(30, 25)))


def many_counts() -> Any:
    return sp.csr_array(np.random.default_rng(0).poisson(0.2, size=(600, 40)))


class Rate(NamedTuple):
    """θ of a model of one's own."""

    rate: float


OWN = models.FunctionModel(
    lambda y, rng: Rate(1.0),
    lambda y, theta: (np.abs(y[:, :1]), np.log(theta.rate) - theta.rate * np.abs(y[:, 0])),
    lambda s: Rate(1.0 / float(s[0])),
    lambda theta: 0.0,
)


def methods_of(b: int) -> dict[str, methods.Method]:
    """Return the methods by name, with batches of b."""
    made: dict[str, methods.Method] = {
        name: methods.make_method(name, step_size=0.1, batch_size=b) for name in methods.METHODS
    }
    made["averaged"] = methods.Averaged(methods.OnlineEM(step_size=0.2, batch_size=b), 40)
    for name in ("squarem", "anderson"):
        made[name] = methods.Accelerated(methods.EM(), name)
    return made


def of_run(model: Any, data: Callable[[], Any], method: methods.Method, **options: Any) -> Case:
    """Return a case of ``swiftem.run``."""

    def case(folder: str | None, resume: bool) -> bytes:
        every = 9 if method.index_streams else 1
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": every, "resume": resume}
        result = swiftem.run(
            model, data(), method, n_iter=8 * every, seed=1, record_every=2 * every, **options, **kept
        )
        found = (result.theta, result.s, result.state, result.path, result.passes, result.status)
        return encode(found)

    return case


def of_fit(make: Callable[..., Any], data: Callable[[], tuple[Any, ...]], *names: str) -> Case:
    """Return a case of ``fit``; ``names`` are the attributes that count."""

    def case(folder: str | None, resume: bool) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 1, "resume": resume}
        estimator = make(random_state=0, max_iter=40, tol=0.0)
        with warnings.catch_warnings(), within(**kept):
            warnings.simplefilter("ignore")  # of fits that did not converge
            estimator.fit(*data())
        history = estimator.history_.table()
        del history["seconds"]
        return encode((*(getattr(estimator, name) for name in names), history, estimator.n_iter_))

    return case


def of_command(data: Callable[[], Any], *options: str) -> Case:
    """Return a case of ``swiftem fit``."""

    def case(folder: str | None, resume: bool) -> bytes:
        from typer.testing import CliRunner

        from swiftem.cli.app import app

        kept = () if folder is None else ("--checkpoint", folder, "--checkpoint-every", "1")
        with TemporaryDirectory() as here:
            table, out = Path(here, "rows.npy"), Path(here, "out.model")
            np.save(table, data())
            arguments = ["fit", str(table), "-k", "3", "-o", str(out), "--max-iter", "40", "--tol", "0"]
            result = CliRunner().invoke(app, [*arguments, *options, *kept, *(["--resume"] if resume else [])])
            if result.exit_code:
                raise result.exception or AssertionError
            if not out.exists():
                raise AssertionError(result.output)
            kind = swiftem.Mixture if "--family" in options else swiftem.GaussianMixture
            model: Any = kind.load(out)  # type: ignore[attr-defined]
        return encode((model.weights_, model.params_ if "--family" in options else model.means_))

    return case


GAUSSIAN = ("weights_", "means_", "covariances_", "lower_bounds_")
MIXTURE = ("weights_", "params_", "lower_bounds_")
TOPICS = ("components_", "doc_topic_", "stationarity_")
REGRESSION = ("weights_", "coef_", "intercept_", "lower_bound_")

CASES: dict[str, Case] = {}
UNIT = models.GaussianMixtureModel(3)
BLOCKS = {"gaussian": [0], "poisson": [1]}

for _name, _method in methods_of(5).items():
    CASES[f"run unit {_name}"] = of_run(UNIT, rows, _method)
    for _kind in KINDS:
        _model = models.GaussianMixtureModel(3, covariance=_kind)
        CASES[f"run {_kind} {_name}"] = of_run(_model, rows, _method)
    for _kind in KINDS:
        _model = models.GaussianMixtureModel(3, covariance=_kind, missing="ignore")
        CASES[f"run missing {_kind} {_name}"] = of_run(_model, with_gaps, _method)
    for _family in FAMILIES:
        _data = lambda name=_family: of_family(name)  # noqa: E731
        CASES[f"run {_family} {_name}"] = of_run(models.MixtureModel(3, _family), _data, _method)
    CASES[f"run blocks {_name}"] = of_run(
        models.MixtureModel(3, BLOCKS), lambda: np.abs(np.round(rows())), _method
    )
    CASES[f"run tokens {_name}"] = of_run(models.PLSAModel(3), counts, _method)
    CASES[f"run own {_name}"] = of_run(OWN, rows, _method)
for _name, _method in methods_of(1).items():
    CASES[f"run one by one {_name}"] = of_run(UNIT, rows, _method)
    CASES[f"run far {_name}"] = of_run(UNIT, far_rows, _method)
    CASES[f"run token by token {_name}"] = of_run(models.PLSAModel(3), counts, _method)
CASES["run records"] = of_run(
    UNIT,
    rows,
    methods.EM(),
    record=lambda iterate: UNIT.bind(swiftem.data.as_source(rows())).unpack(iterate.s),
)

METHODS = ("auto", *methods.METHODS)
for _name in (*METHODS, "squarem", "anderson"):
    _how: dict[str, Any] = {"acceleration": _name} if _name not in METHODS else {"method": _name}
    for _kind in KINDS:
        CASES[f"GaussianMixture {_kind} {_name}"] = of_fit(
            lambda how={"covariance_type": _kind} | _how, **given: swiftem.GaussianMixture(3, **how, **given),
            lambda: (rows(),),
            *GAUSSIAN,
        )
    CASES[f"GaussianMixture missing {_name}"] = of_fit(
        lambda how=_how, **given: swiftem.GaussianMixture(3, missing="ignore", **how, **given),
        lambda: (with_gaps(),),
        *GAUSSIAN,
    )
    CASES[f"GaussianMixture two starts {_name}"] = of_fit(
        lambda how=_how, **given: swiftem.GaussianMixture(3, n_init=2, init_params="random", **how, **given),
        lambda: (rows(),),
        *GAUSSIAN,
    )
    for _family in FAMILIES:
        CASES[f"Mixture {_family} {_name}"] = of_fit(
            lambda family=_family, how=_how, **given: swiftem.Mixture(3, family=family, **how, **given),
            lambda family=_family: (of_family(family),),
            *MIXTURE,
        )
    CASES[f"Mixture blocks {_name}"] = of_fit(
        lambda how=_how, **given: swiftem.Mixture(3, family=BLOCKS, **how, **given),
        lambda: (np.abs(np.round(rows())),),
        *MIXTURE,
    )
    CASES[f"RegressionMixture gaussian {_name}"] = of_fit(
        lambda how=_how, **given: swiftem.RegressionMixture(2, **how, **given),
        lambda: (rows(), rows(3)[:, 2]),
        *REGRESSION,
    )
    _samplings = {"sem": ("tokens", "documents"), "sem-vr": ("tokens", "documents")}
    for _sampling in _samplings.get(_name, ("auto",)):
        CASES[f"PLSA {_sampling} {_name}"] = of_fit(
            lambda how=_how, sampling=_sampling, **given: swiftem.PLSA(3, sampling=sampling, **how, **given),
            lambda: (many_counts(),),
            *TOPICS,
        )
    if _name in ("auto", "em", "sem-vr", "fiem", "spider"):
        CASES[f"command {_name}"] = of_command(rows, "--method", _name)
        CASES[f"command poisson {_name}"] = of_command(
            lambda: of_family("poisson"), "--family", "poisson", "--method", _name
        )
CASES["RegressionMixture poisson"] = of_fit(
    lambda **given: swiftem.RegressionMixture(2, family="poisson", **given),
    lambda: (rows(), np.round(np.abs(rows(3)[:, 2]))),
    *REGRESSION,
)
for _name, _options in {
    "alpha": {"alpha": "learn"},
    "leave one out": {"leave_one_out": True},
    "background": {"background": True},
}.items():
    CASES[f"PLSA {_name}"] = of_fit(
        lambda options=_options, **given: swiftem.PLSA(3, **options, **given),
        lambda: (many_counts(),),
        *TOPICS,
    )

QUICK = {
    "run unit em": {"Iterate", "State", "NoState", "GaussianMixtureTheta"},
    "run records": {"MixtureStatistics"},
    "run full squarem": {"AcceleratedState", "SquaremState", "GaussianTheta"},
    "run poisson anderson": {"AndersonState", "MixtureTheta"},
    "run unit averaged": {"Averages"},
    "run diag iem": {"MemoryState"},
    "run one by one fiem": {"MemoryState"},
    "run far fiem": {"MemoryState"},
    "run unit opt-fiem": {"OptFIEMState"},
    "run unit spider": {"AnchorState"},
    "run token by token spider": {"PLSATheta", "Tables"},
    "run own sem": {"NoState", "resume_cases:Rate"},
    "GaussianMixture full spider": {"Run", "Start"},
    "PLSA auto opt-fiem": {"Moment"},
    "PLSA documents sem-vr": {
        "AnchorState",
        "DocumentSnapshot",
    },
    "RegressionMixture poisson": {"Regressions"},
    "command spider": {"Moment"},
}
"""Cases that are tested each time: each type of state is in one of them."""
