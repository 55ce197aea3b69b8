"""``swiftem fit --checkpoint`` and ``--resume``."""

import numpy as np
import pytest

from swiftem import GaussianMixture
from swiftem.cli.console import FAILED
from swiftem.fit.driver import StartWatch


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "rows.npy"
    rng = np.random.default_rng(0)
    np.save(file, rng.normal(size=(3000, 2)) + 3 * rng.normal(size=(3, 2))[rng.integers(3, size=3000)])
    return file


def options(rows, folder, out, *more):
    return ("fit", rows, "-k", 3, "-o", out, "--tol", 1e-7, "--checkpoint", folder, *more)


def test_a_fit_that_died_goes_on(rows, tmp_path, call, monkeypatch):
    whole = GaussianMixture(3, tol=1e-7, random_state=0).fit(np.load(rows))
    folder, out = tmp_path / "kept", tmp_path / "a.model"

    def full(self, moment, theta):
        if moment.passes >= 2:
            raise OSError(28, "No space left on device")
        return False

    with monkeypatch.context() as patch:
        patch.setattr(StartWatch, "__call__", full)
        _, stderr = call(*options(rows, folder, out), code=FAILED)
    assert stderr.strip().endswith("No space left on device")
    assert not out.exists()
    _, stderr = call(*options(rows, folder, out), code=2)
    said = " ".join(stderr.replace("│", " ").split())
    assert "Invalid value for '--checkpoint': checkpoint=" in said
    assert "use resume=True to resume it (--resume on the command line)" in said
    stdout, stderr = call(*options(rows, folder, out, "--resume"))
    assert stderr == ""
    assert f"Converged after {whole.n_iter_} passes" in stdout
    loaded = GaussianMixture.load(out)
    np.testing.assert_array_equal(loaded.means_, whole.means_)


def test_what_is_refused(rows, tmp_path, call, invoke):
    folder, out = tmp_path / "kept", tmp_path / "a.model"
    output = invoke(*options(rows, folder, out, "--resume"), code=2)
    assert "'--resume': resume=True needs a checkpoint in" in output
    assert not folder.exists()
    assert not out.exists()
