"""--missing ignore: fits of tables with missing cells, and what models of such fits take."""

import numpy as np
import pytest

from swiftem import GaussianMixture, Mixture


@pytest.fixture
def gaps(tmp_path, clusters):
    """A CSV file of three columns with holes, and its rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([clusters[0], rng.poisson(20 + 5 * np.repeat([0, 1, 2], 40))])
    X[rng.random(X.shape) < 0.15] = np.nan
    lines = [",".join("" if value != value else f"{value!r}" for value in row) for row in X.tolist()]
    (tmp_path / "gaps.csv").write_text("\n".join(["height,width,visits", *lines]))
    return tmp_path / "gaps.csv", X


def test_fit_score_predict_and_update(gaps, tmp_path, call):
    file, X = gaps
    out = tmp_path / "a.model"
    stdout, stderr = call("fit", file, "-k", 3, "--missing", "ignore", "-o", out)
    assert stderr == ""
    assert "120 rows of height, width, visits; 3 components" in stdout
    expected = GaussianMixture(3, missing="ignore", random_state=0).fit(X)
    loaded = GaussianMixture.load(out)
    np.testing.assert_array_equal(loaded.means_, expected.means_)
    assert loaded.missing == "ignore"
    labels = call("predict", out, file)[0].split()[1:]
    np.testing.assert_array_equal(np.array(labels, dtype=int), expected.predict(X))
    assert f"{expected.score(X):.6f}" in call("score", out, file)[0]
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    assert f"rows                 {len(complete)}" in call("score", out, file, "--missing", "skip")[0]
    call("fit", file, "--update", out)


def test_families_by_value(gaps, tmp_path, call):
    file, X = gaps
    out = tmp_path / "a.model"
    stdout, _ = call("fit", file, "-k", 2, "--family", "auto", "--missing", "ignore", "-o", out)
    assert "gaussian for height, width; poisson for visits" in stdout
    scored = call("score", out, file)[0]
    assert f"rows                 {len(X)}" in scored
    assert Mixture.load(out).missing == "ignore"
    call("select", file, "-k", "1:3", "--missing", "ignore", "--family", "poisson=visits")


def test_a_model_without_the_option_takes_none(gaps, tmp_path, call):
    file, _ = gaps
    _, stderr = call("fit", file, "-k", 2, code=1)
    assert "got a missing value in column" in stderr
    out = tmp_path / "a.model"
    call("fit", file, "-k", 2, "--missing", "skip", "-o", out)
    call("predict", out, file, code=1)


def test_rows_that_are_read_as_needed(gaps, call):
    file, _ = gaps
    shown = [
        call("fit", file, "-k", 3, "--missing", "ignore", *more)[0]
        for more in ((), ("--memory-limit", "1GB"))
    ]
    means = [text.partition("Mean log-likelihood ")[2].partition(",")[0] for text in shown]
    assert means[0] == means[1] != ""
