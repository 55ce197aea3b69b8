"""``swiftem.Mixture`` of codes and of channels: methods, files, checkpoints, streams, bad codes."""

import numpy as np
import pytest
from surroundings import fit_within

import swiftem
from swiftem import Mixture, methods
from swiftem.mixture.families import Categorical


def codes(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.choice(2, size=n, p=[0.6, 0.4])
    likely = np.array([[0, 3, 1, 2, 0], [2, 0, 4, 1, 1]])[z]
    noise = np.column_stack([rng.integers(0, level, n) for level in (3, 4, 5, 3, 2)])
    return np.where(rng.random((n, 5)) < 0.6, likely, noise).astype(float)


def numbers(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.choice(2, size=n, p=[0.6, 0.4])
    return np.array([[0.0, 1e4], [9.0, 1e4 + 30.0]])[z] + rng.standard_t(4.0, size=(n, 2)) * [1.0, 5.0]


ROWS = {
    "categorical": codes(),
    "student-t": numbers(),
    "both": np.column_stack([codes(), numbers()]),
}
FAMILIES = {
    "categorical": "categorical",
    "student-t": "student-t",
    "both": {"student-t": [5, 6], "categorical": [0, 1, 2, 3, 4]},
}
every_family = pytest.mark.parametrize("name", ROWS)


def flat(params):
    parts = params.values()
    return np.concatenate([flat(part) if isinstance(part, dict) else part.ravel() for part in parts])


@every_family
@pytest.mark.parametrize("method", ["auto", *methods.METHODS])
def test_every_method_finds_the_components(name, method):
    X = ROWS[name]
    mixture = Mixture(2, family=FAMILIES[name], method=method, random_state=0, tol=1e-4, max_iter=300).fit(X)
    assert np.allclose(np.sort(mixture.weights_), [0.4, 0.6], atol=0.05)
    params = mixture.params_.get("student-t", mixture.params_)
    if name != "categorical":
        order = np.argsort(params["means"][:, 0])
        assert np.allclose(params["means"][order, 0], [0.0, 9.0], atol=0.3)
        assert ((params["degrees_of_freedom"] > 2.0) & (params["degrees_of_freedom"] < 9.0)).all()
    params = mixture.params_.get("categorical", mixture.params_)
    if name != "student-t":
        assert sorted(params["probabilities"][:, 2].argmax(axis=1)) == [1, 4]
    assert mixture.stationarity_ < 0.05


@every_family
def test_queries(name):
    X = ROWS[name]
    mixture = Mixture(2, family=FAMILIES[name], random_state=0).fit(X)
    shares = mixture.predict_proba(X)
    assert shares.shape == (len(X), 2)
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(mixture.predict(X), shares.argmax(axis=1))
    free = {"categorical": 1 + 2 * 12, "student-t": 1 + 2 * 6, "both": 1 + 2 * 18}[name]
    total = mixture.score_samples(X).sum()
    assert mixture.bic(X) == pytest.approx(-2 * total + free * np.log(len(X)))
    drawn, labels = mixture.sample(5000)
    low, high = np.quantile(drawn, [0.4, 0.6], axis=0)
    middle = np.median(X, axis=0)
    assert ((low <= middle) & (middle <= high)).all()
    assert drawn.shape == (5000, X.shape[1])
    assert set(labels) == {0, 1}


@every_family
@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_starts_by_name(name, init_params):
    options = {"init_params": init_params, "random_state": 0, "max_iter": 300, "tol": 1e-5}
    mixture = Mixture(2, family=FAMILIES[name], **options).fit(ROWS[name])
    assert np.allclose(np.sort(mixture.weights_), [0.4, 0.6], atol=0.05)


@every_family
def test_files_and_streams(name, tmp_path):
    X = ROWS[name].astype(np.float32)
    mixture = Mixture(2, family=FAMILIES[name], random_state=0).fit(X)
    mixture.save(tmp_path / "a.model")
    again = Mixture.load(tmp_path / "a.model")
    assert again.family_ == mixture.family_
    assert np.array_equal(again.predict_proba(X), mixture.predict_proba(X))
    for one in (mixture, again):
        one.partial_fit(X[:100]).partial_fit(X[100:150])
    assert np.array_equal(flat(again.params_), flat(mixture.params_))
    mixture.save(tmp_path / "b.model")
    later = Mixture.load(tmp_path / "b.model").partial_fit(X[150:300])
    assert np.array_equal(later.weights_, mixture.partial_fit(X[150:300]).weights_)
    stream = Mixture(2, family=FAMILIES[name], random_state=0)
    for start in range(0, len(X), 500):
        stream.partial_fit(X[start : start + 500])
    assert np.allclose(np.sort(stream.weights_), [0.4, 0.6], atol=0.08)


@every_family
def test_rows_in_files(name, tmp_path):
    X = ROWS[name]
    np.save(tmp_path / "rows.npy", X)
    here = Mixture(2, family=FAMILIES[name], method="em", random_state=0).fit(X)
    there = Mixture(2, family=FAMILIES[name], method="em", random_state=0).fit(tmp_path / "rows.npy")
    assert np.allclose(flat(here.params_), flat(there.params_), rtol=1e-6, atol=1e-9)
    limited = Mixture(2, family=FAMILIES[name], method="fiem", random_state=0)
    with swiftem.config_context(memory_limit="200MB"):
        limited.fit(tmp_path / "rows.npy")
    assert np.array_equal(limited.predict(tmp_path / "rows.npy"), limited.predict(X))


@every_family
@pytest.mark.parametrize("method", ["em", "fiem"])
def test_checkpoints_resume_to_the_bit(name, method, tmp_path):
    X = ROWS[name]
    options = {"family": FAMILIES[name], "method": method, "random_state": 0, "max_iter": 8, "tol": 0.0}
    with pytest.warns(UserWarning, match="did not converge"):
        whole = Mixture(2, **options).fit(X)
    seen = []

    class Stop(Exception):
        """Ends a fit in the middle."""

    from swiftem.fit.driver import Drive

    real = Drive.note

    def note(self, *given):
        seen.append(given)
        if len(seen) == 4:
            raise Stop
        return real(self, *given)

    kept = {"n_components": 2, "checkpoint": tmp_path / "fit", "checkpoint_every": 1} | options
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Drive, "note", note)
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


def test_a_code_that_was_not_in_the_fit():
    X = ROWS["categorical"]
    mixture = Mixture(2, family="categorical", random_state=0).fit(X)
    new = X[:5].copy()
    new[3, 1] = 4.0
    sentence = (
        r"data must be codes from 0 to 3 in column 1 \(levels=4\), got 4 in row 3 \(family 'categorical'\)"
    )
    for asked in (mixture.predict, mixture.score, mixture.predict_proba, mixture.partial_fit):
        with pytest.raises(ValueError, match=sentence):
            asked(new)
    wide = Mixture(2, family=Categorical((3, 9, 5, 3, 2)), random_state=0).fit(X)
    assert wide.params_["probabilities"].shape == (2, 5, 9)
    assert wide.predict(new).shape == (5,)
    assert np.isfinite(wide.score(new))


def test_warm_starts_on_rows_with_fewer_levels():
    X = ROWS["categorical"]
    mixture = Mixture(2, family="categorical", random_state=0, warm_start=True).fit(X)
    assert mixture.fit(X[X[:, 2] < 4]).family_.levels == (3, 4, 5, 3, 2)


def test_selections():
    found = swiftem.select(ROWS["categorical"], range(1, 4), family="categorical", random_state=0)
    assert found.best.n_components == 2
    assert found.table[1].n_parameters == 1 + 2 * 12
    found = swiftem.select(ROWS["student-t"], range(1, 4), family="student-t", random_state=0)
    assert found.best.n_components == 2
