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
from swiftem import methods, models

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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_counts_of_plsa_and_of_its_model_are_the_same():
    model = models.PLSAModel.from_counts(2, COUNTS, alpha=0.3, beta=0.2)
    assert model == models.PLSAModel(2, alpha=0.3 / 20, beta=0.2 / 20)
    topics = swiftem.PLSA(2, alpha=0.3, beta=0.2, method="em", tol=0.0, max_iter=50, random_state=0).fit(
        COUNTS
    )
    theta = model.theta(doc_topic=topics.doc_topic_, topic_word=topics.components_)
    result = swiftem.run(model, COUNTS, swiftem.methods.EM(), n_iter=50, theta0=theta, seed=0)
    np.testing.assert_allclose(result.theta.topic_word, topics.components_, atol=1e-6)


def test_counts_follow_weights():
    weighted = models.PLSAModel.from_counts(2, swiftem.data.CountSource(COUNTS, np.full(4, 2.0)))
    assert weighted == models.PLSAModel.from_counts(2, 2 * COUNTS)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "spidr"}, "method must be 'auto', 'em'"),
        (
            {"method": methods.Accelerated(methods.EM(), "squarem")},
            "method must not be accelerated for PLSA, got Accelerated(",
        ),
    ],
)
def test_plsa_takes_only_what_works(parameters, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        swiftem.PLSA(2, **parameters).fit(COUNTS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_steps_that_plsa_takes():
    for step in (0.5, swiftem.schedules.power(1.0, 0.7), swiftem.schedules.sample_size(), lambda k: 1.0 / k):
        model = swiftem.PLSA(2, method=methods.OnlineEM(step_size=step), max_iter=3, random_state=0).fit(
            COUNTS
        )
        assert np.isfinite(model.components_).all()
