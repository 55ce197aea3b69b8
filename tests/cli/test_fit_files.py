"""``swiftem fit`` on several files, folders, and with a limit to memory."""

import numpy as np
import pytest
from stored_sources import write

from swiftem import GaussianMixture

pytest.importorskip("pyarrow")
rng = np.random.default_rng(0)
ROWS = rng.normal(size=(900, 2)) + 6.0 * rng.integers(2, size=(900, 1))
WEIGHT = rng.integers(1, 3, size=900).astype(float)


@pytest.mark.parametrize("ending", ["npy", "parquet", "csv"])
def test_several_files_and_a_folder(ending, tmp_path, call):
    folder = tmp_path / "data"
    folder.mkdir()
    files = [write(folder, f"a.{ending}", ROWS[:300]), write(folder, f"b.{ending}", ROWS[300:])]
    expected = GaussianMixture(2, random_state=0).fit(ROWS)
    for given in (files, [folder]):
        stdout, stderr = call("fit", *given, "-k", 2, "-o", tmp_path / "a.model")
        assert stderr == ""
        assert "900 rows" in stdout
        loaded = GaussianMixture.load(tmp_path / "a.model")
        np.testing.assert_allclose(loaded.means_, expected.means_, rtol=1e-9)
        assert f"Mean log-likelihood {expected.score(ROWS):.6f}" in stdout
    names = list(getattr(loaded, "feature_names_in_", []))
    assert names == ([] if ending == "npy" else ["c0", "c1"])


@pytest.mark.parametrize("method", ["em", "sem", "iem", "sem-vr", "fiem"])
def test_a_limit(method, tmp_path, call):
    file = write(tmp_path, "rows.parquet", ROWS, WEIGHT)
    stdout, _ = call(
        "fit", file, "-k", 2, "-o", tmp_path / "a.model", "--method", method, "--weights", "w",
        "--memory-limit", "300MB",
    )  # fmt: skip
    loaded = GaussianMixture.load(tmp_path / "a.model")
    expected = GaussianMixture(2, random_state=0).fit(ROWS, sample_weight=WEIGHT)
    np.testing.assert_allclose(np.sort(loaded.means_, axis=0), np.sort(expected.means_, axis=0), atol=0.05)
    assert f"passes of {method}" in stdout


def test_what_is_refused(tmp_path, call):
    file, out = write(tmp_path, "rows.csv", ROWS), tmp_path / "a.model"
    other = write(tmp_path, "rows.npy", ROWS)
    fit = ("fit", file, "-k", 2, "-o", out)
    for arguments, code, words in (
        ((*fit, "--memory-limit", "much"), 2, "'--memory-limit': memory_limit must be a number of bytes"),
        ((*fit, "--memory-limit", "9MB"), 2, "memory_limit must be at least"),
        ((*fit, "--memory-limit", "1GB", "--method", "fiem"), 1, "use em, sem or sem-vr"),
        (("fit", file, other, "-k", 2, "-o", out), 1, "must have the format of"),
        (("fit", file, file, "-k", 2000, "-o", out), 2, "n_components must be at most the number of rows"),
    ):
        _, stderr = call(*arguments, code=code)
        assert words in " ".join(stderr.replace("│", " ").split())
    for option in (("--missing", "skip"), ("--label", "0"), ("--response", "0")):
        _, stderr = call(*fit, "--memory-limit", "1GB", *option, code=2)
        assert f"memory_limit must be left out with {option[0]}" in " ".join(stderr.replace("│", " ").split())
    assert not out.exists()
