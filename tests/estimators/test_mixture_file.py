"""Models in files: everything comes back, and whatever is no model is refused."""

import numpy as np
import pytest

import swiftem
from swiftem.models import NormalInverseWishart

X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0.0], [4.0]], 100, axis=0)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_round_trip(tmp_path, kind):
    prior = NormalInverseWishart(degrees_of_freedom=4.0, scale=1.0)
    mixture = swiftem.GaussianMixture(2, covariance_type=kind, prior=prior, random_state=3).fit(X)
    mixture.save(tmp_path / "model")
    found = swiftem.load(tmp_path / "model")
    assert type(found) is swiftem.GaussianMixture
    np.testing.assert_array_equal(found.predict_proba(X), mixture.predict_proba(X))
    assert found.get_params() == mixture.get_params()
    assert (found.n_iter_, found.converged_, found.lower_bound_) == (
        mixture.n_iter_,
        mixture.converged_,
        mixture.lower_bound_,
    )
    assert len(found.history_) == len(mixture.history_)


def damaged(folder):
    path = folder / "model"
    swiftem.GaussianMixture(2, random_state=0).fit(X).save(path)
    whole = path.read_bytes()
    yield whole[: len(whole) // 2]
    yield b""
    yield b"no model at all"
    changed = bytearray(whole)
    changed[-33] ^= 0xFF  # the last byte of the last array
    yield bytes(changed)


def test_damaged_files_are_refused(tmp_path):
    for content in list(damaged(tmp_path)):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ValueError, match="bad"):
            swiftem.GaussianMixture.load(tmp_path / "bad")


def test_foreign_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", np.zeros(3))
    (tmp_path / "other.npz").rename(tmp_path / "other")
    with pytest.raises(ValueError, match="other"):
        swiftem.GaussianMixture.load(tmp_path / "other")
    swiftem.PLSA(2, random_state=0).fit(np.eye(4)).save(tmp_path / "topics")
    with pytest.raises(ValueError, match="PLSA"):
        swiftem.GaussianMixture.load(tmp_path / "topics")
    with pytest.raises(FileNotFoundError):
        swiftem.GaussianMixture.load(tmp_path / "none")


def test_a_given_start_is_kept(tmp_path):
    rows = np.random.default_rng(0).poisson(3, (100, 2)) + np.repeat([0.0, 20.0], 50)[:, None]
    for family, start in (
        ("poisson", {"rates": [[1.0, 2.0], [20.0, 20.0]]}),
        (
            {"poisson": [0], "gaussian": [1]},
            {"poisson": {"rates": [[1.0], [20.0]]},
             "gaussian": {"means": [[1.0], [20.0]], "variances": np.ones((2, 1))}},
        ),
    ):  # fmt: skip
        mixture = swiftem.Mixture(2, family=family, params_init=start, random_state=0).fit(rows)
        mixture.save(tmp_path / "a.model")
        loaded = swiftem.Mixture.load(tmp_path / "a.model")
        assert loaded.family == family
        assert loaded.params_init.keys() == start.keys()
        assert np.array_equal(loaded.predict(rows), mixture.predict(rows))
        again = loaded.fit(rows)
        assert again.lower_bound_ == mixture.lower_bound_
