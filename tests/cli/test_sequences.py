"""Hidden Markov models on the command line: steps of sequences that a column names."""

import numpy as np
import pandas as pd
import pytest

import swiftem


@pytest.fixture
def steps(tmp_path):
    """A table of 12 sequences of 50 steps, and its file."""
    params = {"means": [[0.0, 0.0], [3.0, -3.0]], "covariances": np.ones((2, 2))}
    model = swiftem.HiddenMarkovModel.from_parameters(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], params, random_state=0
    )
    X, states = model.sample(600)
    table = pd.DataFrame(X, columns=["a", "b"])
    table = table.assign(id=np.repeat([f"patient {i}" for i in range(12)], 50), kind=states)
    file = tmp_path / "steps.csv"
    table.to_csv(file, index=False)
    return table, file


@pytest.fixture
def model(steps, tmp_path, invoke):
    path = tmp_path / "steps.model"
    said = invoke("fit", steps[1], "--sequence", "id", "--components", 2, "--label", "kind", "--out", path)
    assert "600 rows of a, b; 2 components, diag covariance." in said
    assert "Hidden Markov model with 2 states, Gaussian with diag covariances" in said
    assert "to state 1" in said
    assert "Rows by component and kind" in said
    return path, swiftem.load(path)


def test_fit_is_the_estimator_s(steps, model):
    table, _ = steps
    own = swiftem.HiddenMarkovModel(2, random_state=0).fit(table[["a", "b", "id"]], sequence="id")
    np.testing.assert_allclose(model[1].transmat_, own.transmat_, rtol=1e-6)
    assert model[1].sequence_name_ == own.sequence_name_ == "id"


def test_predict_and_score(steps, model, call, tmp_path):
    table, file = steps
    path, fitted = model
    rows = table[["a", "b", "id"]]
    call("predict", path, file, "--proba", "--out", tmp_path / "states.csv")
    found = pd.read_csv(tmp_path / "states.csv")
    assert (found["label"] == fitted.predict(rows, sequence="id")).all()
    np.testing.assert_allclose(
        found["probability_1"], fitted.predict_proba(rows, sequence="id")[:, 1], atol=1e-9
    )
    np.testing.assert_allclose(found["log_likelihood"], fitted.score_samples(rows, sequence="id"), atol=1e-9)
    stdout, _ = call("score", path, file)
    said = dict(line.rsplit(maxsplit=1) for line in stdout.strip().splitlines())
    assert said["rows"] == "600"
    assert float(said["mean log-likelihood"]) == pytest.approx(fitted.score(rows, sequence="id"), abs=1e-5)
    assert float(said["BIC"]) == pytest.approx(fitted.bic(rows, sequence="id"), abs=0.01)


def test_files_in_parts_updates_and_gaps(steps, model, invoke, tmp_path):
    table, file = steps
    stored = tmp_path / "steps.parquet"
    table.drop(columns="kind").to_parquet(stored, row_group_size=170)
    out = tmp_path / "other.model"
    invoke("fit", stored, "--sequence", "id", "-k", 2, "--memory-limit", "500MB", "--out", out)
    np.testing.assert_allclose(swiftem.load(out).transmat_, model[1].transmat_, rtol=1e-6)
    assert "Updated with 600 rows" in invoke("fit", file, "--update", out)
    table.loc[::5, "a"] = np.nan
    table.to_csv(file, index=False)
    said = invoke(
        "fit", file, "--sequence", "id", "-k", 2, "--missing", "ignore", "--columns", "a,b", "--out", out
    )
    assert "Hidden Markov model" in said
    invoke("impute", out, file, "--out", tmp_path / "filled.csv")
    assert pd.read_csv(tmp_path / "filled.csv")["a"].notna().all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sequence", "kind"), "one after the other"),
        (("--sequence", "nobody"), "no column 'nobody'"),
        (("--sequence", "id", "--device", "cuda"), "device must be 'auto' or 'cpu'"),
        (("--sequence", "id", "--weights", "kind"), "weights must be left out with sequence"),
        (("--sequence", "id", "--missing", "skip"), "missing must be left out with sequence"),
        (("--sequence", "id", "--response", "a"), "response must be left out with sequence"),
    ],
)
def test_refusals(steps, invoke, options, words):
    assert words in invoke("fit", steps[1], "-k", 2, *options, code=2)
