"""Weights near the ends of what a number can be are refused by one sentence, wherever weights are read."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from mixture_data import KINDS, METHODS, blobs
from table_files import npy_file, parquet_file, sentence_of, write_file
from typer.testing import CliRunner

import swiftem
from swiftem import data, methods, models
from swiftem.cli.app import app

X, _ = blobs(60, 2, 2, seed=1)
COUNTS = sp.csr_array(np.random.default_rng(0).poisson(1.0, size=(60, 8)) + np.eye(60, 8))
MIXTURE = models.GaussianMixtureModel(2, covariance="full")
FITTED = swiftem.GaussianMixture(2, random_state=0).fit(X)
TOPICS = swiftem.PLSA(2, random_state=0, tol=0.1).fit(COUNTS)
EXTREME = {"huge": 1e308, "tiny": 1e-301, "subnormal": 5e-324}


def weights(value):
    return np.where(np.arange(60) == 7, value, 1.0)


def csv(folder, weight):
    lines = [f"{a},{b},{w!r}" for (a, b), w in zip(X.tolist(), weight.tolist(), strict=True)]
    return write_file(folder, "a,b,w\n" + "\n".join(lines) + "\n")


ARGUMENTS = {
    "run": lambda w: swiftem.run(MIXTURE, X, methods.EM(), n_iter=2, sample_weight=w),
    "run, topics": lambda w: swiftem.run(
        models.PLSAModel(2), COUNTS, methods.EM(), n_iter=2, sample_weight=w
    ),
    "objective": lambda w: swiftem.objective(MIXTURE, X, None, sample_weight=w),
    "fit": lambda w: swiftem.GaussianMixture(2).fit(X, sample_weight=w),
    "partial_fit": lambda w: swiftem.GaussianMixture(2).partial_fit(X, sample_weight=w),
    "score": lambda w: FITTED.score(X, sample_weight=w),
    "bic": lambda w: FITTED.bic(X, w),
    "aic": lambda w: FITTED.aic(X, w),
    "icl": lambda w: FITTED.icl(X, w),
    "select": lambda w: swiftem.select(X, 2, "full", sample_weight=w),
    "PLSA.fit": lambda w: swiftem.PLSA(2).fit(COUNTS, sample_weight=w),
    "PLSA.partial_fit": lambda w: swiftem.PLSA(2).partial_fit(COUNTS, sample_weight=w),
    "PLSA.score": lambda w: TOPICS.score(COUNTS, sample_weight=w),
    "rows": lambda w: data.ArraySource(X, sample_weight=w),
    "counts": lambda w: data.CountSource(COUNTS, sample_weight=w),
    "tokens": lambda w: data.TokenSource(np.arange(60), np.arange(60), sample_weight=w),
}


@pytest.mark.parametrize("value", EXTREME.values(), ids=EXTREME)
@pytest.mark.parametrize("ask", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments(ask, value):
    assert sentence_of(lambda: ask(weights(value))) == (
        f"sample_weight must be zero or from 1e-100 to 1e+100, got {value:g} at position 7: "
        "divide all weights by one number."
    )


@pytest.mark.parametrize("value", EXTREME.values(), ids=EXTREME)
def test_blocks(value):
    for ask in (
        lambda: swiftem.run(MIXTURE, lambda: [(X, weights(value))], methods.EM(), n_iter=1),
        lambda: swiftem.GaussianMixture(2).fit(lambda: [(X, weights(value))]),
        lambda: swiftem.GaussianMixture(2).partial_fit((part, weights(value)) for part in [X]),
    ):
        assert f"must be zero or from 1e-100 to 1e+100, got {value:g} at position 7" in sentence_of(ask)


FILES = {
    "npy": (lambda folder, weight: npy_file(folder, np.column_stack([X, weight])), 2, "row 7 (from 0)"),
    "csv": (csv, "w", "row 7 (from 0)"),
    "parquet": (
        lambda folder, weight: parquet_file(folder, {"a": X[:, 0], "b": X[:, 1], "w": weight}),
        "w",
        "row 7 (from 0)",
    ),
}


@pytest.mark.parametrize("value", EXTREME.values(), ids=EXTREME)
@pytest.mark.parametrize(("make", "column", "place"), FILES.values(), ids=FILES)
def test_columns_of_files(make, column, place, value, tmp_path):
    file = make(tmp_path, weights(value))
    expected = f"{file} must have weights that are zero or from 1e-100 to 1e+100, got {value:g} in {place}."
    assert sentence_of(lambda: data.open_source(file, weight=column)) == expected
    assert sentence_of(lambda: data.read_table(file, weights=column)) == expected


COMMANDS = {
    "fit": ["fit", "table.csv", "-k", "2", "-o", "new"],
    "fit from the file": ["fit", "table.csv", "-k", "2", "-o", "new", "--memory-limit", "500MB"],
    "update": ["fit", "table.csv", "--update", "model"],
    "score": ["score", "model", "table.csv"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_command_line(command, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "10000")
    monkeypatch.chdir(tmp_path)
    FITTED.save("model")
    csv(tmp_path, weights(1e308))
    result = CliRunner().invoke(app, [*command, "--weights", "w"])
    assert result.exit_code
    assert isinstance(result.exception, SystemExit)
    assert "weights that are zero or from 1e-100 to 1e+100, got 1e+308 in row 7 (from 0)." in result.output


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_what_is_allowed_gives_finite_models(method, kind):
    """Both ends at once: what counts is the one heavy half."""
    weight = np.where(np.arange(60) % 2, 1e100, 1e-100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mixture = swiftem.GaussianMixture(2, method=method, covariance_type=kind, max_iter=5, random_state=0)
        mixture.fit(X, sample_weight=weight)
    found = [mixture.score(X, sample_weight=weight), mixture.icl(X, weight), mixture.lower_bound_]
    assert np.isfinite(found).all()
    assert np.isfinite(mixture.covariances_).all()


@pytest.mark.parametrize("method", ["auto", "em", "sem", "sem-vr"])
def test_what_is_allowed_gives_finite_topics(method):
    weight = np.where(np.arange(60) % 2, 1e100, 1e-100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        topics = swiftem.PLSA(2, method=method, max_iter=5, random_state=0).fit(COUNTS, sample_weight=weight)
    assert np.isfinite([topics.log_likelihood_, topics.stationarity_]).all()
    np.testing.assert_allclose(topics.components_.sum(axis=1), 1.0)
    np.testing.assert_allclose(topics.doc_topic_.sum(axis=1), 1.0)
