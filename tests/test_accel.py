"""``swiftem.accel``: unchanged scripts run with swiftem's mixture."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn.mixture
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import swiftem
from swiftem.accel import accelerated, load_ipython_extension, main, unload_ipython_extension

ORIGINAL = sklearn.mixture.GaussianMixture
FIT = swiftem.GaussianMixture.fit
ROWS = np.random.default_rng(0).normal(size=(300, 2)) + 8 * (np.arange(300) % 3)[:, None]


@pytest.fixture
def report():
    with accelerated() as report:
        yield report
    assert sklearn.mixture.GaussianMixture is ORIGINAL
    assert swiftem.GaussianMixture.fit is FIT


def test_an_estimator_is_swiftems_and_is_counted(report):
    mixture = sklearn.mixture.GaussianMixture(3, random_state=0).fit(ROWS)
    assert type(mixture) is swiftem.GaussianMixture
    assert sorted(mixture.means_.round()[:, 0]) == [0, 8, 16]
    assert (report.made, report.fits) == (1, 1)
    assert report.seconds > 0
    mixture.fit_predict(ROWS)
    assert report.fits == 2, "fit within fit_predict is the same fit"
    assert str(report).startswith("swiftem.accel: GaussianMixture was replaced: 2 fits in ")


def test_types_clones_pickles_pipelines_and_joblib(report):
    mixture = sklearn.mixture.GaussianMixture(3, random_state=0)
    assert isinstance(mixture, sklearn.mixture.GaussianMixture)
    assert isinstance(ORIGINAL(), sklearn.mixture.GaussianMixture)
    assert not isinstance(StandardScaler(), sklearn.mixture.GaussianMixture)
    assert issubclass(swiftem.GaussianMixture, sklearn.mixture.GaussianMixture)
    assert type(clone(mixture)) is swiftem.GaussianMixture
    fitted = pickle.loads(pickle.dumps(mixture.fit(ROWS)))
    np.testing.assert_array_equal(fitted.predict(ROWS), mixture.predict(ROWS))
    assert make_pipeline(StandardScaler(), mixture).fit(ROWS).predict(ROWS).shape == (300,)
    search = GridSearchCV(mixture, {"n_components": [2, 3], "init_params": ["kmeans"]}, cv=2).fit(ROWS)
    assert search.best_params_["n_components"] == 3
    fits = joblib.Parallel(2, backend="threading")(joblib.delayed(clone(mixture).fit)(ROWS) for _ in range(2))
    np.testing.assert_array_equal(fits[0].means_, fits[1].means_)


def test_what_is_not_replaced_is_named_with_the_reason(report):
    class Own(sklearn.mixture.GaussianMixture):
        """A class that a script derives."""

    assert Own.__mro__[1] is ORIGINAL
    assert type(Own(3, random_state=0).fit(ROWS)) is Own
    LatentDirichletAllocation(2, random_state=0).fit_transform(np.eye(4, dtype=int))
    assert report.made == 0
    assert str(report).splitlines() == [
        "swiftem.accel: LatentDirichletAllocation was not replaced: swiftem.PLSA is another model.",
        "swiftem.accel: Own was not replaced: it derives from GaussianMixture and may override its methods.",
    ]


def test_nothing_to_replace_is_said(report):
    assert str(report) == "swiftem.accel: there was nothing to replace."


def test_errors_are_those_of_scikit_learn(report):
    with pytest.raises(TypeError, match="method"):
        sklearn.mixture.GaussianMixture(2, method="em")
    with pytest.raises(TypeError):
        sklearn.mixture.GaussianMixture(2, "full")
    assert report.made == 0


def test_a_notebook_switches_on_and_off():
    load_ipython_extension(None)
    try:
        assert type(sklearn.mixture.GaussianMixture()) is swiftem.GaussianMixture
    finally:
        unload_ipython_extension(None)
    assert sklearn.mixture.GaussianMixture is ORIGINAL


SCRIPT = """
import sys
import numpy as np
from helper import COMPONENTS
from sklearn.mixture import GaussianMixture

if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(200, 2))
    print(type(GaussianMixture(COMPONENTS, random_state=0).fit(X)).__module__, sys.argv)
    sys.exit(3)
"""


@pytest.mark.parametrize("words", [["script.py"], ["-m", "script"]])
def test_a_script_runs_as_it_would_alone(words, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("COMPONENTS = 2\n")
    command = [sys.executable, "-m", "swiftem.accel", *words, "--option", "1"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 3
    assert found.stdout.startswith("swiftem.mixture.gaussian_mixture ['")
    assert found.stdout.rstrip().endswith("'--option', '1']")
    assert found.stderr.startswith("swiftem.accel: GaussianMixture was replaced: 1 fit in ")


def test_bad_command_lines(capsys):
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert "usage: python -m swiftem.accel" in capsys.readouterr().out
    assert str(main(["none.py"])).startswith("SCRIPT must be a file, got 'none.py', which does not exist.")
