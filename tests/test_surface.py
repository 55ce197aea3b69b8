"""What a user sees of ``swiftem``: its names, its extras, and what it needs of scikit-learn."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import swiftem
from swiftem import models

ROOT = Path(__file__).parents[1]


def test_dir_has_what_is_public_and_nothing_else():
    assert sorted(name for name in dir(swiftem) if not name.startswith("__")) == sorted(
        name for name in swiftem.__all__ if name != "__version__"
    )
    for name in swiftem.__all__:
        assert getattr(swiftem, name) is not None


def test_dir_is_the_same_before_anything_was_used():
    code = "import swiftem; print(*(name for name in dir(swiftem) if name[0] != '_'))"
    fresh = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert fresh.split() == [name for name in dir(swiftem) if name[0] != "_"]


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="runs in the source tree")
def test_extras_install_what_is_used():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    source = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    for name in set(extras) - {"dev", "docs"}:
        for wanted in extras[name]:
            package = re.match(r"[\w-]+", wanted)[0]
            assert re.search(rf"^\s*(?:import|from) {package}\b", source, flags=re.M), f"{name}: {package}"


def test_fits_without_the_callbacks_of_scikit_learn():
    """They are not in versions before 1.9."""
    code = "import sklearn.callback; del sklearn.callback.with_callbacks; import swiftem; "
    code += "print(swiftem.GaussianMixture().fit([[0.0], [2.0]]).means_)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[[1.]]"


def test_nothing_private_of_scikit_learn_is_imported():
    private = re.compile(r"^\s*(?:from|import) sklearn\S*\._|^\s*from sklearn\S* import .*\b_\w+", re.M)
    for file in (Path(swiftem.__file__).parent).rglob("*.py"):
        assert not private.search(file.read_text()), file


COUNTS = sp.csr_array([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]])


def test_counts_of_plsa_and_of_its_model_are_the_same():
    model = models.PLSAModel.from_counts(2, COUNTS, alpha=0.3, beta=0.2)
    assert model == models.PLSAModel(2, alpha=0.3 / 20, beta=0.2 / 20)


def test_counts_follow_weights():
    weighted = models.PLSAModel.from_counts(2, swiftem.data.CountSource(COUNTS, np.full(4, 2.0)))
    assert weighted == models.PLSAModel.from_counts(2, 2 * COUNTS)
