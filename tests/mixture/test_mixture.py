"""``swiftem.Mixture`` as users call it: the same for every family, for blocks of columns, and in files."""

import pickle
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from model_mutations import with_header
from sklearn.base import clone

import swiftem
from swiftem import Mixture, methods
from swiftem.mixture.candidates import family_candidates
from swiftem.mixture.families import Binomial, Family, Gaussian, Poisson, VonMisesFisher

RNG = np.random.default_rng(0)
N = 2000
LABELS = (RNG.random(N) < 0.4).astype(int)
SECOND = LABELS[:, None] == 1


def codes():
    likely = np.array([[0, 3, 1, 2, 0], [2, 0, 4, 1, 1]])[LABELS]
    noise = RNG.integers(0, (3, 4, 5, 3, 2), size=(N, 5))
    return np.where(RNG.random((N, 5)) < 0.6, likely, noise).astype(float)


def directions():
    params = {"directions": np.eye(2, 5), "concentrations": np.full(2, 40.0)}
    return VonMisesFisher().draw(params, LABELS, RNG)


def of_three_kinds():
    return np.column_stack([
        RNG.normal(np.array([30.0, 60.0])[LABELS], 5.0),
        RNG.poisson(np.array([2.0, 9.0])[LABELS]),
        RNG.random(N) < np.array([0.1, 0.7])[LABELS],
        RNG.normal(np.array([20_000.0, 45_000.0])[LABELS], 4000.0),
        RNG.random(N) < np.array([0.9, 0.4])[LABELS],
    ]).astype(float)  # fmt: skip


CODES, AMOUNTS = codes(), RNG.gamma(4.0, np.where(SECOND, [1.0, 30.0], [20.0, 2.0]))
COUNTS = RNG.poisson(np.where(SECOND, [1.0, 8.0, 3.0], [6.0, 1.0, 1.0])).astype(float)
ANSWERS = RNG.random((N, 5)) < np.where(SECOND, [0.9, 0.1, 0.1, 0.8, 0.9], [0.1, 0.9, 0.2, 0.1, 0.3])
HEAVY_TAILED = np.where(SECOND, [9.0, 1e4 + 30.0], [0.0, 1e4]) + RNG.standard_t(4.0, (N, 2)) * [1.0, 5.0]
SUCCESSES = RNG.binomial([5, 20], np.where(SECOND, [0.2, 0.7], [0.6, 0.3])).astype(float)
TABLE = of_three_kinds()
BLOCKS = {"poisson": [1], "gaussian": [0, 3], "bernoulli": [2, 4]}


class Case(NamedTuple):
    """A family, rows of two components, and the free parameters of one component."""

    family: Any
    X: np.ndarray
    free: int


CASES = {
    "poisson": Case("poisson", COUNTS, 3),
    "bernoulli": Case("bernoulli", ANSWERS.astype(float), 5),
    "binomial": Case(Binomial(trials=(5, 20)), SUCCESSES, 2),
    "exponential": Case("exponential", AMOUNTS, 2),
    "gamma": Case("gamma", AMOUNTS, 4),
    "inverse-gaussian": Case("inverse-gaussian", AMOUNTS, 4),
    "log-normal": Case("log-normal", AMOUNTS, 4),
    "von-mises-fisher": Case("von-mises-fisher", directions(), 5),
    "categorical": Case("categorical", CODES, 12),
    "student-t": Case("student-t", HEAVY_TAILED, 6),
    "codes and numbers": Case(
        {"student-t": [5, 6], "categorical": [0, 1, 2, 3, 4]}, np.column_stack([CODES, HEAVY_TAILED]), 18
    ),
    "blocks": Case(BLOCKS, TABLE, 7),
}
every_case = pytest.mark.parametrize("name", CASES)


def fit(name, **options):
    return Mixture(2, family=CASES[name].family, **{"random_state": 0, **options}).fit(CASES[name].X)


@cache
def fitted(name):
    return fit(name)


def flat(params):
    parts = params.values()
    return np.concatenate([flat(part) if isinstance(part, dict) else part.ravel() for part in parts])


def agreement(found):
    same = np.mean(found == LABELS)
    return max(same, 1.0 - same)


@every_case
@pytest.mark.parametrize("method", ["auto", *methods.METHODS])
def test_every_method_finds_the_components(name, method):
    mixture, X = fit(name, method=method, tol=1e-4, max_iter=300), CASES[name].X
    assert agreement(mixture.predict(X)) > 0.93
    assert np.allclose(np.sort(mixture.weights_), [0.4, 0.6], atol=0.05)
    assert mixture.score(X) > fitted(name).score(X) - 0.03
    assert mixture.stationarity_ < 0.05


@every_case
def test_queries(name):
    X, mixture = CASES[name].X, fitted(name)
    shares = mixture.predict_proba(X)
    assert shares.shape == (N, 2)
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(mixture.predict(X), shares.argmax(axis=1))
    assert mixture.score(X) == pytest.approx(mixture.score_samples(X).mean())
    free, total = 1 + 2 * CASES[name].free, mixture.score_samples(X).sum()
    assert mixture.aic(X) == pytest.approx(-2 * total + 2 * free)
    assert mixture.bic(X) == pytest.approx(-2 * total + free * np.log(N))
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum()
    assert mixture.icl(X) == pytest.approx(mixture.bic(X) + 2 * entropy)
    drawn, labels = mixture.sample(5000)
    assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < 0.15 * X.std(axis=0)).all()
    assert drawn.shape == (5000, X.shape[1])
    assert set(labels) == {0, 1}


@every_case
def test_files_and_streams(name, tmp_path):
    X = CASES[name].X.astype(np.float32)
    mixture = Mixture(2, family=CASES[name].family, random_state=0).fit(X)
    mixture.save(tmp_path / "a.model")
    again = Mixture.load(tmp_path / "a.model")
    assert again.family == CASES[name].family
    assert again.family_ == mixture.family_
    assert flat(again.params_).dtype == np.float32
    assert np.array_equal(again.predict_proba(X), mixture.predict_proba(X))
    for one in (mixture, again):
        one.partial_fit(X[:100]).partial_fit(X[100:150])
    assert np.array_equal(flat(again.params_), flat(mixture.params_))
    mixture.save(tmp_path / "b.model")
    later = Mixture.load(tmp_path / "b.model").partial_fit(X[150:300])
    assert np.array_equal(later.weights_, mixture.partial_fit(X[150:300]).weights_)
    stream = Mixture(2, family=CASES[name].family, random_state=0)
    for batch in np.array_split(np.tile(X, (2, 1)), 8):
        stream.partial_fit(batch)
    assert np.allclose(np.sort(stream.weights_), [0.4, 0.6], atol=0.08)
    with pytest.raises(ValueError, match="holds a Mixture, not a GaussianMixture"):
        swiftem.GaussianMixture.load(tmp_path / "a.model")


@every_case
def test_rows_in_files(name, tmp_path):
    X, family = CASES[name].X, CASES[name].family
    np.save(tmp_path / "rows.npy", X)
    here = fit(name, method="em")
    there = Mixture(2, family=family, method="em", random_state=0).fit(tmp_path / "rows.npy")
    assert np.allclose(flat(here.params_), flat(there.params_), rtol=1e-6, atol=1e-9)
    limited = Mixture(2, family=family, method="fiem", random_state=0)
    with swiftem.config_context(memory_limit="200MB"):
        limited.fit(tmp_path / "rows.npy")
    assert np.array_equal(limited.predict(tmp_path / "rows.npy"), limited.predict(X))


@pytest.mark.parametrize("name", ["categorical", "student-t", "codes and numbers"])
@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_starts_by_name(name, init_params):
    mixture = fit(name, init_params=init_params, max_iter=300, tol=1e-5)
    assert np.allclose(np.sort(mixture.weights_), [0.4, 0.6], atol=0.05)


@pytest.mark.parametrize("name", ["poisson", "categorical", "student-t", "blocks"])
def test_selections(name):
    case = CASES[name]
    found = swiftem.select(case.X, range(1, 4), family=case.family, random_state=0)
    assert found.best.n_components == 2
    assert found.table[1].n_parameters == 1 + 2 * case.free
    assert f"mixtures, 2 components ({len(found.table)} fits)" in found.reason


def test_what_a_selection_of_a_family_says():
    found = swiftem.select(COUNTS, range(1, 4), family="poisson", random_state=0)
    values = [row.log_likelihood for row in found.table]
    assert values == sorted(values)
    assert "BIC is lowest for poisson mixtures, 2 components" in repr(found)
    assert "family" in repr(found)
    assert "covariances" not in repr(found)
    assert found.plot().texts[0].get_text() == "best: 2"
    with pytest.raises(ValueError, match="covariance_types must be left out for family='poisson'"):
        swiftem.select(COUNTS, 2, "full", family="poisson")
    with pytest.raises(TypeError, match="parameters of Mixture are allowed"):
        swiftem.select(COUNTS, 2, family="poisson", reg_covar=1.0)


def test_a_doubled_component_leaves_the_density_as_it_is():
    """If no fit with more components is better, the largest one counts as two."""
    X = np.random.default_rng(0).poisson(4.0, size=(200, 3))
    (candidates,) = family_candidates({"poisson": "poisson"}, X, None, {})
    one = candidates.new(1).fit(X)
    for n_components in (2, 4):
        doubled = candidates.doubled(one, n_components)
        assert doubled.weights_.sum() == pytest.approx(1.0, rel=1e-14)
        np.testing.assert_allclose(doubled.score_samples(X), one.score_samples(X), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_weights_count_as_repetitions():
    weight = np.random.default_rng(1).integers(0, 4, size=N)
    options = {"family": "poisson", "method": "em", "smoothing": 0.0, "tol": 0.0, "max_iter": 30}
    options |= {"params_init": {"rates": [[1.5, 7.0, 3.0], [6.0, 1.5, 1.5]]}, "weights_init": [0.3, 0.7]}
    one = Mixture(2, **options).fit(COUNTS, None, weight)
    other = Mixture(2, **options).fit(np.repeat(COUNTS, weight, axis=0))
    assert np.allclose(one.params_["rates"], other.params_["rates"], rtol=1e-10)


@dataclass(frozen=True)
class Scaled(Poisson):
    """A family with a choice of its own, which a file keeps."""

    power: float = 1.0
    name = "scaled"


def test_a_family_of_ones_own_in_a_file(tmp_path):
    Mixture(2, family=Scaled(power=3.0), random_state=0).fit(COUNTS).save(tmp_path / "own.model")
    assert Mixture.load(tmp_path / "own.model").family == Scaled(power=3.0)


STARTS = {
    "poisson": {"rates": [[1.0, 8.0, 3.0], [6.0, 1.0, 1.0]]},
    "blocks": {
        "poisson": {"rates": [[2.0], [9.0]]},
        "gaussian": {"means": [[30.0, 2e4], [60.0, 4.5e4]], "variances": np.full((2, 2), 1e6)},
        "bernoulli": {"probabilities": [[0.2, 0.8], [0.6, 0.4]]},
    },
}


@pytest.mark.parametrize("name", STARTS)
def test_a_given_start_is_kept_in_a_file(name, tmp_path):
    mixture = fit(name, params_init=STARTS[name])
    mixture.save(tmp_path / "a.model")
    loaded = Mixture.load(tmp_path / "a.model")
    assert loaded.params_init.keys() == STARTS[name].keys()
    assert loaded.fit(CASES[name].X).lower_bound_ == mixture.lower_bound_


def test_a_damaged_family_in_a_file(tmp_path):
    fitted("blocks").save(tmp_path / "a.model")

    def other_columns(parts):
        columns = parts["header"]["family_"]["fields"]["columns"]
        parts["header"]["family_"]["fields"]["columns"] = ((7,), *columns[1:])

    content = (tmp_path / "a.model").read_bytes()
    (tmp_path / "a.model").write_bytes(with_header(content, other_columns))
    with pytest.raises(
        ValueError, match="is not a valid Mixture: family must have columns from 0 to 4, got 7"
    ):
        Mixture.load(tmp_path / "a.model")


def test_components_without_rows_are_set_anew():
    start = {"rates": [[1.0, 8.0, 3.0], [500.0, 500.0, 500.0]]}
    sentence = "re-initialised.*: fewer components or more smoothing would prevent this"
    with pytest.warns(UserWarning, match=sentence):
        mixture = fit("poisson", params_init=start, weights_init=[0.8, 0.2], method="em")
    assert mixture.weights_.min() > 0.01


def test_a_start_does_not_depend_on_units():
    X = np.column_stack([RNG.poisson(1000.0, size=N), RNG.random(N) < np.array([0.02, 0.98])[LABELS]])
    family = {"poisson": [0], "bernoulli": [1]}
    with pytest.warns(UserWarning, match="did not converge"):
        mixture = Mixture(2, family=family, init_params="kmeans", random_state=0, max_iter=1, tol=0.0).fit(X)
    assert np.allclose(np.sort(mixture.params_["bernoulli"]["probabilities"][:, 0]), [0.0, 1.0], atol=0.1)


def test_warm_starts_keep_the_family():
    mixture = fit("blocks", warm_start=True)
    before = mixture.lower_bound_
    assert mixture.fit(TABLE).lower_bound_ >= before - 1e-9
    mixture.set_params(family={"poisson": [2], "gaussian": [0, 3], "bernoulli": [1, 4]})
    with pytest.raises(ValueError, match="family must be that of the fitted parameters"):
        mixture.fit(TABLE)
    of_codes = fit("categorical", warm_start=True)
    assert of_codes.fit(CODES[CODES[:, 2] < 4]).family_.levels == (3, 4, 5, 3, 2)


NAMES = ["age", "visits", "yes", "income", "member"]
NAMED = {"poisson": ["visits"], "gaussian": ["age", "income"], "bernoulli": ["yes", "member"]}


def table(kind, X):
    frame = pd.DataFrame(X, columns=NAMES).astype({"visits": int, "yes": bool, "member": bool})
    return {"pandas": pd.DataFrame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[kind](frame)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_names_of_columns(kind):
    named = Mixture(2, family=NAMED, random_state=0).fit(table(kind, TABLE))
    assert np.array_equal(flat(named.params_), flat(fitted("blocks").params_))
    assert list(named.feature_names_in_) == NAMES
    assert np.array_equal(named.predict(table(kind, TABLE[:9])), fitted("blocks").predict(TABLE[:9]))
    with pytest.raises(ValueError, match="names of columns of the data, got 'sex'; they have age, visits"):
        Mixture(2, family=NAMED | {"gaussian": ["age", "sex"]}).fit(table(kind, TABLE))


@pytest.mark.parametrize(
    ("parameters", "X", "kind", "sentence"),
    [
        ({"family": "poison"}, COUNTS, ValueError, "family must be 'bernoulli', .* or .*, got 'poison'"),
        ({"family": 3}, COUNTS, ValueError, "family must be a str, a Family or a Mapping, got 3"),
        ({"smoothing": -1.0}, COUNTS, ValueError, "smoothing must be a number of at least 0, got -1.0"),
        ({"params_init": {"rate": 1.0}}, COUNTS, ValueError, "params_init must have rates, got"),
        ({"params_init": {"rates": [[1.0, 2.0]]}}, COUNTS, ValueError, "params_init: rates must have shape"),
        (
            {"family": BLOCKS, "params_init": {"rates": 1.0}},
            TABLE,
            ValueError,
            "params_init must have bernoulli, gaussian, poisson, got",
        ),
        ({}, -COUNTS, ValueError, "data must be counts"),
        ({}, sp.csr_array(COUNTS), TypeError, "dense data is required"),
    ],
)
def test_bad_input(parameters, X, kind, sentence):
    with pytest.raises(kind, match=sentence):
        Mixture(2, **{"family": "poisson"} | parameters).fit(X)


def test_rows_to_predict_are_checked():
    with pytest.raises(ValueError, match="data must be counts"):
        fitted("poisson").predict([[1.0, 2.5, 0.0]])
    with pytest.raises(ValueError, match=r"data must be counts .* got 0.5 in row 0 \(family 'poisson'\)"):
        fitted("blocks").predict([[30.0, 0.5, 1.0, 2e4, 0.0]])
    with pytest.raises(ValueError, match=r"counts from 0 to 20 \(trials\) in column 1, got 21 in row 0"):
        fitted("binomial").predict([[3.0, 21.0]])
    with pytest.raises(ValueError, match="X has 2 features, but Mixture is expecting 3"):
        fitted("poisson").predict([[1.0, 2.0]])


def test_conventions():
    mixture = Mixture(2, family="bernoulli", random_state=0).fit(ANSWERS)
    assert np.array_equal(pickle.loads(pickle.dumps(mixture)).weights_, mixture.weights_)
    assert isinstance(mixture.family_, Family)
    given = Mixture.from_parameters([0.5, 0.5], {"probabilities": [[0.9], [0.1]]}, family="bernoulli")
    assert given.predict([[1], [0]]).tolist() == [0, 1]
    family = {Gaussian(covariance="spherical"): [0, 3], "poisson": [1], "bernoulli": [2, 4]}
    of_blocks = Mixture(2, family=family, random_state=0)
    assert clone(of_blocks).get_params() == of_blocks.get_params()
    assert of_blocks.fit(TABLE).params_["gaussian"]["variances"].shape == (2,)
    same = Mixture.from_parameters(of_blocks.weights_, of_blocks.params_, family=family)
    assert np.array_equal(same.predict(TABLE), of_blocks.predict(TABLE))
