"""``swiftem select``: the selection of the library, as a table with bars, a picture and a model."""

import re
from dataclasses import replace

import numpy as np
import pytest

import swiftem
from swiftem import GaussianMixture
from swiftem.cli.fit_commands import read_counts

CHOICE = ["--columns", "height,width"]


def test_the_selection_is_the_library_s(flowers, clusters, tmp_path, call):
    pytest.importorskip("matplotlib")
    picture, out = tmp_path / "bic.png", tmp_path / "best.model"
    code, stdout, stderr = call(
        "select", flowers, "-m", "1:5", *CHOICE, "--picture", picture, "-o", out, "-s", 3, "-l", "kind"
    )
    assert (code, stderr) == (0, "")
    expected = swiftem.select(clusters[0], range(1, 6), random_state=3)
    best = expected.ranking[0]
    loaded = GaussianMixture.load(out)
    np.testing.assert_array_equal(loaded.means_, expected.best.means_)
    assert list(loaded.feature_names_in_) == ["height", "width"]
    lines = [line.split() for line in stdout.splitlines()]
    assert ["components", "full", "tied", "diag", "spherical"] in lines
    for count in range(1, 6):
        values = [f"{row.value:.2f}" for row in expected.table if row.n_components == count]
        assert next(line for line in lines if line[:1] == [str(count)])[: len(values) + 1][1:] == values
    assert re.search(rf"^ +{best.n_components} .* best *$", stdout, flags=re.M)
    assert f"BIC is lowest for 3 components, {best.covariance_type} covariances: {best.value:.2f}." in stdout
    assert "Rows by component and kind:" in stdout
    assert stdout.endswith(f"Model: {out}\nPicture: {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_numbers_are_those_of_score_and_info(flowers, tmp_path, call):
    out = tmp_path / "best.model"
    shown = call("select", flowers, "-m", "2,3", *CHOICE, "--covariance", "tied", "-o", out)[1]
    bic, mean, passes = re.search(
        r"covariances: (\S+)\. Mean log-likelihood (\S+), (\d+) passes\.", shown
    ).groups()
    scored = call("score", out, flowers)[1]
    assert f"mean log-likelihood  {mean}\n" in scored
    assert re.search(r"^BIC +(\S+)$", scored, flags=re.M)[1] == bic
    of_file = call("info", out)[1]
    assert f"log-likelihood  {mean}, mean\n" in of_file
    assert re.search(r"^passes +(\d+)$", of_file, flags=re.M)[1] == passes


def test_nothing_is_written_unless_asked(flowers, tmp_path, call):
    before = set(tmp_path.iterdir())
    code, stdout, _ = call("select", flowers, "-m", 2, *CHOICE, "--criterion", "aic")
    assert code == 0
    assert "AIC is lowest for 2 components" in stdout
    assert "Model" not in stdout
    assert set(tmp_path.iterdir()) == before


def test_the_most_components_are_the_best(flowers, call):
    stdout = call("select", flowers, "-m", "1,2", *CHOICE)[1]
    assert "That is the most components that were tried: more may be better (--components).\n" in stdout


def test_families(tmp_path, call, invoke):
    counts = np.random.default_rng(0).poisson(np.repeat([[3, 30], [20, 2]], 100, axis=0))
    np.savetxt(tmp_path / "a.csv", counts, delimiter=",", header="a,b", comments="")
    code, stdout, _ = call("select", tmp_path / "a.csv", "-m", "1:3", "--family", "poisson")
    assert code == 0
    assert "BIC is lowest for 2 components, poisson: " in stdout
    code, output = invoke("select", tmp_path / "a.csv", "--family", "poisson", "--covariance", "full")
    assert code == 2
    assert "it is for --family gaussian, got poisson: leave it out." in output


def test_a_fit_that_fails_is_named(tmp_path, call):
    np.save(tmp_path / "a.npy", np.repeat([[0.0, 1.0], [5.0, 2.0]], 20, axis=0))
    code, stdout, _ = call("select", tmp_path / "a.npy", "-m", "1:3")
    assert code == 0
    assert "2 components" in stdout


def test_ctrl_c_keeps_what_is_done(flowers, call, monkeypatch):
    real = swiftem.select

    def interrupted(*args, **options):
        return replace(real(*args, **options), interrupted=True)

    monkeypatch.setattr(swiftem, "select", interrupted)
    code, stdout, _ = call("select", flowers, "-m", "2:3", *CHOICE)
    assert code == 130
    assert "Interrupted after 8 fits: this is what was complete." in stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-m", "0:3"], "'--components': '0:3' is not a number of components, a range such as 1:20"),
        (["-m", "5:2"], "'5:2' is not a number of components"),
        (["-m", "many"], "'many' is not a number of components"),
        (["-m", "1:200"], "200 components need as many rows, but"),
        (["--criterion", "bci"], "Invalid value for '--criterion'"),
        (["--picture", "a.gif"], "a.gif must end in .png, .svg or .pdf, got .gif."),
        (["--covariance", "ful"], "Invalid value for '--covariance'"),
        (["--drop", "hight"], "did you mean 'height'?"),
    ],
)
def test_what_is_refused(options, words, flowers, invoke):
    code, output = invoke("select", flowers, *options)
    assert code == 2
    assert words in output


def test_the_table_is_not_overwritten(flowers, tmp_path, invoke):
    file = tmp_path / "table.png"
    file.write_bytes(flowers.read_bytes())
    code, output = invoke("select", file, "--picture", file)
    assert code == 2
    assert "'--picture': " in output


@pytest.mark.parametrize(
    ("text", "counts"), [("3", [3]), ("1:3", [1, 2, 3]), (" 4 , 2:3", [2, 3, 4]), ("2:2", [2])]
)
def test_counts(text, counts):
    assert read_counts(text) == counts
