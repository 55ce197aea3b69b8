"""``swiftem fit``: the estimator's model, what is shown, what is refused, and Ctrl-C."""

import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from full_disk import full_disk
from terminals import screen_of

from swiftem import GaussianMixture


def test_the_model_is_the_estimator_s(flowers, clusters, tmp_path, call):
    out = tmp_path / "new" / "folder" / "flowers.model"
    stdout, stderr = call("fit", flowers, "--components", 3, "--columns", "height,width", "--out", out)
    assert stderr == ""
    loaded = GaussianMixture.load(out)
    expected = GaussianMixture(3, random_state=0).fit(clusters[0])
    np.testing.assert_array_equal(loaded.means_, expected.means_)
    np.testing.assert_array_equal(loaded.covariances_, expected.covariances_)
    assert list(loaded.feature_names_in_) == ["height", "width"]
    assert loaded.verbose == 0
    for words in (
        f"{flowers}: 120 rows of height, width; 3 components, full covariance.",
        f"Converged after {expected.n_iter_} passes of em in ",
        f"distance from a stationary point {expected.stationarity_:.1e}.",
        f"Mean log-likelihood {expected.score(clusters[0]):.6f}, BIC {expected.bic(clusters[0]):.2f}.",
        f"Model: {out}",
        repr(loaded.summary()),
    ):
        assert words in stdout


def test_what_is_left_out_is_noted(flowers, tmp_path, call):
    stdout, stderr = call("fit", flowers, "-k", 1, "--weights", "w", "-o", tmp_path / "a.model")
    assert stderr == f"Left out of {flowers}: kind (text).\n"
    assert "120 rows of height, width; 1 component, full covariance." in stdout


def test_not_converged(flowers, tmp_path, invoke):
    output = invoke("fit", flowers, "-k", 3, "--max-iter", 1, "-o", tmp_path / "a.model")
    assert "Not converged after 1 pass of em in" in output
    assert "raise --max-iter or --tol; distance" in output


@pytest.mark.parametrize("content", ["old", None])
def test_a_link_is_replaced_and_its_target_stays(content, flowers, tmp_path, call):
    """The target may belong to somebody else, and so may the permissions."""
    target = tmp_path / "elsewhere" / "target"
    target.parent.mkdir()
    if content is not None:
        target.write_text(content)
        target.chmod(0o666)
    plain = tmp_path / "plain"
    plain.touch()
    names = ["a.model", "predicted.csv", "imputed.csv"]
    model, predicted, imputed = links = [tmp_path / name for name in names]
    for link in links:
        link.symlink_to(target)
    call("fit", flowers, "-k", 2, "--columns", "-w", "-o", model)
    call("predict", model, flowers, "-o", predicted)
    call("impute", model, flowers, "-o", imputed)
    for link in links:
        assert not link.is_symlink()
        assert link.stat().st_mode & 0o777 == plain.stat().st_mode & 0o777
    assert GaussianMixture.load(model).n_components == 2
    assert (target.read_text() if target.exists() else None) == content
    assert os.listdir(target.parent) == ([] if content is None else ["target"])


def test_columns_with_commas_in_their_names(tmp_path, call):
    file = tmp_path / "a.csv"
    file.write_text('"x, in cm",y\n1,2\n2,3\n4,4\n')
    call("fit", file, "-k", 1, "--columns", 'y,"x, in cm"', "-o", tmp_path / "a.model")
    assert list(GaussianMixture.load(tmp_path / "a.model").feature_names_in_) == ["y", "x, in cm"]


class TestRefused:
    @pytest.fixture(autouse=True)
    def _nothing_is_computed(self, monkeypatch):
        monkeypatch.setattr(GaussianMixture, "fit", lambda *args, **kwargs: pytest.fail("fits"))

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["-k", 2, "--columns", "hight"], "did you mean 'height'?"),
            (["-k", 2, "--columns", ""], "Invalid value for '--columns': columns must name at least"),
            (["-k", 2, "--weights", "v"], "Invalid value for '--weights': "),
            (["-k", 2, "--weights", "w", "--columns", "w"], "columns must not include the weights, got 'w'."),
            (["-k", 121], "'--components': n_components must be at most the number of rows, but"),
            (["-k", 119, "--weights", "w"], "rows of positive weight."),
            (["-k", 2, "--component", 3], "--components"),
            ([], "'--components': n_components must be given for a new fit; swiftem select"),
            (["-k", 2, "--resume"], "'--resume': resume must have the folder of --checkpoint."),
        ],
    )  # fmt: skip
    def test_options(self, options, words, flowers, tmp_path, invoke):
        assert words in invoke("fit", flowers, *options, "--out", tmp_path / "a.model", code=2)
        assert not (tmp_path / "a.model").exists()

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("a,b\n1,2\n", "must have at least two rows, got 1 row."),
            ("a,w\n1,-2\n", "weights that are not negative, got -2 in row 0 (from 0)."),
        ],
    )
    def test_data(self, content, words, tmp_path, call):
        file = tmp_path / "a.csv"
        file.write_text(content)
        options = ["--weights", "w"] if "w" in content else []
        stdout, stderr = call("fit", file, "-k", 2, *options, "-o", tmp_path / "a.model", code=1)
        assert stdout == ""
        assert stderr.startswith(f"{file} must h")
        assert words in stderr
        assert stderr.count("\n") == 1

    def test_places_that_cannot_be_written(self, flowers, tmp_path, invoke):
        (tmp_path / "file").touch()
        for out, words in (
            (tmp_path, "is a folder: name a file."),
            (tmp_path / "file" / "a.model", "cannot be written"),
            (os.devnull, "is not an ordinary file: name another one."),
            (tmp_path / "a.csv", "has the ending of a table: use a.model, for example."),
            ("/proc/a.model", "cannot be written ("),
        ):
            output = invoke("fit", flowers, "-k", 2, "-o", out, code=2)
            assert "Invalid value for '--out'" in output
            assert words in output

    def test_the_table_is_not_overwritten(self, tmp_path, invoke):
        # The ending does not say that it is a table.
        (tmp_path / "table").write_text("a\n1\n2\n")
        output = invoke("fit", tmp_path / "table", "-k", 1, "-o", tmp_path / "table", code=2)
        assert "is also an input file: choose another --out." in output


def test_a_full_disk_is_one_sentence(flowers, tmp_path, call):
    call("fit", flowers, "-k", 2)  # what is compiled is written, too
    with full_disk():
        _, stderr = call("fit", flowers, "-k", 2, "-o", tmp_path / "a.model", code=1)
    assert f"{tmp_path / 'a.model'} cannot be written" in stderr
    assert "file too large" in stderr.splitlines()[-1].lower()


def test_too_little_memory_is_one_sentence(flowers, tmp_path, call, monkeypatch):
    def no_memory(*args, **kwargs):
        raise MemoryError("Unable to allocate 8 TiB")

    monkeypatch.setattr(GaussianMixture, "fit", no_memory)
    _, stderr = call("fit", flowers, "-k", 2, "-o", tmp_path / "a.model", code=1)
    assert "There is not enough memory (Unable to allocate 8 TiB).\n" in stderr


def test_warnings_are_passed_on_once(flowers, tmp_path, call, monkeypatch):
    def warn(self, *args, **kwargs):
        for _ in range(3):
            warnings.warn("2 of 3 components died.", UserWarning, stacklevel=1)
        return real(self, *args, **kwargs)

    real = GaussianMixture.fit
    monkeypatch.setattr(GaussianMixture, "fit", warn)
    _, stderr = call("fit", flowers, "-k", 2, "-o", tmp_path / "a.model")
    assert stderr.count("2 of 3 components died.") == 1


def test_equal_rows_are_noted(tmp_path, call):
    (tmp_path / "a.csv").write_text("a\n" + "1\n" * 5)
    _, stderr = call("fit", tmp_path / "a.csv", "-k", 2, "-o", tmp_path / "a.model")
    assert "fewer components, a larger reg_covar or a prior would prevent this" in stderr


@pytest.mark.slow
def test_a_terminal_without_the_letters(tmp_path):
    (tmp_path / "a.csv").write_text("höhe\n1\n2\n4\n", encoding="utf-8")
    arguments = ["fit", str(tmp_path / "a.csv"), "-k", "1", "-o", str(tmp_path / "a.model")]
    done = subprocess.run(
        [sys.executable, "-m", "swiftem", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert done.returncode == 0
    assert b"h\\xf6he" in done.stdout
    assert list(GaussianMixture.load(tmp_path / "a.model").feature_names_in_) == ["höhe"]


def test_progress_in_a_terminal(flowers, tmp_path):
    pytest.importorskip("pty", reason="terminals are POSIX")
    command = [sys.executable, "-m", "swiftem", "fit", flowers, "-k", "3", "-o", tmp_path / "a.model"]
    text, status = screen_of(command)
    assert status == 0
    assert "log-likelihood -" in text
    assert re.search(r"\d+ of 100", text)
    assert "Converged after" in text
    assert GaussianMixture.load(tmp_path / "a.model").verbose == 0
