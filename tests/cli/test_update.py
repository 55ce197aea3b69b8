"""``swiftem fit --update``: a saved model goes on with new files."""

import numpy as np
import pytest

from swiftem import GaussianMixture
from swiftem.cli.console import FAILED


@pytest.fixture
def files(tmp_path, clusters):
    """Two tables with the columns in another order than the model's, and one more."""
    found = []
    for number in range(2):
        rows = clusters[0][number::2] + 0.1 * number
        lines = ["width,name,height", *(f"{width},x,{height}" for height, width in rows.tolist())]
        found.append(tmp_path / f"new-{number}.csv")
        found[-1].write_text("\n".join(lines))
    return found


@pytest.fixture
def old(tmp_path, flowers, call):
    out = tmp_path / "old.model"
    call("fit", flowers, "-k", 3, "--columns", "height,width", "-o", out)
    return out


def expected(old, clusters):
    mixture = GaussianMixture.load(old)
    del mixture.feature_names_in_
    for number in range(2):
        mixture.partial_fit(clusters[0][number::2] + 0.1 * number)
    return mixture


def test_a_folder_of_new_files(old, files, clusters, tmp_path, call):
    folder = tmp_path / "folder"
    folder.mkdir()
    for file in files:
        file.rename(folder / file.name)
    stdout, stderr = call("fit", "--update", old, folder, "-o", tmp_path / "new.model")
    assert stderr == ""
    assert stdout.index("new-0.csv: 60 rows") < stdout.index("new-1.csv: 60 rows")
    np.testing.assert_array_equal(
        GaussianMixture.load(tmp_path / "new.model").means_, expected(old, clusters).means_
    )


def test_the_model_goes_on_with_new_files(old, files, clusters, tmp_path, call):
    before, out = old.read_bytes(), tmp_path / "new.model"
    stdout, stderr = call("fit", "--update", old, *files, "-o", out)
    assert stderr == ""
    assert old.read_bytes() == before
    loaded, wanted = GaussianMixture.load(out), expected(old, clusters)
    np.testing.assert_array_equal(loaded.means_, wanted.means_)
    np.testing.assert_array_equal(loaded.covariances_, wanted.covariances_)
    assert list(loaded.feature_names_in_) == ["height", "width"]
    for words in (f"{files[0]}: 60 rows, mean log-likelihood ", "Updated with 120 rows in ", f"Model: {out}"):
        assert words in stdout
    call("fit", "--update", out, files[0])  # a model that went on goes on, by itself
    assert GaussianMixture.load(out).n_iter_ == 3


def test_a_table_in_place_of_the_model(files, call):
    _, stderr = call("fit", "--update", files[0], files[1], code=FAILED)
    sentence = f"{files[0]} is a table, not a model: --update takes a model, written by swiftem fit.\n"
    assert stderr == sentence


@pytest.mark.parametrize("in_place", [True, False])
def test_a_failure_leaves_the_old_model(old, files, tmp_path, call, in_place):
    before, out = old.read_bytes(), tmp_path / "new.model"
    files[1].write_text("width,height\n1.0,2.0\n1.0,many\n")
    stdout, stderr = call("fit", "--update", old, *files, *(() if in_place else ("-o", out)), code=FAILED)
    assert f"{files[1]}" in stderr
    assert "Model:" not in stdout
    assert old.read_bytes() == before
    assert not out.exists()


@pytest.mark.parametrize(
    "option",
    [("-k", 3), ("--method", "em"), ("--seed", 1), ("--tol", 0.1), ("--resume",), ("--checkpoint", "here")],
)
def test_options_of_a_new_fit_are_refused(old, files, option, invoke):
    output = invoke("fit", "--update", old, files[0], *option, code=2)
    assert "the model of --update keeps the one that it was fitted with." in output
