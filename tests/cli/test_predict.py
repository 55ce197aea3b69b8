"""``swiftem predict``: the estimator's answers in every format, columns by name, and pipes."""

import os
import subprocess
import sys

import numpy as np
import pytest

from swiftem import GaussianMixture


def columns_of(text):
    header, *rows = text.splitlines()
    return header.split(","), np.array([[float(cell) for cell in row.split(",")] for row in rows])


@pytest.mark.parametrize("ending", [".csv", ".npy"])
@pytest.mark.parametrize(
    ("places", "options"),
    [([0, 2], ["-l", 1]), ([0, 2], ["-w", 1]), ([2, 0], ["-c", "2,0"]), ([0, 2], ["-c", "-1"])],
    ids=["label", "weights", "another order", "dropped"],
)
def test_columns_of_a_table_without_names_are_those_of_the_fit(
    places, options, ending, clusters, tmp_path, call
):
    """Of a table of another width, too, if it has as many numeric columns as the model."""
    X = np.column_stack([clusters[0][:, 0], np.arange(120) % 3, clusters[0][:, 1]])
    file, part, out = tmp_path / f"a{ending}", tmp_path / f"b{ending}", tmp_path / "a.model"
    for path, rows in ((file, X), (part, X[:, places])):
        if ending == ".npy":
            np.save(path, rows)
        else:
            np.savetxt(path, rows, delimiter=",")
    call("fit", file, "-k", 3, *options, "-o", out)
    expected = GaussianMixture.load(out).predict(X[:, places])
    for table in (file, part):
        stdout, _ = call("predict", out, table)
        np.testing.assert_array_equal(columns_of(stdout)[1][:, 0], expected)
    label = [] if "-c" in options else ["-l", 1]
    for command in (["score", out, file], ["score", out, file, *label], ["impute", out, file],
                    ["fit", file, "--update", out]):  # fmt: skip
        call(*command)
    np.savetxt(tmp_path / "c.csv", np.column_stack([X, X]), delimiter=",")
    call("predict", out, tmp_path / "c.csv", code=1)


def test_everything_to_standard_output(flowers, model, clusters, call):
    path, mixture = model
    stdout, _ = call("predict", path, flowers, "--proba")
    header, values = columns_of(stdout)
    assert header == ["label", "log_likelihood", "probability_0", "probability_1", "probability_2"]
    # To the last bit: numbers are written in full.
    np.testing.assert_array_equal(values[:, 1], mixture.score_samples(clusters[0]))
    np.testing.assert_array_equal(values[:, 2:], mixture.predict_proba(clusters[0]))


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".npy"])
def test_files(ending, flowers, model, clusters, tmp_path, call):
    if ending == ".parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from swiftem.data import read_table

    path, mixture = model
    out = tmp_path / "new" / f"out{ending}"
    stdout, stderr = call("predict", path, flowers, "--proba", "--out", out)
    assert stdout == ""
    counts = ", ".join(str(count) for count in np.bincount(mixture.predict(clusters[0])))
    assert stderr == f"{out}: 120 rows, by component {counts}.\n"
    table = read_table(out)
    X = clusters[0]
    expected = np.column_stack([mixture.predict(X), mixture.score_samples(X), mixture.predict_proba(X)])
    np.testing.assert_array_equal(table.values, expected)
    if ending != ".npy":
        assert table.names == ("label", "log_likelihood", "probability_0", "probability_1", "probability_2")
    assert list(out.parent.iterdir()) == [out]


def test_names_in_another_order(model, clusters, tmp_path, call):
    path, mixture = model
    X = clusters[0]
    file = tmp_path / "turned.csv"
    file.write_text("\n".join(["width,extra,height", *(f"{width},x,{height}" for height, width in X)]))
    stdout, stderr = call("predict", path, file)
    assert stderr == ""
    np.testing.assert_array_equal(columns_of(stdout)[1][:, 0], mixture.predict(X))


def test_names_that_are_digits_are_names(clusters, tmp_path, call):
    """A model's column 1 must not be found as a file's column number 1."""
    X = clusters[0]
    mixture = GaussianMixture(2, random_state=0).fit(X)
    mixture.feature_names_in_ = np.array(["1", "0"], dtype=object)
    mixture.save(tmp_path / "a.model")
    (tmp_path / "a.csv").write_text("kind,1,0\nred,20,3\n")
    stdout, _ = call("predict", tmp_path / "a.model", tmp_path / "a.csv")
    del mixture.feature_names_in_
    assert stdout == f"label\n{mixture.predict([[20.0, 3.0]])[0]}\n"
    (tmp_path / "a.csv").write_text("kind,1,b\nred,20,3\n")
    _, stderr = call("predict", tmp_path / "a.model", tmp_path / "a.csv", code=1)
    assert "column '0' is missing: it has kind, 1, b." in stderr


def test_a_missing_column_is_named(model, tmp_path, call):
    file = tmp_path / "a.csv"
    file.write_text("height,depth\n1,2\n")
    stdout, stderr = call("predict", model[0], file, code=1)
    assert stdout == ""
    assert stderr == (
        f"{file} must have the columns of the model, but column 'width' is missing: it has height, depth.\n"
    )
    file.write_text("a,b\n1,2\n")
    assert "but columns height, width are missing: it has a, b." in call("predict", model[0], file, code=1)[1]


def test_without_names_by_position(model, clusters, tmp_path, call):
    path, mixture = model
    X = clusters[0]
    np.save(tmp_path / "a.npy", X)
    stdout, stderr = call("predict", path, tmp_path / "a.npy")
    assert stderr == ""
    np.testing.assert_array_equal(columns_of(stdout)[1][:, 0], mixture.predict(X))
    np.savetxt(tmp_path / "a.csv", X, delimiter=",")
    stdout, stderr = call("predict", path, tmp_path / "a.csv")
    assert "read as a row" in stderr
    np.testing.assert_array_equal(columns_of(stdout)[1][:, 0], mixture.predict(X))
    np.save(tmp_path / "a.npy", np.column_stack([X, X]))
    _, stderr = call("predict", path, tmp_path / "a.npy", code=1)
    assert "must have as many numeric columns as the model, 2 (height, width), got 4." in stderr


def test_a_model_without_names_by_position(flowers, clusters, tmp_path, call):
    mixture = GaussianMixture(2, random_state=0).fit(clusters[0])
    mixture.save(tmp_path / "a.model")
    _, stderr = call("predict", tmp_path / "a.model", flowers, code=1)
    assert "as many numeric columns as the model, 2, got 3 (height, width, w)." in stderr


def test_nothing_that_is_read_is_overwritten(flowers, model, invoke):
    before = flowers.read_bytes()
    output = invoke("predict", model[0], flowers, "--out", flowers, code=2)
    assert "is also an input file: choose another --out." in output
    assert flowers.read_bytes() == before


def test_bad_data_and_models(flowers, model, tmp_path, call):
    path, _ = model
    (tmp_path / "a.csv").write_text("height,width\n1,2\n1,inf\n")
    damaged = tmp_path / "damaged.model"
    damaged.write_bytes(path.read_bytes()[:-100])
    other = tmp_path / "other.model"
    other.write_text("no model")
    for arguments, words in (
        ((path, tmp_path / "a.csv"), "got an infinity in column 'width', row 1"),
        ((path, tmp_path / "missing.csv"), "but does not exist."),
        ((tmp_path / "missing.model", flowers), "missing.model must be a model file, but does not exist."),
        ((tmp_path, flowers), "must be a model file, got a folder."),
        ((flowers, path), "is a table, not a model: the model comes first, then the table."),
        ((damaged, flowers), "damaged"),
        ((other, flowers), "is damaged, or not a model file of this version of swiftem"),
    ):
        stdout, stderr = call("predict", *arguments, code=1)
        assert stdout == ""
        assert words in stderr
        assert stderr.count("\n") == 1


def test_a_full_disk_is_one_sentence(flowers, model, tmp_path, call, monkeypatch):
    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("swiftem.cli.out_file.write_table", no_space)
    _, stderr = call("predict", model[0], flowers, "--out", tmp_path / "a.csv", code=1)
    assert stderr == f"{tmp_path / 'a.csv'} cannot be written (no space left on device).\n"


def test_ctrl_c_leaves_nothing(flowers, model, tmp_path, call, monkeypatch):
    def press(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("swiftem.cli.out_file.write_csv", press)
    _, stderr = call("predict", model[0], flowers, "--out", tmp_path / "out" / "a.csv", code=130)
    assert stderr == "Interrupted; nothing was written.\n"
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.skipif(os.name != "posix", reason="pipes end otherwise elsewhere")
@pytest.mark.parametrize("command", ["predict", pytest.param("info", marks=pytest.mark.slow)])
def test_a_closed_pipe_ends_quietly(command, flowers, model, tmp_path):
    rows = flowers.read_text().splitlines()
    long = tmp_path / "long.csv"  # more than a pipe holds
    long.write_text("\n".join(rows[:1] + rows[1:] * 300))
    arguments = [command, str(model[0])] + ([str(long), "--proba"] if command == "predict" else [])
    with subprocess.Popen(
        [sys.executable, "-m", "swiftem", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        if command == "predict":
            assert process.stdout.readline().startswith(b"label,")
        process.stdout.close()
        stderr = process.stderr.read()
        process.wait(timeout=120)
    assert stderr == b""
    assert process.returncode in (0, 1)
