"""``swiftem.Mixture`` with blocks of columns: names, files, checkpoints, streams, selections."""

import numpy as np
import pytest
from model_mutations import with_header
from sklearn.base import clone
from surroundings import fit_within

import swiftem
from swiftem import Mixture, methods
from swiftem.mixture.families import Gaussian

FAMILY = {"poisson": ["visits"], "gaussian": ["age", "income"], "bernoulli": ["yes", "member"]}
NAMES = ["age", "visits", "yes", "income", "member"]
NUMBERS = {"poisson": [1], "gaussian": [0, 3], "bernoulli": [2, 4]}


def rows_of(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.choice(2, size=n, p=[0.6, 0.4])
    return np.column_stack([
        rng.normal(np.array([30.0, 60.0])[z], 5.0),
        rng.poisson(np.array([2.0, 9.0])[z]),
        rng.random(n) < np.array([0.1, 0.7])[z],
        rng.normal(np.array([20_000.0, 45_000.0])[z], 4000.0),
        rng.random(n) < np.array([0.9, 0.4])[z],
    ]).astype(float)  # fmt: skip


def flat(params):
    return np.concatenate([part.ravel() for parts in params.values() for part in parts.values()])


def table(kind, X):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=NAMES).astype({"visits": int, "yes": bool, "member": bool})
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(frame)
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    return frame


@pytest.mark.parametrize("method", ["auto", *methods.METHODS])
def test_every_method_finds_the_components(method):
    X = rows_of(6000)
    mixture = Mixture(2, family=NUMBERS, method=method, random_state=0, tol=1e-4).fit(X)
    order = np.argsort(mixture.params_["poisson"]["rates"][:, 0])
    assert np.allclose(mixture.params_["poisson"]["rates"][order, 0], [2.0, 9.0], atol=0.4)
    assert np.allclose(mixture.params_["gaussian"]["means"][order], [[30, 20_000], [60, 45_000]], rtol=0.02)
    assert np.allclose(
        mixture.params_["bernoulli"]["probabilities"][order], [[0.1, 0.9], [0.7, 0.4]], atol=0.05
    )
    assert mixture.family_.name == "poisson + gaussian + bernoulli"
    assert mixture.stationarity_ < 0.05


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_names_of_columns(kind):
    X = rows_of(500)
    named = Mixture(2, family=FAMILY, random_state=0).fit(table(kind, X))
    numbered = Mixture(2, family=NUMBERS, random_state=0).fit(X)
    assert np.array_equal(flat(named.params_), flat(numbered.params_))
    assert list(named.feature_names_in_) == NAMES
    assert np.array_equal(named.predict(table(kind, X[:9])), numbered.predict(X[:9]))
    with pytest.raises(ValueError, match="names of columns of the data, got 'sex'; they have age, visits"):
        Mixture(2, family=FAMILY | {"gaussian": ["age", "sex"]}).fit(table(kind, X))
    with pytest.raises(ValueError, match="every column in a block, got none for column 3"):
        Mixture(2, family=FAMILY | {"gaussian": ["age"]}).fit(table(kind, X))


def test_names_need_a_table():
    with pytest.raises(ValueError, match="got 'visits'; they have no names: give their numbers"):
        Mixture(2, family=FAMILY).fit(rows_of(50))


def test_files_of_models(tmp_path):
    X = table("pandas", rows_of())
    mixture = Mixture(2, family=FAMILY, random_state=0).fit(X)
    mixture.save(tmp_path / "a.model")
    again = Mixture.load(tmp_path / "a.model")
    assert again.family == FAMILY
    assert again.family_ == mixture.family_
    assert np.array_equal(again.predict_proba(X), mixture.predict_proba(X))
    for one in (mixture, again):
        one.partial_fit(X[:100]).partial_fit(X[100:150])
    assert np.array_equal(flat(again.params_), flat(mixture.params_))
    mixture.save(tmp_path / "b.model")
    later = Mixture.load(tmp_path / "b.model").partial_fit(X[150:300])
    assert np.array_equal(later.weights_, mixture.partial_fit(X[150:300]).weights_)


def test_a_damaged_family_in_a_file(tmp_path):
    Mixture(2, family=NUMBERS, random_state=0).fit(rows_of(200)).save(tmp_path / "a.model")

    def other_columns(parts):
        parts["header"]["family_"]["fields"]["columns"][0] = [7]

    content = (tmp_path / "a.model").read_bytes()
    (tmp_path / "a.model").write_bytes(with_header(content, other_columns))
    with pytest.raises(
        ValueError, match="is not a valid Mixture: family must have columns from 0 to 4, got 7"
    ):
        Mixture.load(tmp_path / "a.model")


def test_rows_in_files(tmp_path):
    X = rows_of()
    np.save(tmp_path / "rows.npy", X)
    frame = table("pandas", X).astype({"yes": int, "member": int})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = {"method": "em", "random_state": 0}
    here = Mixture(2, family=NUMBERS, **options).fit(X)
    for family, path in ((NUMBERS, "rows.npy"), (FAMILY, "rows.csv")):
        there = Mixture(2, family=family, **options).fit(tmp_path / path)
        assert np.allclose(flat(here.params_), flat(there.params_), rtol=1e-9)
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "rows.parquet")
    limited = Mixture(2, family=FAMILY, method="fiem", random_state=0)
    with swiftem.config_context(memory_limit="200MB"):
        limited.fit(tmp_path / "rows.parquet")
    assert np.array_equal(limited.predict(tmp_path / "rows.parquet"), limited.predict(frame))


def test_checkpoints_resume_to_the_bit(tmp_path):
    from swiftem.mixture.look import Look

    X = rows_of()
    options = {"family": NUMBERS, "method": "sem-vr", "random_state": 0, "max_iter": 9, "tol": 0.0}
    with pytest.warns(UserWarning, match="did not converge"):
        whole = Mixture(2, **options).fit(X)
    seen, real = [], Look.at

    class Stop(Exception):
        """Ends a fit in the middle."""

    def at(self, theta, passes):
        seen.append(passes)
        if len(seen) == 4:
            raise Stop
        return real(self, theta, passes)

    kept = {"n_components": 2, "checkpoint": tmp_path / "fit", "checkpoint_every": 1} | options
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Look, "at", at)
        with pytest.raises(Stop):
            fit_within(Mixture, X, **kept)
    with pytest.warns(UserWarning, match="did not converge"):
        again = fit_within(
            Mixture,
            X,
            n_components=2,
            checkpoint=tmp_path / "fit",
            checkpoint_every=1,
            resume=True,
            **options,
        )
    assert np.array_equal(flat(again.params_), flat(whole.params_))


def test_streams_samples_and_starts():
    X = rows_of(10_000)
    mixture = Mixture(2, family=NUMBERS, random_state=0)
    for start in range(0, len(X), 500):
        mixture.partial_fit(X[start : start + 500])
    assert np.allclose(np.sort(mixture.params_["poisson"]["rates"][:, 0]), [2.0, 9.0], atol=0.5)
    drawn, labels = mixture.sample(4000)
    assert np.allclose(drawn.mean(axis=0), X.mean(axis=0), rtol=0.1)
    assert set(np.unique(drawn[:, 2])) == {0.0, 1.0}
    assert set(labels) == {0, 1}
    given = Mixture(2, family=NUMBERS, params_init=mixture.params_, weights_init=[0.5, 0.5], method="em").fit(
        X
    )
    assert np.allclose(flat(given.params_), flat(mixture.params_), rtol=0.3)
    same = Mixture.from_parameters(mixture.weights_, mixture.params_, family=NUMBERS)
    assert np.array_equal(same.predict(X), mixture.predict(X))
    with pytest.raises(ValueError, match="params_init must have bernoulli, gaussian, poisson, got"):
        Mixture(2, family=NUMBERS, params_init={"rates": 1.0}).fit(X)


def test_a_start_does_not_depend_on_units():
    rng = np.random.default_rng(0)
    z = rng.choice(2, size=1000)
    X = np.column_stack([rng.poisson(1000.0, size=1000), rng.random(1000) < np.array([0.02, 0.98])[z]])
    family = {"poisson": [0], "bernoulli": [1]}
    with pytest.warns(UserWarning, match="did not converge"):
        mixture = Mixture(2, family=family, init_params="kmeans", random_state=0, max_iter=1, tol=0.0).fit(X)
    assert np.allclose(np.sort(mixture.params_["bernoulli"]["probabilities"][:, 0]), [0.0, 1.0], atol=0.1)


def test_warm_starts_keep_the_family():
    X = rows_of(500)
    mixture = Mixture(2, family=NUMBERS, random_state=0, warm_start=True).fit(X)
    before = mixture.lower_bound_
    assert mixture.fit(X).lower_bound_ >= before - 1e-9
    mixture.set_params(family={"poisson": [2], "gaussian": [0, 3], "bernoulli": [1, 4]})
    with pytest.raises(ValueError, match="family must be that of the fitted parameters"):
        mixture.fit(X)


def test_free_parameters_and_selections():
    X = rows_of(1000)
    mixture = Mixture(2, family=NUMBERS, random_state=0).fit(X)
    free = 1 + 2 * (1 + 4 + 2)
    assert mixture.bic(X) == pytest.approx(-2 * mixture.score_samples(X).sum() + free * np.log(1000))
    found = swiftem.select(table("pandas", X), range(1, 4), family=FAMILY, random_state=0)
    assert found.best.n_components == 2
    assert found.table[1].n_parameters == free
    assert "poisson + gaussian + bernoulli mixtures, 2 components" in repr(found)
    assert list(found.best.feature_names_in_) == NAMES
    assert np.array_equal(found.best.predict(table("pandas", X)), found.best.predict(table("pandas", X)))


def test_conventions():
    family = {Gaussian(covariance="spherical"): [0, 3], "poisson": [1], "bernoulli": [2, 4]}
    mixture = Mixture(2, family=family, random_state=0)
    assert clone(mixture).get_params() == mixture.get_params()
    mixture.fit(rows_of(300))
    assert mixture.params_["gaussian"]["variances"].shape == (2,)
    with pytest.raises(ValueError, match=r"data must be counts .* got 0.5 in row 0 \(family 'poisson'\)"):
        mixture.predict([[30.0, 0.5, 1.0, 2e4, 0.0]])
