"""Columns of text: ``--family auto`` and ``categorical``, and what models of them take."""

import numpy as np
import pandas as pd
import pytest

from swiftem import Mixture

JOBS = np.array(["clerk", "baker", "nurse"], dtype=object)


@pytest.fixture
def people():
    """Return columns of a table: an id, an age, a job, a count and whether members."""
    rng = np.random.default_rng(0)
    kind = rng.random(300) < 0.4
    chances = np.where(kind[:, None], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8])
    jobs = JOBS[[rng.choice(3, p=row) for row in chances]]
    return {
        "name": np.array([f"p{i}" for i in range(300)], dtype=object),
        "age": rng.normal(np.where(kind, 30, 60), 4.0).round(2),
        "job": jobs,
        "visits": rng.poisson(np.where(kind, 2, 30)),
        "member": kind,
    }


@pytest.fixture(params=["csv", "parquet", "dictionary"])
def table(request, tmp_path, people):
    """Return the file."""
    if request.param == "csv":
        file = tmp_path / "people.csv"
        lines = [",".join(str(value) for value in row) for row in zip(*people.values(), strict=True)]
        file.write_text("\n".join([",".join(people), *lines]))
        return file
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    made = pa.table(people)
    if request.param == "dictionary":
        made = made.set_column(2, "job", made.column("job").dictionary_encode())
    parquet.write_table(made, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_auto_takes_text_and_leaves_out_ids(table, people, tmp_path, invoke):
    out = tmp_path / "a.model"
    output = invoke("fit", table, "-k", 2, "--family", "auto", "-o", out)
    assert "gaussian for age" in output
    assert "categorical for job" in output
    assert "poisson for visits" in output
    assert "bernoulli for member" in output
    assert "name (300 different texts in 300 rows); use --columns to include them." in output
    model = Mixture.load(out)
    assert list(model.feature_names_in_) == ["age", "job", "visits", "member"]
    assert model.profile_["job"].keys() == {"baker", "clerk", "nurse"}
    assert "nurse: " in output
    assert "nurse: " in invoke("info", out)
    invoke("predict", out, table, "-o", tmp_path / "labels.csv")
    labels = np.loadtxt(tmp_path / "labels.csv", skiprows=1)
    agree = np.mean(labels == people["member"])
    assert max(agree, 1 - agree) > 0.95
    assert f"{model.log_likelihood_:.6f}" in invoke("score", out, table)
    invoke("fit", "--update", out, table)
    assert Mixture.load(out).profile_["job"].keys() == {"baker", "clerk", "nurse"}


def test_categories_that_the_model_does_not_know(table, tmp_path, invoke):
    out = tmp_path / "a.model"
    family = "categorical=job;gaussian=age"
    invoke("fit", table, "-k", 2, "--family", family, "-o", out)
    (tmp_path / "new.csv").write_text("job,age\nnurse,60\npilot,40\nking,50\n")
    for command in ("predict", "score"):
        output = invoke(command, out, tmp_path / "new.csv", code=1)
        assert (
            "must have the categories of the model in column 'job' (baker, clerk, nurse), got pilot, king"
            in output
        )
    (tmp_path / "new.csv").write_text("job,age\nnurse,60\n")
    invoke("predict", out, tmp_path / "new.csv")
    np.save(tmp_path / "new.npy", np.zeros((3, 2)))
    output = invoke("predict", out, tmp_path / "new.npy", code=1)
    assert "must have columns of text, got an array of numbers" in output


def test_text_by_name(table, tmp_path, invoke):
    output = invoke("fit", table, "-k", 2, "--family", "auto", "--columns", "name,age")
    assert "categorical for name" in output
    invoke("fit", table, "-k", 2, "--family", "categorical", "--columns", "job")
    output = invoke("fit", table, "-k", 2, "--family", "categorical=job;poisson=name", code=2)
    assert "family must be categorical for column 'name', which has text" in output
    invoke("fit", table, "-k", 2, "--family", "auto", "--columns", "job,age", "--memory-limit", "1GB", code=1)
    invoke("select", table, "-k", "1:2", "--family", "auto", "--columns", "-name")


def test_only_ids(tmp_path, invoke):
    (tmp_path / "a.csv").write_text("\n".join(["name", *(f"p{i}" for i in range(50))]))
    output = invoke("fit", tmp_path / "a.csv", "-k", 2, "--family", "auto", code=1)
    assert "must have a column that is not an ID, got name (50 different texts in 50 rows)" in output


def test_missing_text_and_impute(table, people, tmp_path, invoke):
    out = tmp_path / "a.model"
    invoke("fit", table, "-k", 2, "--family", "auto", "-o", out)
    lines = [",".join(str(value) for value in row) for row in zip(*people.values(), strict=True)]
    name, _, job, visits, _ = lines[7].split(",")
    if table.suffix == ".parquet":
        people = people | {"member": people["member"].astype(int)}
        lines = [",".join(str(value) for value in row) for row in zip(*people.values(), strict=True)]
    lines[7] = f"{name},NA,{job},{visits},{people['member'][7]}"
    lines[9] = f"p9,{people['age'][9]},,{people['visits'][9]},{people['member'][9]}"
    holes = tmp_path / "holes.csv"
    holes.write_text("\n".join([",".join(people), *lines]))
    output = invoke("fit", holes, "-k", 2, "--family", "auto", "--columns", "job,visits", code=1)
    assert "must have a value in every cell, got a missing value in column 'job', row 9" in output
    assert "Skipped 2 of 300 rows" in invoke("fit", holes, "-k", 2, "--family", "auto", "--missing", "skip")
    invoke("fit", holes, "-k", 2, "--family", "auto", "--missing", "ignore")
    filled = tmp_path / "filled.csv"
    assert "300 rows, 2 missing cells filled in." in invoke("impute", out, holes, "--out", filled)
    rows = [line.split(",") for line in filled.read_text().split("\n")]
    assert rows[0] == list(people)
    assert rows[8][0] == "p7"
    assert rows[8][3] == visits
    assert float(rows[8][1]) == pytest.approx(30 if people["member"][7] else 60, abs=3)
    assert rows[10][2] in JOBS
    assert [row[2] for row in rows[1:8]] == people["job"][:7].tolist()
    texts = []
    for seed in (1, 1, 2):
        invoke("impute", out, holes, "--seed", seed, "--out", filled)
        texts.append(filled.read_text())
    assert texts[0] == texts[1] != texts[2]
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    invoke("impute", out, holes, "--out", tmp_path / "filled.parquet")
    assert parquet.read_table(tmp_path / "filled.parquet").column("job").null_count == 0


def test_impute_of_numbers(tmp_path, clusters, model, call):
    file, mixture = model
    X = clusters[0].copy()
    X[3, 0] = X[5, 1] = np.nan
    np.save(tmp_path / "holes.npy", X)
    _, stderr = call("impute", file, tmp_path / "holes.npy", "--out", tmp_path / "filled.npy")
    assert stderr == f"{tmp_path / 'filled.npy'}: 120 rows, 2 missing cells filled in.\n"
    np.testing.assert_array_equal(
        np.load(tmp_path / "filled.npy"), mixture.set_params(missing="ignore").impute(X)
    )
    stdout, _ = call("impute", file, tmp_path / "holes.npy")
    assert stdout.startswith("height,width\n")


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["holes.csv"], 2, "Missing argument 'TABLE'"),
        (["flowers.model", "holes.csv", "--out", "holes.csv"], 2, "is also an input file"),
        (["flowers.model", "holes.csv", "--out", "a.txt"], 2, "must end in .csv"),
        (["flowers.model", "other.csv"], 1, "columns height, width are missing"),
    ],
)
def test_impute_that_cannot_be(tmp_path, model, invoke, monkeypatch, options, code, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "holes.csv").write_text("height,width\n1,\n2,3\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert sentence in invoke("impute", *options, code=code)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_dates_are_left_out_unless_they_are_named(ending, tmp_path, invoke):
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + np.arange(300) % 84
    frame = pd.DataFrame({
        "x": rng.normal(size=300), "when": days, "took": pd.to_timedelta(np.arange(300), "D"),
        "tags": [[1, 2]] * 300, "region": ["north", "south", "west"] * 100, "yes": rng.random(300) < 0.5,
    })  # fmt: skip
    path = tmp_path / f"a{ending}"
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path, index=False)
    said = "when (dates), took (durations), tags (lists)"
    output = invoke("fit", path, "-k", 1, "--family", "auto", "-o", tmp_path / "a.model")
    assert f"{said}." in output
    assert "gaussian for x; categorical for region; bernoulli for yes" in output
    for options in ((), ("--memory-limit", "500MB")):
        assert f"{said}, region (text)." in invoke("fit", path, "-k", 1, *options)
    for options in ((), ("--memory-limit", "500MB"), ("--family", "auto")):
        output = invoke("fit", path, "-k", 1, "--columns", "x,when", *options, code=1)
        assert "'when'" in output
        assert "number" in output
