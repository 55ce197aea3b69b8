"""``swiftem.Mixture``: the whole interface, for every family of the library."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from surroundings import fit_within

import swiftem
from swiftem import Mixture, methods
from swiftem.mixture.families import Family, Poisson

RNG = np.random.default_rng(0)
TRUE = {
    "poisson": np.array([[1.0, 8.0, 3.0], [6.0, 1.0, 1.0], [3.0, 3.0, 9.0]]),
    "bernoulli": np.array([[0.9, 0.1, 0.1, 0.8, 0.9], [0.1, 0.9, 0.2, 0.1, 0.9], [0.5, 0.5, 0.9, 0.9, 0.1]]),
}
NAMES = {"poisson": "rates", "bernoulli": "probabilities"}
every_family = pytest.mark.parametrize("family", sorted(TRUE))


def rows_of(family, n=3000, seed=0):
    rng = np.random.default_rng(seed)
    true = TRUE[family][rng.choice(3, size=n, p=[0.5, 0.3, 0.2])]
    return (rng.poisson(true) if family == "poisson" else rng.random(true.shape) < true).astype(float)


def close(found, expected):
    """Compare components in any order."""
    cost = np.abs(found[:, None] - expected).max(axis=2)
    return cost.min(axis=1).max()


@every_family
@pytest.mark.parametrize("method", ["auto", *methods.METHODS])
def test_every_method_finds_the_components(family, method):
    X = rows_of(family, 6000)
    mixture = Mixture(3, family=family, method=method, random_state=0, n_init=2, tol=1e-4).fit(X)
    found = mixture.params_[NAMES[family]]
    assert found.shape == TRUE[family].shape
    assert close(found, TRUE[family]) < (0.5 if family == "poisson" else 0.1)
    assert mixture.weights_.sum() == pytest.approx(1.0)
    assert mixture.family_.name == family
    assert mixture.converged_
    assert mixture.stationarity_ < 0.05


def test_methods_as_objects():
    X = rows_of("poisson")
    own = methods.FastIncrementalEM(step_size=0.1, batch_size=20)
    assert Mixture(3, family="poisson", method=own, random_state=0).fit(X).method_ == "fiem"


@every_family
def test_queries(family):
    X = rows_of(family)
    mixture = Mixture(3, family=family, random_state=0).fit(X)
    shares = mixture.predict_proba(X)
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(mixture.predict(X), shares.argmax(axis=1))
    assert mixture.score(X) == pytest.approx(mixture.score_samples(X).mean())
    free = 2 + TRUE[family].size
    total = mixture.score_samples(X).sum()
    assert mixture.aic(X) == pytest.approx(-2 * total + 2 * free)
    assert mixture.bic(X) == pytest.approx(-2 * total + free * np.log(len(X)))
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum()
    assert mixture.icl(X) == pytest.approx(mixture.bic(X) + 2 * entropy)
    drawn, labels = mixture.sample(5000)
    assert drawn.shape == (5000, X.shape[1])
    assert np.allclose(drawn.mean(axis=0), X.mean(axis=0), rtol=0.15)
    assert set(labels) == {0, 1, 2}


def test_weights_count_as_repetitions():
    X = rows_of("poisson", 400)
    weight = np.random.default_rng(1).integers(0, 4, size=400)
    options = {"family": "poisson", "method": "em", "smoothing": 0.0, "tol": 0.0, "max_iter": 30}
    start = {"rates": TRUE["poisson"] + 0.5}
    with pytest.warns(UserWarning, match="did not converge"):
        one = Mixture(3, params_init=start, weights_init=[0.3, 0.3, 0.4], **options).fit(X, None, weight)
    repeated = np.repeat(X, weight, axis=0)
    with pytest.warns(UserWarning, match="did not converge"):
        other = Mixture(3, params_init=start, weights_init=[0.3, 0.3, 0.4], **options).fit(repeated)
    assert np.allclose(one.params_["rates"], other.params_["rates"], rtol=1e-10)


@every_family
def test_files_of_models(family, tmp_path):
    X = rows_of(family).astype(np.float32)
    mixture = Mixture(3, family=family, random_state=0).fit(X)
    mixture.save(tmp_path / "a.model")
    again = Mixture.load(tmp_path / "a.model")
    assert again.params_[NAMES[family]].dtype == np.float32
    assert np.array_equal(again.predict_proba(X), mixture.predict_proba(X))
    for one in (mixture, again):
        one.partial_fit(X[:100]).partial_fit(X[100:150])
    assert np.array_equal(again.params_[NAMES[family]], mixture.params_[NAMES[family]])
    mixture.save(tmp_path / "b.model")
    later = Mixture.load(tmp_path / "b.model").partial_fit(X[150:300])
    assert np.array_equal(later.weights_, mixture.partial_fit(X[150:300]).weights_)
    with pytest.raises(ValueError, match="holds a Mixture, not a GaussianMixture"):
        swiftem.GaussianMixture.load(tmp_path / "a.model")


@dataclass(frozen=True)
class Scaled(Poisson):
    """A family with a choice of its own, which a file keeps."""

    power: float = 1.0
    name = "scaled"


def test_a_family_of_ones_own_in_a_file(tmp_path):
    X = rows_of("poisson")
    mixture = Mixture(2, family=Scaled(power=3.0), random_state=0).fit(X)
    mixture.save(tmp_path / "own.model")
    assert Mixture.load(tmp_path / "own.model").family == Scaled(power=3.0)


@every_family
def test_rows_in_files(family, tmp_path):
    X = rows_of(family)
    np.save(tmp_path / "rows.npy", X)
    here = Mixture(3, family=family, method="em", random_state=0).fit(X)
    there = Mixture(3, family=family, method="em", random_state=0).fit(tmp_path / "rows.npy")
    assert np.allclose(here.params_[NAMES[family]], there.params_[NAMES[family]], rtol=1e-9)
    limited = Mixture(3, family=family, method="fiem", random_state=0)
    with swiftem.config_context(memory_limit="200MB"):
        limited.fit(tmp_path / "rows.npy")
    assert np.array_equal(limited.predict(tmp_path / "rows.npy"), limited.predict(X))


def test_checkpoints_resume_to_the_bit(tmp_path):
    X = rows_of("poisson")
    options = {"family": "poisson", "method": "sem-vr", "random_state": 0, "max_iter": 9, "tol": 0.0}
    with pytest.warns(UserWarning, match="did not converge"):
        whole = Mixture(3, **options).fit(X)
    seen = []

    class Stop(Exception):
        """Ends a fit in the middle."""

    from swiftem.mixture.look import Look

    real = Look.at

    def at(self, theta, passes):
        seen.append(passes)
        if len(seen) == 4:
            raise Stop
        return real(self, theta, passes)

    kept = {"n_components": 3, "checkpoint": tmp_path / "fit", "checkpoint_every": 1} | options
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Look, "at", at)
        with pytest.raises(Stop):
            fit_within(Mixture, X, **kept)
    with pytest.warns(UserWarning, match="did not converge"):
        again = fit_within(
            Mixture,
            X,
            n_components=3,
            checkpoint=tmp_path / "fit",
            checkpoint_every=1,
            resume=True,
            **options,
        )
    assert np.array_equal(again.params_["rates"], whole.params_["rates"])


def test_partial_fit_of_a_stream():
    X = rows_of("poisson", 20_000)
    mixture = Mixture(3, family="poisson", random_state=0)
    for start in range(0, len(X), 500):
        mixture.partial_fit(X[start : start + 500])
    assert close(mixture.params_["rates"], TRUE["poisson"]) < 0.6


def test_components_without_rows_are_set_anew():
    X = rows_of("poisson")
    start = {"rates": np.vstack([TRUE["poisson"][:2], [500.0, 500.0, 500.0]])}
    with pytest.warns(
        UserWarning, match="re-initialised.*: fewer components or more smoothing would prevent this"
    ):
        mixture = Mixture(
            3, family="poisson", params_init=start, weights_init=[0.4, 0.4, 0.2], method="em"
        ).fit(X)
    assert mixture.weights_.min() > 0.01


def test_select_finds_the_number_of_components():
    found = swiftem.select(rows_of("poisson"), range(1, 6), family="poisson", random_state=0)
    assert found.best.n_components == 3
    values = [row.log_likelihood for row in found.table]
    assert values == sorted(values)
    assert "BIC is lowest for poisson mixtures, 3 components" in repr(found)
    assert "family" in repr(found)
    assert "covariances" not in repr(found)
    pytest.importorskip("matplotlib")
    assert found.plot().texts[0].get_text() == "best: 3"
    with pytest.raises(ValueError, match="covariance_types must be left out for family='poisson'"):
        swiftem.select(rows_of("poisson"), 2, "full", family="poisson")
    with pytest.raises(TypeError, match="parameters of Mixture are allowed"):
        swiftem.select(rows_of("poisson"), 2, family="poisson", reg_covar=1.0)


def test_a_doubled_component_leaves_the_density_as_it_is(monkeypatch):
    """If no fit with more components is better, the largest one counts as two."""
    fit = Mixture.fit
    monkeypatch.setattr(Mixture, "fit", lambda self, X: fit(self, X if self.n_components == 1 else X.y[:6]))
    X = np.random.default_rng(0).poisson(4.0, size=(200, 3))
    found = swiftem.select(X, [1, 2, 4], family="poisson", random_state=0)
    assert [row.start for row in found.table] == ["fresh", "doubled", "doubled"]
    one, *others = found.models.values()
    for mixture in others:
        assert mixture.weights_.sum() == pytest.approx(1.0, rel=1e-14)
        np.testing.assert_allclose(mixture.score_samples(X), one.score_samples(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "X", "kind", "sentence"),
    [
        (
            {"family": "poison"},
            None,
            ValueError,
            "family must be 'bernoulli' or .*, got 'poison'",
        ),
        ({"family": 3}, None, ValueError, "family must be a str or a Family or a Mapping, got 3"),
        ({"smoothing": -1.0}, None, ValueError, "smoothing must be a number of at least 0, got -1.0"),
        ({"params_init": {"rate": 1.0}}, None, ValueError, "params_init must have rates, got"),
        ({"params_init": {"rates": [[1.0, 2.0]]}}, None, ValueError, r"params_init: rates must have shape"),
        ({}, -rows_of("poisson"), ValueError, "data must be counts"),
        ({}, sp.csr_array(rows_of("poisson")), TypeError, "dense data is required"),
    ],
)
def test_bad_input(parameters, X, kind, sentence):
    with pytest.raises(kind, match=sentence):
        Mixture(2, **{"family": "poisson"} | parameters).fit(rows_of("poisson") if X is None else X)


def test_rows_to_predict_are_checked():
    mixture = Mixture(2, family="poisson", random_state=0).fit(rows_of("poisson"))
    with pytest.raises(ValueError, match="data must be counts"):
        mixture.predict([[1.0, 2.5, 0.0]])
    with pytest.raises(ValueError, match="X has 2 features, but Mixture is expecting 3"):
        mixture.predict([[1.0, 2.0]])


def test_conventions():
    mixture = Mixture(2, family="bernoulli", random_state=0).fit(rows_of("bernoulli") > 0.5)
    assert clone(mixture).get_params() == mixture.get_params()
    assert np.array_equal(pickle.loads(pickle.dumps(mixture)).weights_, mixture.weights_)
    given = Mixture.from_parameters([0.5, 0.5], {"probabilities": [[0.9], [0.1]]}, family="bernoulli")
    assert given.predict([[1], [0]]).tolist() == [0, 1]
    assert isinstance(mixture.family_, Family)
