"""``swiftem fit --family``, and what the other commands make of such a model."""

import numpy as np
import pytest

from swiftem import Mixture, select


@pytest.fixture
def visits(tmp_path):
    """Return a table of counts, of two kinds of customers."""
    rng = np.random.default_rng(0)
    rates = np.array([[1.0, 8.0, 3.0], [6.0, 1.0, 1.0]])
    counts = rng.poisson(rates[rng.choice(2, size=400)])
    path = tmp_path / "visits.csv"
    np.savetxt(path, counts, fmt="%d", delimiter=",", header="mon,tue,wed", comments="")
    return path


def labels_of(model, rows):
    """Return the labels of rows without names of columns."""
    del model.feature_names_in_
    return model.predict(rows)


def test_a_model_of_counts_through_all_commands(visits, tmp_path, invoke):
    out = tmp_path / "visits.model"
    output = invoke("fit", visits, "-k", 2, "--family", "poisson", "--out", out)
    assert "400 rows of mon, tue, wed; 2 components, family poisson." in output
    model = Mixture.load(out)
    counts = np.loadtxt(visits, delimiter=",", skiprows=1)
    assert np.array_equal(
        model.params_["rates"],
        Mixture(2, family="poisson", random_state=0).fit(counts).params_["rates"],
    )
    assert f"rate {model.params_['rates'][0, 0]:.4g}" in output
    output = invoke("info", out)
    assert "kind Mixture" in output
    assert "family poisson" in output
    invoke("predict", out, visits, "--out", tmp_path / "labels.csv")
    labels = np.loadtxt(tmp_path / "labels.csv", skiprows=1)
    assert np.array_equal(labels, labels_of(Mixture.load(out), counts))
    assert f"{model.bic(visits):.2f}" in invoke("score", out, visits)
    assert "Updated with 400 rows" in invoke("fit", "--update", out, visits)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--family", "poison"], "got 'poison': did you mean 'poisson'?"),
        (["--method", "spidr"], "got 'spidr': did you mean 'spider'?"),
        (["--family", "poisson", "--covariance-type", "diag"], "'--covariance-type': covariance_type must"),
        (["--family", "poison=mon"], "family must be 'bernoulli', '"),
        (["--family", "poisson="], "family must be of the form family=column,column;family=column"),
        (["--family", "poisson=mon;bernoulli=sun"], "--family': "),
        (["--family", "student-t(reg=1)"], "which are: covariance, degrees_of_freedom, floor; got 'reg'."),
    ],
)
def test_options_that_cannot_be(visits, tmp_path, invoke, options, sentence):
    assert sentence in invoke("fit", visits, "-k", 2, *options, "--out", tmp_path / "a.model", code=2)
    assert not (tmp_path / "a.model").exists()


def test_columns_of_several_kinds(visits, tmp_path, invoke):
    rng = np.random.default_rng(1)
    counts = np.loadtxt(visits, delimiter=",", skiprows=1)
    rows = np.column_stack([rng.normal(size=400), counts, counts[:, 0] > 3, rng.normal(counts[:, 0], 1.0)])
    path, out = tmp_path / "mixed.csv", tmp_path / "mixed.model"
    np.savetxt(path, rows, fmt="%.6g", delimiter=",", header="id,mon,tue,wed,yes,age", comments="")
    family = "poisson=tue,mon; bernoulli=yes;gaussian=age"
    output = invoke("fit", path, "-k", 2, "--family", family, "--out", out)
    assert "400 rows of" in output
    assert "poisson for tue, mon; bernoulli for yes; gaussian for age" in output
    model = Mixture.load(out)
    assert model.params_["poisson"]["rates"].shape == (2, 2)
    assert f"{model.params_['poisson']['rates'][0, 0]:.4g}" in output
    assert "family poisson + bernoulli + gaussian" in invoke("info", out)
    invoke("predict", out, path, "--out", tmp_path / "labels.csv")
    columns = ["id", "mon", "tue", "wed", "yes", "age"]
    used = rows[:, [columns.index(name) for name in model.feature_names_in_]]
    labels = np.loadtxt(tmp_path / "labels.csv", skiprows=1)
    assert np.mean(labels == labels_of(model, used)) > 0.99  # six digits are written
    assert "Updated with 400 rows" in invoke("fit", "--update", out, path)


def test_options_of_a_family(visits, tmp_path, invoke):
    out = tmp_path / "a.model"
    invoke("fit", visits, "-k", 2, "--family", "binomial(trials=60)", "--out", out)
    assert Mixture.load(out).family_.trials == 60
    given = "binomial(trials=(60, 70))=mon,tue;log-normal=wed"
    output = invoke("fit", visits, "-k", 2, "--family", given, "--out", out, code=1)
    assert "data must be positive amounts, got 0" in output
    given = "binomial(trials=(60, 70))=mon,tue;exponential=wed"
    invoke("fit", visits, "-k", 2, "--family", given, "--out", out)
    assert Mixture.load(out).family_.families[0].trials == (60, 70)
    output = invoke("fit", visits, "-k", 2, "--family", "binomial(tries=9)", "--out", out, code=2)
    assert "which are: trials; got 'tries'." in " ".join(output.replace("│", " ").split())


def test_auto(tmp_path, invoke):
    rng = np.random.default_rng(0)
    kind = rng.random(400) < 0.4
    columns = {
        "age": rng.normal(np.where(kind, 30, 60), 5.0),
        "visits": rng.poisson(np.where(kind, 2, 30)),
        "member": rng.random(400) < np.where(kind, 0.2, 0.8),
        "agrees": 1 + rng.binomial(4, np.where(kind, 0.3, 0.7)),
    }
    lines = [
        ",".join(columns),
        *(f"{a:.3f},{v},{m:d},{g}" for a, v, m, g in zip(*columns.values(), strict=True)),
    ]
    path, out = tmp_path / "a.csv", tmp_path / "a.model"
    path.write_text("\n".join(lines) + "\n")
    output = invoke("fit", path, "-k", 2, "--family", "auto", "--out", out)
    said = "gaussian for age; poisson for visits; bernoulli for member; categorical for agrees."
    assert said in output
    mixture = Mixture.load(out)
    assert mixture.family_.name == "gaussian + poisson + bernoulli + categorical"
    invoke("predict", out, path)
    assert "2 components" in invoke("select", path, "-k", "1:2", "--family", "auto")
    output = invoke("fit", path, "-k", 2, "--family", "auto", "--memory-limit", "500MB", "--out", out, code=2)
    assert "family must be given with --memory-limit, got 'auto'" in output


def test_auto_counts_the_codes_of_the_data(tmp_path, invoke):
    """Codes begin at one, and have a gap: BIC, imputed cells and selections are those of 0, 1, 2, 3."""
    rng = np.random.default_rng(0)
    kind = rng.random((400, 1)) < 0.4
    codes = np.array([1, 2, 3, 9])[rng.binomial(3, np.where(kind, 0.2, 0.8), (400, 3))]
    path, out = tmp_path / "a.csv", tmp_path / "a.model"
    np.savetxt(path, codes, fmt="%d", delimiter=",", header="p,q,r", comments="")
    output = invoke("fit", path, "-k", 2, "--family", "auto", "--out", out)
    mixture = Mixture.load(out)
    assert mixture.categories_ == dict.fromkeys("pqr", (1, 2, 3, 9))
    family = {"categorical": [0, 1, 2]}
    plain = Mixture(2, family=family, random_state=0).fit(np.searchsorted([1, 2, 3, 9], codes))
    assert f"BIC {plain.bic(np.searchsorted([1, 2, 3, 9], codes)):.2f}" in output.replace(",", "")
    output = invoke("select", path, "-k", "2", "--family", "auto")
    found = select(np.searchsorted([1, 2, 3, 9], codes), [2], family=family, random_state=0)
    assert f"{found.ranking[0].bic:.2f}" in output.replace(",", "")
    holes = tmp_path / "holes.csv"
    holes.write_text("p,q,r\n9,,9\n1,1,\n")
    output = invoke("impute", out, holes)
    assert output.split() == ["p,q,r", "9,9,9", "1,1,1"]
    holes.write_text("p,q,r\n9,4,9\n")
    output = invoke("predict", out, holes, code=1)
    assert "categories of the fit in column 1 (1, 2, 3, 9)" in " ".join(output.split())


@pytest.mark.parametrize("names", ["", "first,second,third"])
def test_columns_by_number_are_those_of_the_file(names, tmp_path, invoke):
    rng = np.random.default_rng(0)
    kind = rng.random(300) < 0.5
    X = np.column_stack([
        rng.normal(np.where(kind, -4.0, 4.0)), rng.poisson(np.where(kind, 2, 20)),
        rng.normal(np.where(kind, -4.0, 4.0)),
    ])  # fmt: skip
    path, out = tmp_path / ("a.csv" if names else "a.npy"), tmp_path / "a.model"
    if names:
        np.savetxt(path, X, delimiter=",", header=names, comments="", fmt="%.17g")
    else:
        np.save(path, X)
    invoke("fit", path, "-k", 2, "--family", "poisson=1;gaussian=2,0", "--out", out)
    mixture = Mixture.load(out)
    ours = Mixture(2, family={"poisson": [1], "gaussian": [2, 0]}, random_state=0).fit(X)
    assert np.sort(mixture.params_["poisson"]["rates"], axis=None) == pytest.approx(
        np.sort(ours.params_["poisson"]["rates"], axis=None), rel=0.01
    )
    invoke("predict", out, path, "--out", tmp_path / "labels.csv")
    labels = np.loadtxt(tmp_path / "labels.csv", skiprows=1).astype(bool)
    assert max(np.mean(labels == kind), np.mean(labels != kind)) > 0.99
    invoke("select", path, "-k", "2", "--family", "poisson=1;gaussian=0")
    invoke("fit", path, "-k", 2, "--columns", "2,1", "--family", "poisson=1;gaussian=2")
    output = invoke("fit", path, "-k", 2, "--columns", "2,1", "--family", "poisson=0;gaussian=2", code=2)
    assert "family must have columns of the data" in " ".join(output.replace("│", " ").split())
