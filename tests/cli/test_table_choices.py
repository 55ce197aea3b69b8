"""Options of all commands that read tables: --columns, --label, --missing, and one file for all numbers."""

import re

import numpy as np
import pytest

from swiftem import GaussianMixture


def pd_frame(X):
    return pytest.importorskip("pandas").DataFrame(X, columns=["height", "width"])


@pytest.fixture
def gaps(tmp_path, clusters):
    """A CSV file with the columns kind, id, height and width, ten heights missing; and the whole rows."""
    X = clusters[0]
    kinds = np.repeat(["daisy", "rose", "tulip"], 40)
    rows = [
        f"{kind},{number},{'' if number % 12 == 5 else height},{width}"
        for number, (kind, (height, width)) in enumerate(zip(kinds, X.tolist(), strict=True))
    ]
    (tmp_path / "gaps.csv").write_text("\n".join(["kind,id,height,width", *rows]))
    return tmp_path / "gaps.csv", np.arange(120)[np.arange(120) % 12 != 5]


def test_fit(gaps, clusters, tmp_path, call):
    file, kept = gaps
    options = [
        "-k",
        3,
        "--columns",
        "-id",
        "--label",
        "kind",
        "--missing",
        "skip",
        "-o",
        tmp_path / "a.model",
    ]
    stdout, stderr = call("fit", file, *options)
    assert stderr == f"Skipped 10 of 120 rows of {file}: missing values.\n"
    expected = GaussianMixture(3, random_state=0).fit(clusters[0][kept])
    loaded = GaussianMixture.load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.means_, expected.means_)
    assert list(loaded.feature_names_in_) == ["height", "width"]
    assert "110 rows of height, width; 3 components" in stdout
    after = stdout.partition("Rows by component and kind:")[2]
    assert ["component", "daisy", "rose", "tulip"] in [line.split() for line in after.splitlines()]
    counts = [list(map(int, line.split()[1:])) for line in after.splitlines() if re.match(r"\s*\d ", line)]
    groups = np.repeat([0, 1, 2], 40)[kept]
    labels = expected.predict(clusters[0][kept])
    assert counts == [[int(((labels == m) & (groups == g)).sum()) for g in range(3)] for m in range(3)]
    from sklearn.metrics import adjusted_rand_score

    assert f"Adjusted Rand index {adjusted_rand_score(groups, labels):.4f} (1: components" in after


def test_numbers_are_the_same_everywhere(gaps, tmp_path, call):
    file, _ = gaps
    out = tmp_path / "a.model"
    choice = ["--columns", "-id", "--missing", "skip"]
    shown = call("fit", file, "-k", 3, *choice, "--method", "sem-vr", "--max-iter", 7, "-o", out)[0]
    passes, mean, bic = re.search(
        r"after (\d+) passes .*\nMean log-likelihood (\S+), BIC (\S+)\.\n", shown
    ).groups()
    of_file = call("info", out)[0]
    assert re.search(r"^log-likelihood  (\S+), mean$", of_file, flags=re.M)[1] == mean
    assert re.search(r"^passes +(\d+)$", of_file, flags=re.M)[1] == passes
    scored = call("score", out, file, "--missing", "skip")[0]
    assert re.search(r"^mean log-likelihood +(\S+)$", scored, flags=re.M)[1] == mean
    assert re.search(r"^BIC +(\S+)$", scored, flags=re.M)[1] == bic


def test_predictions_have_the_numbers_of_rows(gaps, model, tmp_path, call):
    file, kept = gaps
    stdout, _ = call("predict", model[0], file, "--missing", "skip")
    lines = [line.split(",") for line in stdout.splitlines()]
    assert lines[0] == ["row", "label"]
    assert [int(row) for row, _ in lines[1:]] == kept.tolist()
    call("predict", model[0], file, code=1)


def test_without_out_nothing_is_written(flowers, tmp_path, call):
    before = set(tmp_path.iterdir())
    stdout, _ = call("fit", flowers, "-k", 2, "-c", "height,width")
    assert stdout.endswith("Model: not written, as --out names no file.\n")
    assert set(tmp_path.iterdir()) == before


def test_several_tables_are_skipped_and_labelled_as_one(gaps, clusters, tmp_path, call):
    file, _ = gaps
    head, *rows = file.read_text().splitlines()
    for number in range(2):
        (tmp_path / f"part-{number}.csv").write_text("\n".join([head, *rows[60 * number :][:60]]))
    options = ["-k", 3, "--columns", "-id", "-l", "kind", "--missing", "skip"]
    parts = call("fit", tmp_path / "part-0.csv", tmp_path / "part-1.csv", *options)[0]
    whole = call("fit", file, *options)[0]
    assert "part-0.csv and 1 more: 110 rows" in parts
    assert (
        parts.partition("component  ")[2].split(" in ")[0]
        == whole.partition("component  ")[2].split(" in ")[0]
    )
    (tmp_path / "part-1.csv").write_text("kind,id,height\nrose,1,2\n")
    _, stderr = call("fit", tmp_path / "part-0.csv", tmp_path / "part-1.csv", *options, code=1)
    assert f"{tmp_path / 'part-1.csv'} must have the columns of {tmp_path / 'part-0.csv'}" in stderr


def test_numbers_as_labels_in_npy(clusters, tmp_path, call):
    np.save(tmp_path / "a.npy", np.column_stack([clusters[0], np.repeat([10.0, 9.0, 2.5], 40)]))
    stdout, _ = call("fit", tmp_path / "a.npy", "-k", 2, "-l", 2)
    assert "Rows by component and column 2:" in stdout
    assert ["component", "2.5", "9", "10"] in [line.split() for line in stdout.splitlines()]


@pytest.mark.parametrize("command", ["fit", "score"])
def test_the_cross_table_sums_weights_and_knows_rows_without_a_label(
    command, clusters, model, tmp_path, call
):
    X, weight = clusters
    kinds = np.array(["rose", "tulip", "", "rose", "", "tulip", "tulip"])[np.arange(120) % 7]
    rows = [f"{kind},{h},{w},{of / 2}" for kind, (h, w), of in zip(kinds, X.tolist(), weight, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["kind,height,width,w", *rows]))
    given = ["fit", "-k", 3, "-o", tmp_path / "b.model"] if command == "fit" else ["score", model[0]]
    shown = call(*given, tmp_path / "a.csv", "-w", "w", "-l", "kind")[0]
    after = shown.partition("Weights of rows by component and kind:")[2]
    lines = [line.split() for line in after.splitlines()]
    assert ["component", "rose", "tulip", "(missing)"] in lines
    found = [[float(cell) for cell in line[1:]] for line in lines if line and line[0] in ("0", "1", "2")][:3]
    mixture = GaussianMixture.load(tmp_path / "b.model") if command == "fit" else model[1]
    of = mixture.predict(X if command == "score" else pd_frame(X))
    expected = [
        [weight[(of == m) & (kinds == kind)].sum() / 2 for kind in ("rose", "tulip", "")] for m in range(3)
    ]
    assert found == expected
    assert "Adjusted Rand" not in after


def test_rows_without_a_label_do_not_count_in_the_agreement(clusters, tmp_path, call):
    from sklearn.metrics import adjusted_rand_score

    X, _ = clusters
    kinds = np.array(["rose", "tulip", "daisy"])[np.repeat([0, 1, 2], 40)]
    kinds[::5] = ""
    rows = [f"{kind},{h},{w}" for kind, (h, w) in zip(kinds, X.tolist(), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["kind,height,width", *rows]))
    shown = call("fit", tmp_path / "a.csv", "-k", 2, "-l", "kind", "-o", tmp_path / "b.model")[0]
    of = GaussianMixture.load(tmp_path / "b.model").predict(pd_frame(X))
    agreement = adjusted_rand_score(kinds[kinds != ""], of[kinds != ""])
    assert agreement != pytest.approx(adjusted_rand_score(kinds, of), abs=1e-3)
    assert f"Adjusted Rand index {agreement:.4f} " in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--columns", "-hight"], "Invalid value for '--columns': "),
        (["--columns", "-height,-wdth"], "did you mean 'width'?"),
        (["--label", "knd"], "Invalid value for '--label': "),
        (["--label", "id", "--missing", "skip"], "must have at most 100 different values, got 110 in 'id'"),
        (["--label", "kind", "--memory-limit", "1GB"], "memory_limit must be left out with --label"),
        (
            ["--missing", "skip", "--memory-limit", "1GB"],
            "memory_limit must be left out with --missing",
        ),
        (["--label", "height", "--columns", "height"], "columns must not include the labels"),
    ],
)
def test_what_is_refused(options, words, gaps, invoke):
    assert words in invoke("fit", gaps[0], "-k", 2, *options, code=2)


def test_a_missing_value_names_the_option(gaps, call):
    _, stderr = call("fit", gaps[0], "-k", 2, code=1)
    assert "row 5 (from 0): fill in such rows, or skip them (" in stderr
    assert "--missing skip" in stderr


@pytest.mark.parametrize("option", ["--label", "--weights"])
def test_columns_of_the_model_are_data(option, flowers, model, invoke):
    output = invoke("score", model[0], flowers, option, "height", code=2)
    assert f"'{option}': {option[2:]} must be another column than those of the model, got 'height'." in output
