"""``swiftem select``: the selection of the library, as a table and a model."""

import re
from dataclasses import replace

import numpy as np
import pytest

import swiftem
from swiftem import GaussianMixture

CHOICE = ["--columns", "height,width"]


def test_the_selection_is_the_library_s(flowers, clusters, tmp_path, call):
    out = tmp_path / "best.model"
    stdout, stderr = call("select", flowers, "-k", "1:5", *CHOICE, "-o", out, "-s", 3)
    assert stderr == ""
    expected = swiftem.select(clusters[0], range(1, 6), random_state=3)
    loaded = GaussianMixture.load(out)
    np.testing.assert_array_equal(loaded.means_, expected.best.means_)
    assert list(loaded.feature_names_in_) == ["height", "width"]
    for part in (f"{expected}\n", f"{loaded.summary()}\n", f"Model: {out}\n"):
        assert part in stdout


def test_numbers_are_those_of_score_and_info(flowers, tmp_path, call):
    out = tmp_path / "best.model"
    shown = call("select", flowers, "-k", "2,3", *CHOICE, "--covariance-type", "tied", "-o", out)[0]
    best = re.search(r"^tied +3 +(\S+) +\S+ +(\S+) +\d+ +(\d+)", shown, flags=re.M)
    scored = call("score", out, flowers)[0]
    mean = re.search(r"^mean log-likelihood +(\S+)$", scored, flags=re.M)[1]
    assert float(best[2]) == pytest.approx(float(mean), abs=1e-5)
    assert re.search(r"^BIC +(\S+)$", scored, flags=re.M)[1] == best[1]
    assert re.search(r"^passes +(\d+)$", call("info", out)[0], flags=re.M)[1] == best[3]


def test_nothing_is_written_unless_asked(flowers, tmp_path, call):
    before = set(tmp_path.iterdir())
    stdout, _ = call("select", flowers, "-k", 2, *CHOICE, "--criterion", "aic")
    assert "AIC is lowest for" in stdout
    assert "Model" not in stdout
    assert set(tmp_path.iterdir()) == before


def test_families(tmp_path, call, invoke):
    counts = np.random.default_rng(0).poisson(np.repeat([[3, 30], [20, 2]], 100, axis=0))
    np.savetxt(tmp_path / "a.csv", counts, delimiter=",", header="a,b", comments="")
    stdout, _ = call("select", tmp_path / "a.csv", "-k", "1:3", "--family", "poisson")
    assert "BIC is lowest for poisson mixtures, 2 components" in stdout
    output = invoke("select", tmp_path / "a.csv", "--family", "poisson", "--covariance-type", "full", code=2)
    assert "'--covariance-type': covariance_types must be left out" in output


def test_missing_cells(clusters, tmp_path, call):
    rows = clusters[0].copy()
    rows[::7, 0] = np.nan
    np.save(tmp_path / "a.npy", rows)
    for option, kept in (("ignore", rows), ("skip", rows[~np.isnan(rows[:, 0])])):
        call("select", tmp_path / "a.npy", "-k", "2,3", "--missing", option, "-o", tmp_path / "a.model")
        expected = swiftem.select(kept, [2, 3], missing="ignore", random_state=0)
        np.testing.assert_array_equal(GaussianMixture.load(tmp_path / "a.model").means_, expected.best.means_)


def test_ctrl_c_keeps_what_is_done(flowers, tmp_path, call, monkeypatch):
    real = swiftem.select
    monkeypatch.setattr(
        swiftem, "select", lambda *given, **options: replace(real(*given, **options), interrupted=True)
    )
    stdout, _ = call("select", flowers, "-k", "2:3", *CHOICE, "-o", tmp_path / "a.model", code=130)
    assert "Interrupted after 8 fits." in stdout
    assert (tmp_path / "a.model").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-k", "0:3"], "'--components': n_components must be a number, a range such as 1:20"),
        (["-k", "5:2"], "got '5:2'"),
        (["-k", "many"], "got 'many'"),
        (["-k", "1:200"], "n_components must be at most the number of rows, but"),
        (["--criterion", "bci"], "'--criterion': criterion must be 'bic', 'aic' or 'icl', got 'bci': did"),
        (["--covariance-type", "ful"], "got 'ful': did you mean 'full'?"),
        (["--columns", "-hight"], "did you mean 'height'?"),
    ],
)
def test_what_is_refused(options, words, flowers, invoke):
    assert words in invoke("select", flowers, *options, code=2)
