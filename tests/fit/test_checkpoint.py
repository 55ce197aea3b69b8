"""Clones keep their checkpoints apart, so that searches over parameters work with them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from surroundings import within

from swiftem import PLSA, GaussianMixture, Mixture, checkpoint, select

ROWS = np.random.default_rng(0).normal(size=(90, 2)) + np.repeat([[0], [4], [9]], 30, axis=0)
COUNTS = np.random.default_rng(1).poisson(np.repeat([[3, 1, 0.5], [0.5, 2, 4]], 20, axis=0))
CASES = [
    (GaussianMixture(random_state=0), ROWS),
    (Mixture(family="poisson", random_state=0), COUNTS),
    (PLSA(random_state=0), COUNTS),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "X"), CASES)
def test_a_search_is_that_without_checkpoints_and_can_be_resumed(estimator, X, tmp_path):
    folder = tmp_path / "search"

    def search(**around):
        with within(**around):
            return GridSearchCV(estimator, {"n_components": [1, 2]}, cv=3).fit(X)

    plain = search()
    kept = search(checkpoint=folder)
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 2 * 3 + 1
    assert all(name.startswith("clone-") for name in names)
    resumed = search(checkpoint=folder, resume="auto")
    assert sorted(path.name for path in folder.iterdir()) == names
    for found in (kept, resumed):
        assert found.best_params_ == plain.best_params_
        np.testing.assert_array_equal(
            found.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
        )


def test_clones_of_clones_and_several_processes(tmp_path):
    with checkpoint(tmp_path / "fits"):
        scores = cross_val_score(clone(GaussianMixture(2, random_state=0)), ROWS, cv=3, n_jobs=2)
    assert np.isfinite(scores).all()
    assert len(list((tmp_path / "fits").iterdir())) == 3


def test_the_original_has_the_folder_itself(tmp_path):
    mixture = GaussianMixture(2, random_state=0)
    with checkpoint(tmp_path / "fit"):
        mixture.fit(ROWS)
        assert not list((tmp_path / "fit").glob("clone-*"))
        other = clone(mixture).fit(ROWS)
        np.testing.assert_array_equal(other.means_, mixture.means_)
        assert len(list((tmp_path / "fit").glob("clone-*"))) == 1
        late = clone(mixture)
        with pytest.raises(ValueError, match=r"clone-.* already has a run"):
            clone(mixture).fit(ROWS)
    late.fit(ROWS)  # the block has ended


def test_a_selection_keeps_its_fits_apart(tmp_path):
    options = {"covariance_types": ["diag", "tied"], "random_state": 0}
    plain = select(ROWS, [1, 2, 3], **options)
    for _ in range(2):
        with checkpoint(tmp_path, resume="auto"):
            found = select(ROWS, [1, 2, 3], **options)
        assert [row.value for row in found.table] == [row.value for row in plain.table]
    assert len(list(tmp_path.glob("clone-*"))) == 2 * (1 + 2 + 2)


def test_names_depend_on_parameters_data_and_seed(tmp_path):
    mixture = GaussianMixture(2, random_state=0)
    with checkpoint(tmp_path):
        for parameters, X in (({}, ROWS), ({"tol": 0.1}, ROWS), ({"random_state": 1}, ROWS), ({}, ROWS[1:])):
            clone(mixture).set_params(**parameters).fit(X)
    assert len(list(tmp_path.glob("clone-*"))) == 4


def test_without_checkpoints_clones_are_as_always():
    assert set(vars(clone(GaussianMixture()))) == set(vars(GaussianMixture()))
