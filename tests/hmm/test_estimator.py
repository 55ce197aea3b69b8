"""``swiftem.HiddenMarkovModel``: forms of data, methods, queries, files, scikit-learn's conventions."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import swiftem
from swiftem import HiddenMarkovModel, methods

LENGTHS = np.array([40, 1, 59, 100, 30, 70])
CHAIN = [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]
MEANS = {"means": [[0.0, 0.0], [3.0, -3.0]], "covariances": np.ones((2, 2))}


@pytest.fixture(scope="module")
def data():
    model = HiddenMarkovModel.from_parameters(*CHAIN, MEANS, random_state=0)
    X, states = model.sample(300)
    return X, states


@pytest.fixture(scope="module")
def fitted(data):
    return HiddenMarkovModel(2, random_state=0).fit(data[0], lengths=LENGTHS)


def order_of(model):
    return np.argsort(model.means_[:, 0])


def same(one, other):
    assert np.array_equal(one.startprob_, other.startprob_)
    assert np.array_equal(one.transmat_, other.transmat_)
    assert np.array_equal(one.means_, other.means_)
    assert np.array_equal(one.covariances_, other.covariances_)


def test_finds_states(data, fitted):
    X, states = data
    order = order_of(fitted)
    np.testing.assert_allclose(fitted.means_[order], MEANS["means"], atol=0.3)
    np.testing.assert_allclose(fitted.transmat_[np.ix_(order, order)], CHAIN[1], atol=0.1)
    assert fitted.converged_
    assert fitted.method_ == "em"
    assert fitted.n_features_in_ == 2
    assert (np.argsort(order)[fitted.predict(X, LENGTHS)] == states).mean() > 0.97
    assert fitted.log_likelihood_ == pytest.approx(fitted.score(X, lengths=LENGTHS))


def test_data_in_every_form_give_the_same(data, fitted, tmp_path):
    X, _ = data
    ids = np.repeat([f"s{i}" for i in range(len(LENGTHS))], LENGTHS)
    parts = np.split(X, np.cumsum(LENGTHS)[:-1])
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(id=ids)

    def new():
        return HiddenMarkovModel(2, random_state=0)

    same(new().fit(parts), fitted)
    same(new().fit(X, LENGTHS), fitted)  # as hmmlearn
    same(new().fit(X, sequence=ids), fitted)
    same(new().fit(np.column_stack([X, np.repeat(np.arange(6), LENGTHS)]), sequence=2), fitted)
    from_frame = new().fit(frame, sequence="id")
    same(from_frame, fitted)
    assert from_frame.feature_names_in_.tolist() == ["a", "b"]
    frame.to_parquet(tmp_path / "steps.parquet", row_group_size=37)
    frame.to_csv(tmp_path / "steps.csv", index=False)
    for name in ("steps.parquet", "steps.csv"):
        from_file = new().fit(tmp_path / name, sequence="id")
        for attribute in ("startprob_", "transmat_", "means_", "covariances_"):
            np.testing.assert_allclose(
                getattr(from_file, attribute), getattr(fitted, attribute), rtol=1e-6, atol=1e-9
            )
        np.testing.assert_array_equal(
            from_file.predict(tmp_path / name, sequence="id"), fitted.predict(X, LENGTHS)
        )
        assert from_file.score(tmp_path / name, sequence="id") == pytest.approx(
            fitted.score(X, lengths=LENGTHS)
        )
    halves = [tmp_path / "1.parquet", tmp_path / "2.parquet"]  # a sequence may continue in the next file
    frame[:70].to_parquet(halves[0])
    frame[70:].to_parquet(halves[1])
    assert new().fit(halves, sequence="id").score(frame[["a", "b"]], lengths=LENGTHS) == pytest.approx(
        fitted.score(X, lengths=LENGTHS), rel=1e-6
    )
    np.save(tmp_path / "steps.npy", X)
    np.testing.assert_allclose(
        new().fit(tmp_path / "steps.npy", lengths=LENGTHS).means_, fitted.means_, rtol=1e-6
    )


@pytest.mark.parametrize("access", ["steps.parquet", "steps.csv"])
@pytest.mark.parametrize("method", ["sem", "sem-vr", "em"])
def test_files_under_a_memory_limit(data, tmp_path, access, method):
    X, _ = data
    frame = pd.DataFrame(np.tile(X, (20, 1)), columns=["a", "b"]).assign(id=np.repeat(np.arange(60), 100))
    file = tmp_path / access
    if access.endswith("csv"):
        frame.to_csv(file, index=False)
    else:
        frame.to_parquet(file, row_group_size=333)
    with swiftem.config_context(memory_limit="1GB"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = HiddenMarkovModel(2, method=method, random_state=0, max_iter=20).fit(file, sequence="id")
    np.testing.assert_allclose(model.means_[order_of(model)], MEANS["means"], atol=0.3)
    with swiftem.config_context(memory_limit="10MB"), pytest.raises(swiftem.core.checks.MemoryLimitError):
        HiddenMarkovModel(2, method=method).fit(file, sequence="id")


@pytest.mark.parametrize("method", ["em", "sem", "iem", "sem-vr", "fiem", "spider"])
def test_every_method_ends_at_the_same_optimum(method):
    model = HiddenMarkovModel.from_parameters(*CHAIN, MEANS, random_state=1)
    X, _ = model.sample(20_000)
    lengths = np.full(400, 50)
    model = HiddenMarkovModel(2, method=method, random_state=0, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, lengths=lengths)
    em = HiddenMarkovModel(2, random_state=0).fit(X, lengths=lengths)
    assert model.method_ == method
    assert model.score(X, lengths=lengths) == pytest.approx(em.score(X, lengths=lengths), abs=2e-3)


@pytest.mark.parametrize("method", ["em", "sem-vr", "fiem"])
def test_fits_resume_from_checkpoints(data, tmp_path, method):
    X, _ = data
    X, lengths = np.tile(X, (5, 1)), np.full(30, 50)

    def new():
        return HiddenMarkovModel(2, method=method, random_state=0, tol=1e-9, max_iter=30)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = new().fit(X, lengths=lengths)
        with swiftem.checkpoint(tmp_path / "fit", every=1):
            same(new().fit(X, lengths=lengths), whole)
        with swiftem.checkpoint(tmp_path / "fit", resume=True):
            same(new().fit(X, lengths=lengths), whole)


def test_one_sequence(data):
    X, _ = data
    HiddenMarkovModel(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="method must be 'em' for one sequence"):
        HiddenMarkovModel(2, method="sem-vr").fit(X)


def test_bad_input(data):
    X, _ = data
    model = HiddenMarkovModel(2)
    bad = {
        "lengths must sum to the number of steps, 300, got 10": {"lengths": [4, 6]},
        "lengths must be positive": {"lengths": [100, 0, 200]},
        "one after the other": {"sequence": np.arange(300) % 2},
        "sequence must have a value for each step": {"sequence": []},
        "lengths must be left out": {"sequence": np.zeros(300), "lengths": [300]},
        "missing one": {"sequence": np.where(np.arange(300) < 10, np.nan, 1.0)},
        r"sample_weight must have shape \(2,\)": {"lengths": [100, 200], "sample_weight": [1.0]},
    }
    for words, given in bad.items():
        with pytest.raises(ValueError, match=words):
            model.fit(X, **given)
    with pytest.raises(ValueError, match="lengths must sum to the number of steps"):
        model.fit(X, sequence=np.zeros(200))
    with pytest.raises(ValueError, match="must be positive"):
        model.fit([X, X[:0]])
    with pytest.raises(ValueError, match="same columns"):
        model.fit([X, X[:, :1]])
    with pytest.raises(ValueError, match="sequence must be a column of X, got 'id'"):
        model.fit(pd.DataFrame(X), sequence="id")
    for device in ("cuda", "torch:cpu"):
        with pytest.raises(ValueError, match="device must be 'auto' or 'cpu'"):
            HiddenMarkovModel(2, device=device).fit(X)
    with pytest.raises(ValueError, match="transmat_prior must be"):
        HiddenMarkovModel(2, transmat_prior=0.5).fit(X)
    with pytest.raises(ValueError, match="sum"):
        HiddenMarkovModel(2, startprob_init=[0.5, 0.4]).fit(X)


def test_left_right_models_keep_their_zeros(data):
    X, _ = data
    transmat = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])
    given = {"startprob_init": [1.0, 0.0, 0.0], "transmat_init": transmat}
    for method in ("em", "sem-vr"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = HiddenMarkovModel(3, **given, method=method, random_state=0, max_iter=20).fit(
                X, lengths=LENGTHS
            )
        assert (model.transmat_[transmat == 0.0] == 0.0).all()
        assert model.startprob_.tolist() == [
            1.0,
            0.0,
            0.0,
        ]
        np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)


def test_queries_belong_together(data, fitted):
    X, _ = data
    parts = np.split(X, np.cumsum(LENGTHS)[:-1])
    terms = fitted.score_samples(X, LENGTHS)
    assert terms.sum() / len(X) == pytest.approx(fitted.score(X, lengths=LENGTHS))
    assert terms[-LENGTHS[-1] :].sum() == pytest.approx(fitted.score(parts[-1]) * LENGTHS[-1])
    gamma = fitted.predict_proba(X, LENGTHS)
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0)
    value, states = fitted.decode(X, LENGTHS, algorithm="map")
    assert (states == gamma.argmax(axis=1)).all()
    assert value == pytest.approx(np.log(gamma.max(axis=1)).sum())
    assert (fitted.set_params(algorithm="map").predict(X, LENGTHS) == states).all()
    fitted.set_params(algorithm="viterbi")
    assert sum(fitted.decode(part)[0] for part in parts) == pytest.approx(fitted.decode(X, LENGTHS)[0])
    n_parameters = 1 + 2 + 8
    total = terms.sum()
    assert fitted.bic(X, LENGTHS) == pytest.approx(-2 * total + n_parameters * np.log(300))
    assert fitted.aic(X, LENGTHS) == pytest.approx(-2 * total + 2 * n_parameters)


def test_viterbi_finds_the_best_path():
    import itertools

    model = HiddenMarkovModel.from_parameters(*CHAIN, {"rates": [[1.0], [4.0]]}, family="poisson")
    X = np.array([[0], [2], [3], [7], [1]])
    logs = (
        np.log(np.array([np.exp(-r) * r ** X[:, 0] for r in (1.0, 4.0)]).T)
        - np.log([1, 2, 6, 5040, 1])[:, None]
    )

    def value_of(path):
        chain = np.log(CHAIN[0][path[0]]) + sum(np.log(CHAIN[1][i][j]) for i, j in itertools.pairwise(path))
        return chain + logs[range(5), path].sum()

    best = max(itertools.product(range(2), repeat=5), key=value_of)
    value, states = model.decode(X)
    assert states.tolist() == list(best)
    assert value == pytest.approx(value_of(best))


def test_files_keep_everything(data, fitted, tmp_path):
    X, _ = data
    frame = pd.DataFrame(X, columns=["a", "b"])
    fitted = HiddenMarkovModel(2, random_state=0).fit(frame, lengths=LENGTHS)
    fitted.save(tmp_path / "model")
    loaded = swiftem.load(tmp_path / "model")
    same(loaded, fitted)
    assert loaded.feature_names_in_.tolist() == ["a", "b"]
    assert loaded.method_ == "em"
    assert (loaded.predict(frame, LENGTHS) == fitted.predict(frame, LENGTHS)).all()
    same(loaded.partial_fit(frame, lengths=LENGTHS), fitted.partial_fit(frame, lengths=LENGTHS))
    mixed = {"poisson": [0], "bernoulli": [1]}
    rows = np.column_stack([X[:, 0].round().clip(0), X[:, 1] > 0])
    model = HiddenMarkovModel(2, family=mixed, random_state=0).fit(rows, lengths=LENGTHS)
    model.save(tmp_path / "mixed")
    loaded = HiddenMarkovModel.load(tmp_path / "mixed")
    np.testing.assert_array_equal(loaded.predict_proba(rows, LENGTHS), model.predict_proba(rows, LENGTHS))
    assert loaded.params_["poisson"]["rates"].shape == (2, 1)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_partial_fit_takes_whole_sequences(data, missing, family):
    X, states = data
    X = (
        X
        if family == "gaussian"
        else np.random.default_rng(0).poisson(1.0 + 5.0 * states[:, None], size=X.shape)
    )
    X = X.astype(float)
    if missing:
        X[::7, 0] = np.nan
        X[:100] = np.nan_to_num(X[:100])  # the first call has no missing cells
    model = HiddenMarkovModel(2, family=family, random_state=0, missing="ignore" if missing else "error")
    for start in (0, 100, 200):
        model.partial_fit(X[start : start + 100], lengths=[60, 40])
    assert model.n_iter_ >= 3
    assert model.method_ == "sem"
    whole = HiddenMarkovModel(2, family=family, random_state=0, missing=model.missing).fit(
        X, lengths=[60, 40] * 3
    )
    lengths = [60, 40] * 3
    assert model.score(X, lengths=lengths) == pytest.approx(whole.score(X, lengths=lengths), abs=0.1)
    again = HiddenMarkovModel(2, family=family, random_state=0, method=methods.OnlineEM(step_size=1e-9))
    if not missing:
        before = again.fit(X, lengths=lengths).transmat_
        np.testing.assert_allclose(again.partial_fit(X, lengths=lengths).transmat_, before, atol=1e-6)


def test_missing_cells(data):
    X, states = data
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        HiddenMarkovModel(2).fit(holes)
    for kind in ("diag", "full"):
        model = HiddenMarkovModel(2, covariance_type=kind, missing="ignore", random_state=0).fit(
            holes, lengths=LENGTHS
        )
        np.testing.assert_allclose(model.means_[order_of(model)], MEANS["means"], atol=0.4)
        assert (np.argsort(order_of(model))[model.predict(holes, LENGTHS)] == states).mean() > 0.9


def test_a_state_without_steps_is_found_again():
    rng = np.random.default_rng(0)
    X = rng.normal(np.repeat(10.0 * rng.integers(0, 2, size=60), 5))[:, None]
    given = {"params_init": {"means": [[0.0], [1e6]], "covariances": np.ones((2, 1))}}
    model = HiddenMarkovModel(2, **given, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(model.means_.ravel()), [0.0, 10.0], atol=0.5)


def test_weights_count_sequences(data):
    X, _ = data
    weight = np.array([2.0, 1.0, 0.0, 1.0, 3.0, 1.0])
    times = np.repeat(np.arange(6), weight.astype(int))
    parts = np.split(X, np.cumsum(LENGTHS)[:-1])
    start = {"params_init": MEANS, "startprob_init": CHAIN[0], "transmat_init": CHAIN[1]}
    weighted = HiddenMarkovModel(2, **start).fit(X, lengths=LENGTHS, sample_weight=weight)
    repeated = HiddenMarkovModel(2, **start).fit([parts[i] for i in times])
    np.testing.assert_allclose(weighted.transmat_, repeated.transmat_, atol=1e-10)
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-10)
    assert weighted.score(X, lengths=LENGTHS, sample_weight=weight) == pytest.approx(
        repeated.score([parts[i] for i in times])
    )


def test_float32(data):
    X, _ = data
    small = HiddenMarkovModel(2, random_state=0).fit(X.astype(np.float32), lengths=LENGTHS)
    np.testing.assert_allclose(
        small.means_[order_of(small)],
        HiddenMarkovModel(2, random_state=0).fit(X, lengths=LENGTHS).means_[order_of(small)],
        atol=1e-2,
    )


def test_warm_start_continues(data):
    X, _ = data
    with pytest.warns(ConvergenceWarning):
        model = HiddenMarkovModel(2, random_state=0, max_iter=2, warm_start=True, tol=1e-8).fit(
            X, lengths=LENGTHS
        )
    before = model.score(X, lengths=LENGTHS)
    with pytest.raises(ValueError, match="n_components must be 2, as fitted, for warm_start, got 3"):
        model.set_params(n_components=3).fit(X, lengths=LENGTHS)
    model.set_params(n_components=2, max_iter=500).fit(X, lengths=LENGTHS)
    assert model.converged_
    assert model.score(X, lengths=LENGTHS) > before


def test_selection(data):
    X, _ = data
    chosen = HiddenMarkovModel(random_state=0).select(X, range(1, 4), lengths=LENGTHS)
    assert chosen.best.n_components == 2
    assert [row.n_components for row in chosen.table] == [1, 2, 3]
    assert "states" in repr(chosen)
    assert chosen.to_pandas().shape[0] == 3
    assert chosen.plot().get_ylabel() == "bic"


def test_cross_validation_splits_by_sequence(data):
    X, _ = data
    parts = np.split(X, np.cumsum(np.full(5, 50)))
    search = GridSearchCV(HiddenMarkovModel(random_state=0), {"n_components": [1, 2]}, cv=3).fit(parts)
    assert search.best_params_ == {"n_components": 2}
    ids = np.repeat(np.arange(6), 50)
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            HiddenMarkovModel(2, random_state=0)
            .set_fit_request(sequence=True)
            .set_score_request(sequence=True)
        )
        scores = cross_val_score(model, X, cv=GroupKFold(3), params={"sequence": ids, "groups": ids})
    assert np.isfinite(scores).all()


def test_pictures(data, fitted):
    pytest.importorskip("matplotlib")
    X, _ = data
    axes = fitted.plot_states(X[:100])
    assert axes.get_ylabel() == "column 0"
    assert axes.get_xlabel() == "step"
    axes = fitted.plot_transitions()
    assert len(axes.texts) == 4
    assert fitted.plot_convergence().get_ylabel() == "mean log-likelihood"
    assert "to state 1" in repr(fitted.summary())


def test_the_estimator_checks_of_scikit_learn():
    """Weights are of sequences: the checks that give one to each row do not apply."""
    of_rows = [
        name for name, _ in inspect.getmembers(sklearn.utils.estimator_checks) if "sample_weight" in name
    ]
    reasons = dict.fromkeys(of_rows, "weights are of sequences")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(HiddenMarkovModel(1), expected_failed_checks=reasons, on_fail=None)
    failed = [result["check_name"] for result in found if result["status"] == "failed"]
    assert failed == []


def test_dask_collections_are_refused(data):
    dask = pytest.importorskip("dask.array")
    with pytest.raises(
        TypeError, match="in memory or in files for a hidden Markov model, got a Dask collection"
    ):
        HiddenMarkovModel(2).fit(dask.from_array(data[0], chunks=100), lengths=LENGTHS)


def test_columns_of_text_and_families_by_type(tmp_path):
    frame = pd.DataFrame({"kind": np.array(list("aab"))[np.arange(300) % 3], "n": np.arange(300) % 5})
    frame["id"] = np.repeat([1, 2], 150)
    for family in ("auto", {"categorical": ["kind"], "poisson": ["n"]}):
        model = HiddenMarkovModel(2, family=family, random_state=0, max_iter=500).fit(frame, sequence="id")
        assert model.categories_["kind"] == ("a", "b")
        model.save(tmp_path / "model")
        states = swiftem.load(tmp_path / "model").predict(frame, sequence="id")
        assert (states == model.predict(frame, sequence="id")).all()


@pytest.mark.parametrize("method", ["fiem", "spider"])
def test_weights_and_memories_of_sequences_in_files(data, tmp_path, method):
    X = np.tile(data[0], (20, 1))
    lengths, weight = np.full(60, 100), np.tile([1.0, 0.0, 2.0], 20)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(id=np.repeat(np.arange(60), 100))
    frame.to_parquet(tmp_path / "steps.parquet", row_group_size=333)
    new = HiddenMarkovModel(2, method=method, random_state=0, max_iter=40)
    with swiftem.config_context(memory_limit="200MB"):
        stored = clone(new).fit(tmp_path / "steps.parquet", sequence="id", sample_weight=weight)
    whole = clone(new).fit(X, lengths=lengths, sample_weight=weight)
    assert stored.log_likelihood_ == pytest.approx(whole.log_likelihood_, abs=1e-4)
    frame.to_csv(tmp_path / "steps.csv", index=False)
    with pytest.raises(ValueError, match="can only be read in order"):
        HiddenMarkovModel(2, method="fiem").fit(tmp_path / "steps.csv", sequence="id")
