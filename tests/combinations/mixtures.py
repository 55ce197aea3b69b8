"""Cases of mixtures: every parameter, kind of input, rows, weights, missing cells, and every later call."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from copy import deepcopy
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from combinations.inputs import DASK, KINDS, Input, Kind, pieces
from combinations.judge import Outcome, attempt, difference, unequal_labels
from combinations.pairs import all_pairs, installed
from sklearn.base import clone
from surroundings import AROUND, within

import swiftem
from swiftem import methods, models, schedules

Case = dict[str, Any]

OBJECTS: dict[str, methods.Method] = {
    "OnlineEM": methods.OnlineEM(step_size=0.5, batch_size=9),
    "OnlineEM, schedule": methods.OnlineEM(step_size=schedules.power(1.0, 0.6, 5.0)),
    "IncrementalEM": methods.IncrementalEM(batch_size=7),
    "VarianceReducedEM": methods.VarianceReducedEM(step_size=0.3),
    "FastIncrementalEM": methods.FastIncrementalEM(step_size=0.05, batch_size=5),
    "Averaged": methods.Averaged(methods.OnlineEM(batch_size=7)),
    "Squarem": methods.Accelerated(methods.EM(), methods.Squarem()),
    "Anderson": methods.Accelerated(methods.EM(), "anderson"),
}
"""Methods as objects; fields that they leave out are chosen for the data."""

SHARED: dict[str, list[Any]] = {
    "n_components": [1, 2, 3, 6],
    "tol": [1e-3, 1e-6, 0.0],
    "max_iter": [100, 20, 1, 0],
    "n_init": [1, 2],
    "init_params": [
        "race", "race", "kmeans", "k-means++", "random", "random_from_data", "callable", "labels", "shares",
    ],
    "weights_init": [None, None, "given"],
    "random_state": [0, "RandomState"],
    "warm_start": [False, True],
    "verbose": [0, 1],
    "method": ["auto", "auto", *methods.METHODS, *OBJECTS],
    "missing": ["error", "ignore"],
    "memory_limit": [None, "500MB"],
    "scratch": [None, "folder"],
    "device": ["auto", "cpu"],  # and the place for one more that tests have
    "device_memory_limit": [None, "1GB"],
    "checkpoint": [None, None, "folder", "folder, every 2"],
}  # fmt: skip
"""Values of the parameters that both mixtures have; what is given twice occurs more often."""

GAUSSIAN = SHARED | {
    "covariance_type": ["full", "tied", "diag", "spherical"],
    "reg_covar": [1e-6, 0.0, 1e-2],
    "means_init": [None, None, "given"],
    "precisions_init": [None, None, "given"],
    "verbose_interval": [10, 1],
    "prior": [None, None, "given", "on weights", "on all"],
}
FAMILY = SHARED | {
    "family": [
        "gaussian", "poisson", "bernoulli", "binomial", "binomial(trials=12)", "categorical",
        "categorical(levels=5)", "exponential", "gamma", "inverse-gaussian", "log-normal", "student-t",
        "von-mises-fisher", "blocks", "auto",
    ],
    "smoothing": [1e-3, 0.0, 2.0],
    "concentration": [None, 1.0, 3.0],
    "params_init": [None, None, None, "given"],
}  # fmt: skip
REGRESSION = {name: SHARED[name] for name in (
    "n_components", "n_init", "random_state", "warm_start", "verbose", "method", "checkpoint",
)} | {
    "tol": [1e-6, 1e-3],
    "max_iter": [200, 20, 1],
    "family": ["gaussian", "gaussian", "poisson"],
    "fit_intercept": [True, False],
    "smoothing": [1e-3, 0.0, 2.0],
    "responses": installed(
        ["array", "list", "float32", "int", "pandas", "polars", "tensor", "masked", "column"]
    ),
}  # fmt: skip

SELECT = {name: SHARED[name] for name in ("n_init", "method")} | {
    "n_components": [2, [1, 2], range(1, 4)],
    "covariance_types": ["diag", ["full", "spherical"]],
    "criterion": ["bic", "aic", "icl", "callable"],
    "family": ["gaussian", "gaussian", "poisson", "categorical", "list", "regression"],
    "n_jobs": [None, 1],
    "random_state": [0],
    "tol": [1e-3],
    "max_iter": [20],
    "memory_limit": [None, "500MB"],
    "missing": ["error", "ignore"],
}
FACTORS = {"gaussian": GAUSSIAN, "family": FAMILY, "regression": REGRESSION, "select": SELECT}
GIVEN = ("poisson", "bernoulli", "exponential", "gaussian")
"""Families for which ``params_init`` can be given here: their parameters have the shape of means."""

NEUTRAL = {
    "verbose": 0, "verbose_interval": 10, "memory_limit": None, "scratch": None, "device": "auto",
    "device_memory_limit": None, "checkpoint": None,
}  # fmt: skip
"""Parameters that must not change a result: the plain fit has these values."""

DEVICE, ON = "torch:cpu", ("device",)
"""PyTorch's CPU device, as if it were a GPU; and the parameter that is a device."""
ALL_ROWS = [40, 300, 999, 1000, 1500]
"""Below and above 1,000 rows, from which starts race; 40 are too few for a race of many components."""
MORE_ROWS = [6_000, 30_000]
"""Above 5,000 rows, and above the sample of the race."""
SAMPLE = 26_000
"""Rows from which a race sees a sample: stored rows then start from other rows than an array."""


ASKED = installed([
    "array", "Fortran", "float32", "int64", "objects", "lists", "masked", "pandas", "polars", "tensor",
    "Parquet", "CSV",
])  # fmt: skip
"""Kinds of rows for the calls after the fit, besides the kind of the fit."""


FRAMES = ("pandas", "polars", "arrow")
"""Kinds whose columns have types."""


def data_factors(rows: list[int], kinds: list[str]) -> dict[str, list[Any]]:
    """Return the factors of the data; ``asked`` is the kind of rows for the calls after the fit."""
    return {
        "kind": kinds,
        "asked": ["same", "same", *(kind for kind in ASKED if kind in kinds)],
        "rows": rows,
        "d": [1, 2, 5],
        "weights": [None, None, "ones", "fractions", "zeros"],
        "holes": [False, False, True],
        "how": ["fit", "fit", "partial_fit"],
    }


def cases_of(
    name: str, seed: int, rows: list[int], kinds: list[str] | None = None, most: int | None = None
) -> list[Case]:
    """Return the cases of one of ``FACTORS``; with ``most``, so many that are quick."""
    kinds = [kind for kind in KINDS if kind not in DASK] if kinds is None else kinds
    factors = {"estimator": [name]} | FACTORS[name] | data_factors(rows, kinds)
    if most is not None:
        passes = [20, 5, 1] if name in ("regression", "select") else [20, 5, 1, 0]
        factors |= {"max_iter": passes, "d": [1, 2, 3]}
    made = all_pairs(factors, np.random.default_rng(seed), allowed=is_possible, most=most)
    return [{"number": number, "seed": seed} | case for number, case in enumerate(made)]


def is_possible(case: Case) -> bool:
    """Return whether a case can be made: no missing whole numbers, say, and what is read once is streamed."""
    kind, asked = KINDS[case["kind"]], KINDS[case["kind" if case["asked"] == "same" else "asked"]]
    if case["holes"] and not (kind.holes and asked.holes and case.get("missing") != "error"):
        return False
    if (kind.once and case["how"] == "fit") or asked.once:
        return False
    if case["estimator"] == "select" and (case["how"] != "fit" or case["asked"] != "same"):
        return False
    if case["estimator"] == "regression" and asked.stored and case["asked"] != "same":
        return False  # regressions have rows in memory: that others are refused, fits show
    if case["estimator"] == "regression" and case["family"] == "poisson":
        return case["method"] in ("auto", "em") and case["how"] == "fit"
    if case.get("family") == "auto" and not case["kind"].startswith(FRAMES):
        return False
    if case.get("params_init") and case["family"] not in GIVEN:
        return False
    if case["d"] == 1 and case["n_components"] != 1 and case.get("family", "")[:4] in ("bern", "cate"):
        return False  # one column of categories is a mixture in many ways
    return not (case["holes"] and case.get("family") in ("student-t", "von-mises-fisher"))


def make_rows(case: Case) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return rows of the case, in values that its kinds can hold, weights or None, and classes."""
    rng = np.random.default_rng([case["seed"], case["number"]])
    n, d = case["rows"], case["d"]
    label = rng.integers(3, size=n)
    rows = draw(
        case.get("family", "gaussian") if case["estimator"] == "family" else "gaussian", label, d, rng
    )
    if case["holes"]:
        rows[rng.random(rows.shape) < 0.08] = np.nan
    for name in (case["kind"], case["asked"]):
        rows = rows if name == "same" else KINDS[name].values(rows)
    weight = {
        None: None,
        "ones": np.ones(n),
        "fractions": rng.choice([0.25, 0.5, 1.0, 1.75], size=n),
        "zeros": rng.choice([0.0, 1.0, 2.5], size=n, p=[0.2, 0.5, 0.3]),
    }[case["weights"]]
    return rows, weight, label


def draw(family: str, label: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows of three classes that suit a family, (n, d)."""
    n, level = len(label), np.add.outer(label, np.arange(d)) % 3
    name = family.partition("(")[0]
    if name in ("poisson", "list"):
        return rng.poisson(1.0 + 6.0 * level).astype(float)
    if name == "bernoulli":
        return (rng.random((n, d)) < 0.1 + 0.4 * level).astype(float)
    if name == "binomial":
        return rng.binomial(12, 0.15 + 0.35 * level).astype(float)
    if name == "categorical":
        return ((rng.random((n, d)) < 0.3) * rng.integers(4, size=(n, d)) + level) % 4.0
    if name == "von-mises-fisher":
        wide = rng.normal(size=(n, d)) + 3.0 * level + 0.5
        return wide / np.linalg.norm(wide, axis=1, keepdims=True)
    if name in ("exponential", "gamma", "inverse-gaussian", "log-normal"):
        return rng.gamma(4.0, 1.0 + 3.0 * level) + 0.6
    rows = rng.normal(size=(n, d)) + 6.0 * level + 3.0
    if name == "blocks":
        rows[:, 0] = rng.poisson(1.0 + 6.0 * level[:, 0])
    if name == "auto":
        rows[:, 0] = level[:, 0]
    return rows


def parameters(case: Case, rows: np.ndarray, folder: Path, *, plain: bool) -> dict[str, Any]:
    """Return the parameters, objects in place of names; ``plain``: with the defaults of neutral ones."""
    names = FACTORS[case["estimator"]]
    given = {name: case[name] for name in names if name != "responses"}
    if plain:
        given |= {name: value for name, value in NEUTRAL.items() if name in given}
    M, d, n = case["n_components"], case["d"], len(rows)
    filled = np.nan_to_num(rows)
    labels = np.arange(n) % M
    made: dict[tuple[str, Any], Callable[[], Any]] = {
        ("init_params", "callable"): lambda: in_turn,
        ("init_params", "labels"): lambda: labels,
        ("init_params", "shares"): lambda: 0.9 * np.eye(M)[labels] + 0.1 / M,
        ("weights_init", "given"): lambda: np.arange(1, M + 1) / np.arange(1, M + 1).sum(),
        ("means_init", "given"): lambda: filled[:M] + 0.1 * np.arange(M)[:, None],
        ("precisions_init", "given"): lambda: {
            "full": [np.eye(d)] * M, "tied": np.eye(d), "diag": np.ones((M, d)), "spherical": np.ones(M),
        }[case["covariance_type"]],
        ("prior", "given"): lambda: models.NormalInverseWishart(d + 2.0, 1.0),
        ("prior", "on weights"): lambda: models.NormalInverseWishart(concentration=3.0),
        ("prior", "on all"): lambda: models.NormalInverseWishart(d + 2.0, 1.0, concentration=3.0),
        ("random_state", "RandomState"): lambda: np.random.RandomState(7),
        **{("method", name): lambda method=method: method for name, method in OBJECTS.items()},
        ("family", "blocks"): lambda: blocks(case),
        ("params_init", "given"): lambda: params_init(case, filled),
        ("checkpoint", "folder"): lambda: folder / "checkpoint",
        ("checkpoint", "folder, every 2"): lambda: folder / "checkpoint",
        ("scratch", "folder"): lambda: str(folder),
    }  # fmt: skip
    if given.get("checkpoint") == "folder, every 2":
        given |= {"checkpoint_every": 2, "resume": "auto"}
    return {
        name: made[name, value]() if isinstance(value, str) and (name, value) in made else value
        for name, value in given.items()
    }


LIMITS = ("memory_limit", "scratch", "device_memory_limit")


def in_turn(X: Any, n_components: int, random_state: Any) -> np.ndarray:
    return np.arange(len(X)) % n_components


def blocks(case: Case) -> dict[str, list[int]]:
    return {"poisson": [0]} | ({"gaussian": list(range(1, case["d"]))} if case["d"] > 1 else {})


def params_init(case: Case, rows: np.ndarray) -> dict[str, np.ndarray] | None:
    """Return parameters to start from."""
    M, d = case["n_components"], case["d"]
    level = np.resize(rows, (max(M, len(rows)), d))[:M] + 0.5
    return {
        "poisson": {"rates": level},
        "bernoulli": {"probabilities": np.clip(level, 0.2, 0.8)},
        "exponential": {"rates": 1.0 / level},
        "gaussian": {"means": level, "variances": np.ones((M, d))},
    }.get(case["family"])


class Trial:
    """A fit of one kind of input, or the plain one of an array, and the calls after it."""

    def __init__(self, case: Case, folder: Path, *, plain: bool) -> None:
        self.case, self.folder, self.plain = case, folder, plain
        self.rows, self.weight, self.label = make_rows(case)
        folder.mkdir(exist_ok=True)
        # The types of columns choose the family "auto".
        like = case["kind"] if case.get("family") == "auto" else "array"
        self.kind = KINDS[like if plain else case["kind"]]
        asked = case["kind"] if case["asked"] == "same" else case["asked"]
        self.asked_kind = KINDS["array" if plain else asked]
        kind = {"gaussian": swiftem.GaussianMixture, "family": swiftem.Mixture,
                "regression": swiftem.RegressionMixture}[case["estimator"]]  # fmt: skip
        given = parameters(case, self.rows, folder, plain=plain)
        self.around = {name: given.pop(name) for name in AROUND if name in given}
        self.model = kind(**given)

    def given(self, kind: Kind) -> Input:
        """Return new input, as what is read once cannot be given twice."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        return kind.make(self.rows, self.weight, folder)

    def fit(self) -> Any:
        """Fit as the case says, and return the fitted numbers."""
        if self.case["how"] == "fit":
            with within(**self.around):
                self.on(self.model.fit)
        else:
            with within(**{name: value for name, value in self.around.items() if name in LIMITS}):
                self.stream(self.model)
        return fitted(self.model)

    def stream(self, model: Any) -> Any:
        """Call partial_fit: for blocks once, and for the plain array as often as there are blocks."""
        if self.plain and self.case["kind"] == "generator":
            for part in pieces(self.rows, self.weight):
                rows, weight = part if isinstance(part, tuple) else (part, None)
                if len(rows):
                    model.partial_fit(rows, sample_weight=weight)
            return model
        return self.on(model.partial_fit)

    def arguments(self, kind: Kind) -> tuple[Any, ...]:
        return (self.given(kind).X,)

    def on(self, call: Callable[..., Any], kind: Kind | None = None) -> Any:
        """Call with the data of a kind, those of the fit unless given, and their weights."""
        kind = kind or self.kind
        weight = self.given(kind).weight
        return call(*self.arguments(kind), **({} if weight is None else {"sample_weight": weight}))

    rowwise = ("predict", "predict_proba", "score_samples", "impute")
    """Calls with rows alone."""

    def calls(self) -> dict[str, Callable[[], Any]]:
        """Return the calls after the fit, by name; those that change the model get a copy."""
        model, ask = self.model, self.asked_kind
        X = partial(self.arguments, ask)
        made: dict[str, Callable[[], Any]] = {
            **{name: lambda name=name: getattr(model, name)(*X()) for name in self.rowwise},
            **{
                name: lambda name=name: self.on(getattr(model, name), ask)
                for name in ("score", "bic", "aic", "icl")
            },
            "impute, drawn": lambda: model.impute(*X(), random_state=1),
            "sample": lambda: model.sample(6),
            "save": self.saved,
            "pickle": lambda: fitted(pickle.loads(pickle.dumps(model))),
            "clone": lambda: sorted(clone(model).get_params()),
            "fit_predict": lambda: self.on(self.again().fit_predict),
            "refit": lambda: fitted(
                self.on(deepcopy(model).set_params(warm_start=True, max_iter=3, method="em").fit)
            ),
            "partial_fit": lambda: fitted(self.stream(deepcopy(model))),
        }
        if self.case["estimator"] == "gaussian":
            made |= {
                "marginal": lambda: fitted(model.marginal([0])),
                "condition": lambda: fitted(model.condition([0], [3.0])),
                "full_covariances": model.full_covariances,
                "to_sklearn": lambda: difference(
                    model.to_sklearn().predict_proba(np.nan_to_num(self.rows)),
                    model.predict_proba(np.nan_to_num(self.rows)),
                    1e-9 if model.means_.dtype == np.float64 else 1e-4,
                ),
            }
        else:
            made["profile"] = lambda: list(model.profile_.values())
        if self.case["estimator"] == "family":
            made["family"] = lambda: model.family_.name
        if self.case.get("device") == DEVICE:  # draws are others, and tensors
            del made["sample"]
        if self.kind.once:  # there is nothing to fit twice
            for name in ("fit_predict", "refit"):
                del made[name]
        return made

    def again(self) -> Any:
        """Return an unfitted copy: a state of random numbers has moved on since the first fit."""
        given = parameters(self.case, self.rows, self.folder, plain=self.plain)
        return type(self.model)(**{name: value for name, value in given.items() if name not in AROUND})

    def saved(self) -> Any:
        path = self.folder / "saved.model"
        self.model.save(path)
        loaded = type(self.model).load(path)
        kept = {name: str(value) for name, value in loaded.get_params().items() if name in ("tol", "n_init")}
        return [fitted(loaded), kept]


class SelectTrial(Trial):
    """A choice among several mixtures."""

    def __init__(self, case: Case, folder: Path, *, plain: bool) -> None:
        self.case, self.folder, self.plain, self.model = case, folder, plain, None
        self.rows, self.weight, self.label = make_rows(case)
        folder.mkdir(exist_ok=True)
        self.kind = self.asked_kind = KINDS["array" if plain else case["kind"]]
        named = {"list": ["poisson", "gaussian"], "regression": "gaussian"}
        given = {name: case[name] for name in SELECT} | {"family": named.get(case["family"], case["family"])}
        given["method"] = OBJECTS.get(case["method"], case["method"])
        if case["family"] != "gaussian":
            del given["covariance_types"]
        self.around = {"memory_limit": given.pop("memory_limit")} if not plain else {}
        given.pop("memory_limit", None)
        if case["family"] == "regression":
            given["y"] = 0.3 * np.nan_to_num(self.rows[:, 0]) * self.label
            del given["missing"]
        if case["criterion"] == "callable":
            given["criterion"] = lambda mixture, *data: float(mixture.n_components)
        self.given_ = given

    def fit(self) -> Any:
        """Return the table and the best mixture."""
        with within(**self.around):
            found = self.on(partial(swiftem.select, **self.given_))
        rows = [
            {name: value for name, value in row._asdict().items() if name != "seconds"} for row in found.table
        ]
        return [rows, fitted(found.best)]

    def calls(self) -> dict[str, Callable[[], Any]]:
        return {}


class RegressionTrial(Trial):
    """A fit of responses."""

    def __init__(self, case: Case, folder: Path, *, plain: bool) -> None:
        super().__init__(case, folder, plain=plain)
        rng = np.random.default_rng([case["seed"], case["number"], 1])
        slope = np.array([0.1, 0.3, -0.2])[self.label]
        middle = slope * np.nan_to_num(self.rows[:, 0])
        self.y = (
            rng.poisson(np.exp(np.clip(middle, -3, 3))).astype(float)
            if case["family"] == "poisson"
            else np.rint(8 * (10 * middle + rng.normal(size=len(middle)))) / 8
        )
        if case["responses"] == "int":
            self.y = np.rint(self.y)
        if case["responses"] in ("array", "masked", "pandas") and case["holes"]:
            self.y[rng.random(len(self.y)) < 0.1] = np.nan
        if case["holes"] and case["number"] % 2:  # responses may be missing, regressors not
            self.rows = self.asked_kind.values(self.kind.values(np.nan_to_num(self.rows)))

    def arguments(self, kind: Kind) -> tuple[Any, ...]:
        return self.given(kind).X, self.y if self.plain else self.responses()

    def responses(self) -> Any:
        name, y = self.case["responses"], self.y
        if name in ("pandas", "polars", "tensor"):
            library = import_module("torch" if name == "tensor" else name)
        return {
            "array": lambda: y,
            "list": y.tolist,
            "float32": lambda: y.astype(np.float32),
            "int": lambda: y.astype(np.int64),
            "masked": lambda: np.ma.MaskedArray(np.nan_to_num(y), np.isnan(y)),
            "column": lambda: y[:, None],
            "pandas": lambda: library.Series(y, name="y"),
            "polars": lambda: library.Series("y", y),
            "tensor": lambda: library.tensor(y, requires_grad=True),
        }[name]()

    rowwise = ("predict_proba", "predict_class", "log_likelihoods", "impute")

    def calls(self) -> dict[str, Callable[[], Any]]:
        model, X = self.model, lambda: self.given(self.asked_kind).X
        made = super().calls() | {
            "sample": lambda: model.sample(X()),
            "predict": lambda: model.predict(X()),
            "predict_components": lambda: model.predict_components(X()),
        }
        made.pop("fit_predict", None)
        return made

    def stream(self, model: Any) -> Any:
        return self.on(model.partial_fit)


FITTED = (
    "weights_", "means_", "covariances_", "precisions_cholesky_", "params_", "coef_", "intercept_",
    "variances_", "lower_bound_", "log_likelihood_", "n_iter_", "converged_", "method_", "n_features_in_",
)  # fmt: skip


def fitted(model: Any) -> dict[str, Any]:
    """Return the fitted numbers of a model, and that they are sound."""
    made = {name: getattr(model, name) for name in FITTED if hasattr(model, name)}
    made["is sound"] = is_sound(model)
    return made


def is_sound(model: Any) -> bool:
    """Return whether weights sum to one, and the parameters are finite, but for variances of counts."""
    parts = [model.weights_, getattr(model, "means_", 0.0), getattr(model, "coef_", 0.0)]
    parts += [getattr(model, "covariances_", 0.0)]
    stack = [getattr(model, "params_", {})]
    while stack:
        for part in stack.pop().values():
            (stack if isinstance(part, dict) else parts).append(part)
    return all(np.isfinite(part).all() for part in parts) and abs(float(np.sum(model.weights_)) - 1.0) < 1e-5


def allowed_refusals(case: Case) -> tuple[str, ...]:
    """Return parts of the sentences that may refuse an input where the plain array is accepted."""
    sentences = [
        "init_params must give integer labels",  # of the rows of positive weight, if rows are stored
        "Sparse data was passed for X",
        "data can only be read in order",  # CSV, and methods that remember each row
        "for a Dask collection",
        "got a Dask collection",
    ]
    if case.get("device") == DEVICE:
        sentences += [
            "device must be 'cpu'",
            "device='cpu' if cells are missing",
            "got rows on another device",
        ]
    if case["estimator"] in ("regression", "select"):  # rows are in memory
        sentences += [
            "X must be an array, a data frame or a sparse matrix",
            "X must be an array or a data frame",
        ]
    if case.get("family") == "auto":  # the types of columns choose
        sentences += ["family='auto' must have a table in memory", "X must be a table in memory"]
    return tuple(sentences)


def findings(case: Case, folder: Path) -> list[str]:
    """Return what is wrong in a case: nothing where all results equal those of the plain array.

    Where other rows are drawn than from an array, the calls are compared with those of the same model for the
    plain array.
    """
    trial = {"regression": RegressionTrial, "select": SelectTrial}.get(case["estimator"], Trial)
    with redirect_stdout(StringIO()):
        plain, other = trial(case, folder / "plain", plain=True), trial(case, folder / "other", plain=False)
        wanted, got = attempt(plain.fit), attempt(other.fit)
        loose = not has_same_fit(case, other)
        found = compared("fit", wanted, got, case, other, loose)
        if found or wanted.value is None or got.value is None:
            return found
        if loose:
            plain.model = deepcopy(other.model)
            if plain.model is not None:  # a selection has several
                plain.model.set_params(**{name: "cpu" for name in ON if case.get(name)})
        plain_calls, other_calls = plain.calls(), other.calls()
        for name, call in other_calls.items():
            outcomes = attempt(plain_calls[name]), attempt(call)
            how = {"fit_predict": "fit", "refit": "fit", "partial_fit": "partial_fit"}.get(name)
            is_fit = how is not None and (loose or not has_same_fit(case | {"how": how}, other))
            found += compared(name, *outcomes, case, other, is_fit)
    return found


def has_same_fit(case: Case, trial: Trial) -> bool:
    """Return whether the fit must be that of an array.

    Stored rows, and all rows with a memory limit, are drawn and sampled block by block.
    """
    if case.get("device") == DEVICE:
        return False  # "auto" is em there, and races are decided by rounding
    in_blocks = trial.kind.stored or case.get("memory_limit") is not None
    if case["how"] == "partial_fit":  # a stream in float32 may take the fit of another sample of its rows
        is_single = trial.kind.precision > 1e-6
        return not is_single and (not trial.kind.stored or case["kind"] == "generator")
    is_stochastic = case["method"] not in ("auto", "em", "Squarem")
    if case["estimator"] == "select" and is_stochastic and trial.kind.precision > 1e-6:
        return False  # rounding may decide between a fresh start and a split
    return not in_blocks or (not is_stochastic and case["rows"] <= SAMPLE)


def compared(name: str, wanted: Outcome, got: Outcome, case: Case, trial: Trial, loose: bool) -> list[str]:
    """Return findings in the outcomes of one call of the plain and of the other fit."""
    for which, outcome in (("array", wanted), (case["kind"], got)):
        if outcome.finding:
            return [f"{name} of {which}: {outcome.finding}"]
    if got.refusal and not wanted.refusal:
        if any(part in got.refusal for part in allowed_refusals(case)):
            return []
        return [f"{name}: refused only for {case['kind']}, asked {case['asked']}: {got.refusal}"]
    if wanted.refusal:
        return [] if got.refusal else [f"{name}: refused only for the array: {wanted.refusal}"]
    if isinstance(got.value, dict) and not got.value.get("is sound", True):
        return [f"{name}: numbers that are not finite, or weights that do not sum to one"]
    if loose:
        return []
    precision = max(trial.kind.precision, trial.asked_kind.precision)
    if case["method"] not in ("auto", "em", "Squarem"):  # sums in another order, and thousands of steps since
        precision = max(precision, 1e-6)
    labels = ("labels",) if case["estimator"] == "regression" else ("predict", "fit_predict")
    compare = unequal_labels if name in labels else difference
    if precision > 1e-6 and name in ("predict_proba", "score_samples", "responsibilities"):
        precision *= 10  # float32 rounds log-odds of hundreds
    values = [without_passes(each.value) if precision > 1e-9 else each.value for each in (wanted, got)]
    what = compare(*values, precision)
    if name == "fit" and not what and wanted.warned != got.warned - {"DataConversionWarning"}:
        what = f"warns of {sorted(wanted.warned)} and {sorted(got.warned)}"
    return [f"{name}: {what}"] if what else []


def without_passes(value: Any) -> Any:
    """Return fitted numbers without those of passes: a gain close to ``tol`` may be below it in float32."""
    if isinstance(value, list):
        return [without_passes(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_passes(part)
        for name, part in value.items()
        if name not in ("n_iter_", "converged_", "passes", "converged")
    }


def described(case: Case) -> str:
    """Return what a case has besides the first value of each factor."""
    factors = FACTORS[case["estimator"]]
    usual = {name: values[0] for name, values in factors.items() if name != "family"} | {"asked": "same"}
    return ", ".join(f"{name}={value!r}" for name, value in case.items() if usual.get(name, "?") != value)
