"""``swiftem fit --response`` and what the other commands make of such a model."""

import numpy as np
import pytest
from regression_data import counts, lines

from swiftem import RegressionMixture


@pytest.fixture
def prices(tmp_path):
    """Return a table of sizes, ages, text and prices, and its numbers."""
    X, y, kind = lines(600)
    rows = np.column_stack([X, y]).round(6)
    file = tmp_path / "prices.csv"
    text = [
        f"{a!r},h{i},{c!r},{b!r},{k}"
        for i, ((a, b, c), k) in enumerate(zip(rows.tolist(), kind, strict=True))
    ]
    file.write_text("\n".join(["size,house,price,age,kind", *text]))
    return file, rows[:, :2], rows[:, 2]


@pytest.mark.parametrize("response", ["price", "2"])
def test_a_model_through_all_commands(prices, tmp_path, invoke, response):
    file, X, y = prices
    out = tmp_path / "a.model"
    output = invoke("fit", file, "-k", 2, "--response", response, "--label", "kind", "--tol", 1e-6, "-o", out)
    assert "600 rows of size, age; 2 components, regressions of price, family gaussian." in output
    assert "Rows by component and kind" in output
    model = RegressionMixture.load(out)
    assert model.response_name_ == "price"
    assert list(model.feature_names_in_) == ["size", "age"]
    expected = RegressionMixture(2, random_state=0, max_iter=100).fit(X, y)
    assert np.array_equal(model.coef_, expected.coef_)
    assert f"{model.coef_[0, 0]:.4g}" in output
    assert f"{expected.bic(X, y):.2f}" in output
    output = invoke("info", out)
    assert "kind RegressionMixture" in output
    assert "response price" in output
    assert f"{model.intercept_[1]:.4g}" in output
    assert f"{expected.icl(X, y):.2f}" in invoke("score", out, file)
    invoke("predict", out, file, "--proba", "-o", tmp_path / "labels.csv")
    found = np.loadtxt(tmp_path / "labels.csv", delimiter=",", skiprows=1)
    assert np.allclose(found[:, 0], expected.predict(X))
    assert np.array_equal(found[:, 1], expected.predict_class(X, y))
    assert np.allclose(found[:, 2], expected.log_likelihoods(X, y))
    assert np.allclose(found[:, 3:], expected.predict_proba(X, y))
    assert "Updated with 600 rows" in invoke("fit", "--update", out, file)
    assert RegressionMixture.load(out).response_name_ == "price"


def test_new_rows_without_a_response(prices, tmp_path, invoke):
    file, _, _ = prices
    out = tmp_path / "a.model"
    invoke("fit", file, "-k", 2, "--response", "price", "--columns", "-kind", "-o", out)
    (tmp_path / "new.csv").write_text("age,size\n1,2\n3,4\n")
    output = invoke("predict", out, tmp_path / "new.csv", "-o", tmp_path / "found.csv")
    assert "without their response: predictions alone" in output
    found = np.loadtxt(tmp_path / "found.csv", skiprows=1)
    model = RegressionMixture.load(out)
    del model.feature_names_in_
    assert np.allclose(found, model.predict([[2.0, 1.0], [4.0, 3.0]]))
    for command in (["score"], ["predict", "--proba"]):
        output = invoke(command[0], out, tmp_path / "new.csv", *command[1:], code=1)
        assert "column 'price' is missing" in output


def test_counts_by_name(tmp_path, invoke):
    x, y, _ = counts(800)
    file, out = tmp_path / "visits.csv", tmp_path / "a.model"
    np.savetxt(
        file, np.column_stack([x, y]), delimiter=",", header="age,visits", comments="", fmt=["%.6f", "%d"]
    )
    output = invoke("fit", file, "-k", 2, "--response", "visits", "--family", "poisson", "-o", out)
    assert "Converged after" in output
    assert RegressionMixture.load(out).family == "poisson"
    assert "update must have another model than" in invoke("fit", "--update", out, file, code=2)
    output = invoke("select", file, "-k", "1:3", "--response", "visits", "--family", "poisson", "-o", out)
    assert ", 2 components (" in output
    assert RegressionMixture.load(out).response_name_ == "visits"


def test_missing_responses(prices, tmp_path, invoke):
    file, X, y = prices
    lines_of = file.read_text().split("\n")
    for number in (5, 9):
        cells = lines_of[number].split(",")
        cells[2] = ""
        lines_of[number] = ",".join(cells)
    file.write_text("\n".join(lines_of))
    out = tmp_path / "a.model"
    options = ["-k", 2, "--response", "price", "--columns", "-kind", "-o", out]
    assert "got a missing value in column 'price', row 4" in invoke("fit", file, *options, code=1)
    invoke("fit", file, *options, "--missing", "ignore")
    gone = np.zeros(600, dtype=bool)
    gone[[4, 8]] = True
    expected = RegressionMixture(2, random_state=0).fit(X[~gone], y[~gone])
    assert np.array_equal(RegressionMixture.load(out).coef_, expected.coef_)
    assert "600 rows, 2 missing cells filled in" in invoke("impute", out, file, "-o", tmp_path / "filled.csv")
    rows = [line.split(",") for line in (tmp_path / "filled.csv").read_text().split("\n")]
    assert rows[0] == ["size", "house", "price", "age", "kind"]
    assert rows[5][1] == "h4"
    assert float(rows[5][2]) == pytest.approx(expected.predict(X[4:5])[0], rel=1e-9)
    assert float(rows[1][2]) == y[0]


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--response", "prize"], 2, "has no column 'prize': did you mean 'price'?"),
        (["--response", "house"], 1, "must have a number in every cell, got 'h0' in column 'house'"),
        (["--response", "price", "--weights", "price"], 2, "response must not be the column of the weights"),
        (["--response", "price", "--columns", "size,price"], 2, "columns must not include the response"),
        (
            ["--response", "price", "--family", "gamma"],
            2,
            "family must be 'gaussian' or 'poisson', got 'gamma'",
        ),
        (["--response", "price", "--covariance-type", "diag"], 2, "RegressionMixture has no such"),
        (["--response", "price", "--memory-limit", "1GB"], 2, "memory_limit must be left out"),
        (["--response", "price", "--family", "poisson"], 1, "y must be counts"),
        (
            ["--response", "kind", "--family", "poisson", "--method", "sem"],
            2,
            "'--method': method must be 'em' or 'auto' for family='poisson'",
        ),
        (["--response", "price", "--columns", "house"], 1, "got 'h0' in column 'house'"),
    ],
)
def test_what_cannot_be(prices, tmp_path, invoke, options, code, sentence):
    assert sentence in invoke("fit", prices[0], "-k", 2, *options, "-o", tmp_path / "a.model", code=code)
    assert not (tmp_path / "a.model").exists()


def test_arrays_have_no_names(prices, tmp_path, invoke):
    _, X, y = prices
    np.save(tmp_path / "a.npy", np.column_stack([X, y]))
    out = tmp_path / "a.model"
    output = invoke("fit", tmp_path / "a.npy", "-k", 2, "--response", 2, "-o", out)
    assert "regressions of the last column" in output
    expected = RegressionMixture(2, random_state=0).fit(X, y)
    assert f"{expected.bic(X, y):.2f}" in invoke("score", out, tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", X)
    invoke("predict", out, tmp_path / "b.npy")
    output = invoke("score", out, tmp_path / "b.npy", code=1)
    assert "must have as many numeric columns as the model, 3, got 2" in output
    output = invoke("fit", tmp_path / "a.npy", "-k", 2, "--response", 0, code=2)
    assert "response must be the last column of" in output
