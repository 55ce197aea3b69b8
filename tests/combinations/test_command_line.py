"""The command line in combinations: every two values of two options meet, with every kind of file.

A command is good if it gives the model of the Python estimator for the plain array, or refuses with one
sentence that names an option, and leaves nothing behind.
"""

import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from combinations.pairs import all_pairs
from typer.testing import CliRunner

from swiftem import GaussianMixture, Mixture, RegressionMixture, config_context, select
from swiftem.cli.app import app
from swiftem.data import open_source, read_table

NAMES = ("a", "b", "c", "w", "l", "y")
"""Columns: three of data, weights, labels, response."""
GAUSSIANS = ("full", "tied", "diag", "spherical")
RESPONSES = ("gaussian response", "poisson response")
NAMELESS = ("csv without names", "npy", "npy32")
TEXT = ("csv", "tsv", "semicolons", "txt", "two files", "csv without names")
AT_ONCE = ("auto", "categorical")
"""Families that look at all rows first."""

FIT: dict[str, list[Any]] = {
    "file": ["csv", "tsv", "semicolons", "txt", "parquet", "folder", "two files", *NAMELESS],
    "rows": [60, 260],
    "family": [
        *GAUSSIANS, *RESPONSES, "poisson", "student-t", "student-t(covariance='diag')", "bernoulli",
        "categorical", "gamma", "binomial(trials=9)", "auto", "blocks",
    ],
    "components": [1, 2, 3],
    "weights": [False, True],
    "label": [False, True],
    "missing": ["none", "skip", "ignore"],
    "columns": ["drop", "columns", "reversed", "numbers"],
    "method": ["auto", "em", "sem", "sem-vr", "iem", "fiem", "opt-fiem", "spider"],
    "end": [{}, {"max_iter": 3}, {"tol": 1e-6}, {"seed": 5}, {"reg_covar": 1e-3}],
    "limit": [{}, {"memory_limit": "200MB"}],
    "checkpoint": [None, "kept", "resumed"],
    "device": [{}, {"device": "cpu"}, {"device": "auto"}],
    "out": [".csv", ".tsv", ".parquet", ".npy", None],
    "more": [(), ("--proba",)],
    "then": ["score", "info", "impute", "update"],
}  # fmt: skip
"""Factors of ``fit``, and of what follows it: ``predict``, ``score``, ``impute``, ``info``, ``--update``."""
WRONG = FIT | {
    "missing": ["none", "skip", "ignore", "unsaid"],
    "checkpoint": [None, "kept", "nothing to resume", "no folder"],
}
"""With values that are always refused."""


class Data(NamedTuple):
    """What is in the files of a case, shapes (n, 3) and (n,)."""

    X: Any
    w: Any
    y: Any
    files: list[Path]


def make(case: dict[str, Any], folder: Path) -> Data:
    """Write the files of a case: rows of two groups in the range of the family."""
    rng, n = np.random.default_rng(case["rows"] + case["components"]), case["rows"]
    kind = case["family"].partition("(")[0]
    group = np.arange(n) % 2
    one = group[:, None]
    X = rng.normal(np.where(one, [4.0, -3.0, 0.0], [0.0, 1.0, 0.0]), 1.0, size=(n, 3)).round(3)
    if kind in ("auto", "blocks"):
        X[:, 2] = rng.poisson(np.where(group, 2.0, 30.0))
    elif kind in DRAWS:
        X = DRAWS[kind](rng, one, (n, 3)).astype(float)
    y = (2.0 * X[:, 0] - X[:, 1] + 9.0 * group + rng.normal(0, 0.3, n)).round(3)
    if kind == "poisson response":
        y = rng.poisson(np.exp(0.2 * X[:, 0] + 1.5 * group)).astype(float)
    table = np.column_stack([X, rng.integers(0, 4, n), np.arange(n) % 3, y])
    table = table.astype(np.float32) if case["file"] == "npy32" else table
    if case["missing"] != "none":
        is_response = kind in RESPONSES and case["missing"] == "ignore"
        table[rng.random(n) < 0.08, 5 if is_response else 1] = np.nan
    double = table.astype(float)
    return Data(table[:, :3], double[:, 3], double[:, 5], write(case["file"], table, folder))


DRAWS = {
    "poisson": lambda rng, one, size: rng.poisson(np.where(one, [2.0, 9.0, 5.0], [8.0, 3.0, 1.0]), size),
    "bernoulli": lambda rng, one, size: rng.random(size) < np.where(one, 0.8, 0.2),
    "categorical": lambda rng, one, size: rng.integers(0, 2, size) + one,
    "binomial": lambda rng, one, size: rng.binomial(9, np.where(one, 0.8, 0.2), size),
    "gamma": lambda rng, one, size: rng.gamma(np.where(one, 9.0, 2.0), size=size) + 0.01,
}
FORMS = {
    "csv": (".csv", ",", "."), "tsv": (".tsv", "\t", "."), "semicolons": (".csv", ";", ","),
    "txt": (".txt", " ", "."), "csv without names": (".csv", ",", "."), "two files": (".csv", ",", "."),
}  # fmt: skip
"""Ending, delimiter and decimal point of text."""


def write(kind: str, table: Any, folder: Path) -> list[Path]:
    """Write a table, with labels as text if there are names, and return the files."""
    import pyarrow as pa
    from pyarrow import parquet

    parts = np.array_split(table, 2) if kind in ("folder", "two files") else [table]
    if kind in ("npy", "npy32"):
        np.save(folder / "data.npy", table)
        return [folder / "data.npy"]
    found = []
    for number, rows in enumerate(parts):
        if kind in FORMS:
            ending, delimiter, decimal = FORMS[kind]
            cells = [["NA" if cell != cell else f"{cell!r}".replace(".", decimal) for cell in row]
                     for row in rows.tolist()]  # fmt: skip
            if kind not in NAMELESS:
                cells = [[*row[:4], f"kind{row[4][0]}", row[5]] for row in cells]
                cells.insert(0, list(NAMES))
            found.append(folder / f"{number}{ending}")
            found[-1].write_text("\n".join(delimiter.join(row) for row in cells))
        else:
            columns = {
                name: pa.array(part, from_pandas=True) for name, part in zip(NAMES, rows.T, strict=True)
            }
            columns["l"] = pa.array([f"kind{cell:.0f}" for cell in rows[:, 4]])
            (folder / "parts").mkdir(exist_ok=True)
            found.append(folder / "parts" / f"{number}.parquet")
            parquet.write_table(pa.table(columns), found[-1], row_group_size=len(rows) // 2)
    return [folder / "parts"] if kind == "folder" else found


def name_of(case: dict[str, Any], column: str) -> str:
    """Return a column as an option names it."""
    return str(NAMES.index(column)) if case["file"] in NAMELESS else column


def table_options(case: dict[str, Any]) -> list[str]:
    """Return the options that choose columns and rows."""
    data = ["c", "b", "a"] if case["columns"] == "reversed" else ["a", "b", "c"]
    given = ["y"] * is_regression(case) + ["w"] * case["weights"] + ["l"] * case["label"]
    if case["columns"] == "drop":
        rest = [name_of(case, name) for name in ("w", "l", "y") if name not in given]
        options = ["--columns", ",".join(f"-{name}" for name in rest)] if rest else []
    elif case["columns"] == "numbers":
        options = ["--columns", "0,1,2"]
    else:
        options = ["--columns", ",".join(name_of(case, name) for name in data)]
    for name, option in (("y", "--response"), ("w", "--weights"), ("l", "--label")):
        options += [option, name_of(case, name)] if name in given else []
    return options + ([] if case["missing"] in ("none", "unsaid") else ["--missing", case["missing"]])


def is_regression(case: dict[str, Any]) -> bool:
    return case["family"] in RESPONSES


def family_options(case: dict[str, Any]) -> list[str]:
    if case["family"] in GAUSSIANS:
        return ["--covariance-type", case["family"]]
    family = case["family"].replace(" response", "")
    if family == "blocks":
        a, b, c = (name_of(case, name) for name in "abc")
        family = f"gaussian={a},{b};poisson={c}"
    return ["--family", family]


def fit_options(case: dict[str, Any], folder: Path) -> list[str]:
    """Return the other options of a fit."""
    given = {"method": case["method"]} | case["end"] | case["limit"] | case["device"]
    options = [str(word) for name, value in given.items() if value is not None
               for word in (f"--{name.replace('_', '-')}", value)]  # fmt: skip
    kept = ["--checkpoint", str(folder / "kept")]
    return options + {
        None: [], "kept": kept, "resumed": kept,
        "nothing to resume": [*kept, "--resume"], "no folder": ["--resume"],
    }[case["checkpoint"]]  # fmt: skip


def estimator(case: dict[str, Any]) -> Any:
    """Return the estimator of a case."""
    given = {"random_state" if name == "seed" else name: value for name, value in case["end"].items()}
    given = {"random_state": 0, "method": case["method"]} | given
    family = case["family"].replace(" response", "")
    if is_regression(case):
        return RegressionMixture(case["components"], family=family, **given)
    given |= {"missing": "ignore"} if case["missing"] == "ignore" else {}
    if family in GAUSSIANS:
        return GaussianMixture(case["components"], covariance_type=family, **given)
    if family in ("blocks", "auto"):
        a, b, c = (2, 1, 0) if case["columns"] == "reversed" else (0, 1, 2)
        family = {"gaussian": sorted([a, b]) if family == "auto" else [a, b], "poisson": [c]}
    return Mixture(case["components"], family=family, **given)


def refused(case: dict[str, Any]) -> bool:
    """Return whether a case has options that do not go together."""
    is_gaussian = case["family"] in GAUSSIANS
    takes_missing = is_gaussian or is_regression(case) or case["family"] != "student-t"
    method = case["method"]
    return bool(
        case["missing"] == "unsaid"
        or (case["missing"] == "ignore" and not takes_missing)
        or (case["limit"] and (case["missing"] == "skip" or case["label"] or is_regression(case)))
        or (case["limit"] and case["family"] == "auto")
        or (case["family"] == "poisson response" and method not in ("auto", "em"))
        or ("reg_covar" in case["end"] and not is_gaussian)
        or (is_regression(case) and case["device"])
        or (is_stored(case) and case["file"] in TEXT and method in ("iem", "fiem", "opt-fiem"))
        or case["checkpoint"] in ("nothing to resume", "no folder")
    )


def run(*arguments: Any) -> tuple[int, str, str]:
    """Run a command; an error other than an exit fails the test."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def sentence_of(stderr: str) -> str:
    """Return an error on one line, without the frame around it."""
    return re.sub(r"[\s│╭╮╰╯─]+", " ", re.sub(r"\x1b\[[0-9;]*m", "", stderr)).strip()


def numbers_of(model: Any) -> dict[str, Any]:
    """Return the parameters of a fitted model."""
    names = ("weights_", "means_", "covariances_", "coef_", "intercept_", "variances_")
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    if getattr(model, "family", "") == "poisson":
        found.pop("variances_", None)  # there are none
    for name, value in getattr(model, "params_", {}).items():
        found |= (
            {f"{name} {part}": numbers for part, numbers in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
    return found


def check(case: dict[str, Any], folder: Path) -> None:
    """Fit, compare with Python, and use the model."""
    data = make(case, folder)
    out = folder / "out" / "a.model"
    line = ["fit", *data.files, "-k", case["components"], "-o", out, *family_options(case),
            *table_options(case), *fit_options(case, folder)]  # fmt: skip
    code, _, stderr = run(*line)
    if refused(case):
        assert code in (1, 2), (line, stderr)
        said = sentence_of(stderr)
        assert "--" in said or "data can only be read in order" in said, said
        assert "Traceback" not in said
        assert not out.parent.exists()
        assert not list(folder.rglob("state-*"))
        return
    assert code == 0, (line, stderr)
    _, given, weight, order = arrays_of(case, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of convergence, and of components that are lost
        expected = fitted(case, data, order, given, weight)
    model = type(expected).load(out)
    compare(model, expected)
    if case["checkpoint"] == "resumed":
        code, _, stderr = run(*line, "--resume")
        assert code == 0, stderr
        compare(type(expected).load(out), expected)
    use(case, folder, data, out, expected, given, weight)


def arrays_of(case: dict[str, Any], data: Data) -> tuple[Any, Any, Any, list[int]]:
    """Return X, what is fitted, weights, and the order of the columns."""
    order = [2, 1, 0] if case["columns"] == "reversed" else [0, 1, 2]
    rows = np.ones(len(data.X), dtype=bool)
    if case["missing"] == "skip":
        rows = ~np.isnan(data.X).any(axis=1)
    X = np.ascontiguousarray(data.X[rows][:, order])
    given = (X, data.y[rows]) if is_regression(case) else (X,)
    return X, given, data.w[rows] if case["weights"] else None, order


def is_stored(case: dict[str, Any]) -> bool:
    """Return whether rows stay in files: with a limit, or in several files unless all are needed."""
    at_once = case["label"] or case["missing"] == "skip" or is_regression(case) or case["family"] in AT_ONCE
    return bool(case["limit"]) or (case["file"] in ("folder", "two files") and not at_once)


def fitted(case: dict[str, Any], data: Data, order: list[int], given: Any, weight: Any) -> Any:
    """Return the estimator, fitted to the array; to the files if these are drawn in blocks."""
    made = estimator(case)
    if is_stored(case) and case["method"] not in ("auto", "em"):
        columns = [name_of(case, NAMES[place]) for place in order]
        weights = name_of(case, "w") if case["weights"] else None
        missing = case["missing"] == "ignore"
        source = open_source(data.files, columns, weights, allow_missing=missing)
        with config_context(memory_limit=case["limit"].get("memory_limit")):
            made.fit(source)
        made.__dict__.pop("feature_names_in_", None)
        return made
    return made.fit(*given, sample_weight=weight)


def compare(model: Any, expected: Any) -> None:
    found, wanted = numbers_of(model), numbers_of(expected)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert np.isfinite(value).all(), name
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


def skipped(case: dict[str, Any]) -> list[str]:
    return ["--missing", "skip"] if case["missing"] == "skip" else []


def whole_file(case: dict[str, Any], data: Data, folder: Path) -> Path:
    """Return one file with all rows: a model is applied to one."""
    if case["file"] == "folder":
        from pyarrow import parquet

        parquet.write_table(parquet.read_table(data.files[0]), folder / "whole.parquet")
        return folder / "whole.parquet"
    if case["file"] == "two files":
        first, second = (part.read_text().splitlines() for part in data.files)
        (folder / "whole.csv").write_text("\n".join([*first, *second[1:]]))
        return folder / "whole.csv"
    return data.files[0]


def use(case: Any, folder: Path, data: Data, out: Path, expected: Any, given: Any, weight: Any) -> None:
    """Use the model: predict, score, info, impute, update."""
    file, rows = whole_file(case, data, folder), skipped(case)
    result = folder / f"result{case['out']}"
    options = ["--out", result] if case["out"] else []
    code, stdout, stderr = run("predict", out, file, *rows, *case["more"], *options)
    assert code == 0, stderr
    if not case["out"]:
        result = folder / "result.csv"
        result.write_text(stdout)
    labels = expected.predict_class(*given) if is_regression(case) else expected.predict(*given)
    table = read_table(result, allow_missing=True)
    place = bool(rows) + is_regression(case)
    np.testing.assert_array_equal(table.values[:, place], labels)
    if "--proba" in case["more"]:
        shares = expected.predict_proba(*given)
        np.testing.assert_allclose(table.values[:, -expected.n_components :], shares, atol=1e-9)
    assert np.isfinite(table.values).all()
    weights = ["--weights", name_of(case, "w")] if case["weights"] else []
    if case["then"] == "score":
        code, stdout, stderr = run("score", out, file, *rows, *weights)
        assert code == 0, stderr
        score = float(re.search(r"mean log-likelihood\s+(\S+)", stdout)[1])
        assert score == pytest.approx(expected.score(*given, sample_weight=weight), rel=1e-5, abs=1e-5)
    elif case["then"] == "info":
        code, stdout, stderr = run("info", out)
        assert code == 0, stderr
        assert "nan" not in stdout
    elif case["then"] == "impute":
        code, stdout, stderr = run("impute", out, file, "-o", folder / "imputed.npy")
        if case["missing"] == "skip" and (case["family"] == "student-t" or is_regression(case)):
            assert code == 1, stderr  # they have no distribution of missing cells
        else:
            assert code == 0, stderr
            assert np.isfinite(np.load(folder / "imputed.npy")).all()
    else:
        updated = type(expected).load(out)
        updated.__dict__.pop("feature_names_in_", None)
        code, stdout, stderr = run("fit", file, "--update", out, *rows, *weights)
        if case["family"] == "poisson response":
            assert (code, "--update" in stderr) == (2, True), stderr
            return
        assert code == 0, stderr
        compare(type(expected).load(out), updated.partial_fit(*given, sample_weight=weight))


SELECT: dict[str, list[Any]] = {
    "file": FIT["file"],
    "rows": [60, 150],
    "family": [*GAUSSIANS, "all four", *RESPONSES, "poisson", "student-t", "categorical", "auto", "blocks"],
    "components": ["1:2", "2", "3,1"],
    "criterion": [None, "bic", "aic", "icl"],
    "weights": [False, True],
    "missing": ["none", "skip", "ignore"],
    "columns": ["drop", "columns", "reversed", "numbers"],
    "end": [{}, {"seed": 5}],
}
"""Factors of ``select``."""


def check_select(case: dict[str, Any], folder: Path) -> None:
    """Select, and compare with Python."""
    counts = {"1:2": [1, 2], "2": [2], "3,1": [1, 3]}[case["components"]]
    fit = case | {"components": 2, "method": "auto", "limit": {}, "checkpoint": None, "device": {}}
    fit |= {"label": False, "family": case["family"].replace("all four", "full")}
    data, out = make(fit, folder), folder / "a.model"
    line = ["select", *data.files, "-k", case["components"], "-o", out, *table_options(fit)]
    line += [] if case["family"] == "all four" else family_options(fit)
    for name, value in (case["end"] | {"criterion": case["criterion"]}).items():
        line += [f"--{name}", value] if value is not None else []
    code, stdout, stderr = run(*line)
    if case["missing"] == "ignore" and case["family"] == "student-t":
        assert (code, out.exists()) == (1, False), stderr
        return
    assert code == 0, (line, stderr)
    X, given, weight, _ = arrays_of(fit, data)
    made = estimator(fit).get_params()
    options = {"random_state": made["random_state"], "criterion": case["criterion"] or "bic"}
    if is_regression(fit):
        options["y"] = given[1]
    else:
        options["missing"] = made["missing"]
    if case["family"] in GAUSSIANS:
        options["covariance_types"] = [case["family"]]
    elif case["family"] != "all four":
        options["family"] = made["family"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = select(X, counts, sample_weight=weight, **options)
    compare(type(expected.best).load(out), expected.best)
    assert f"{expected.criterion} is lowest for " in stdout
    code, _, stderr = run("predict", out, whole_file(fit, data, folder), *skipped(fit))
    assert code == 0, stderr


@cache
def cases(kind: str, seed: int, most: int) -> list[Any]:
    """Return cases of a kind, from several seeds if one has too few."""
    factors, allowed = {
        "fit": (FIT, is_settled), "refused": (WRONG, refused), "select": (SELECT, None),
        "larger": (FIT | {"rows": [260, 1200]}, is_settled),
    }[kind]  # fmt: skip
    found: list[Any] = []
    while len(found) < most:
        found += all_pairs(factors, np.random.default_rng(seed + len(found)), allowed=allowed)
    return found[:most]


def is_settled(case: dict[str, Any]) -> bool:
    """Return whether a case must work."""
    is_numbered = case["family"] == "blocks" and case["file"] in NAMELESS and case["columns"] == "reversed"
    return not refused(case) and not is_numbered


CHECKS = {"fit": check, "larger": check, "refused": check, "select": check_select}


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, k) for kind, most in (("fit", 20), ("refused", 20), ("select", 4)) for k in range(most)],
)
def test_some_commands(kind, number, tmp_path):
    CHECKS[kind](cases(kind, 0, 4 if kind == "select" else 20)[number], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, k) for kind, most in (("larger", 400), ("refused", 400), ("select", 100)) for k in range(most)],
)
def test_many_commands(kind, number, tmp_path):
    CHECKS[kind](cases(kind, 1, 100 if kind == "select" else 400)[number], tmp_path)
