"""One clear sentence for what is no data or no parameter."""

import numpy as np
import pytest
import scipy.sparse as sp
from mixture_data import METHODS, blobs

import swiftem

X, _ = blobs(50, 2, 2)

DATA = {
    "NaN": (np.where(np.arange(100).reshape(50, 2) == 7, np.nan, X), "Input X contains NaN"),
    "infinity": (np.where(np.arange(100).reshape(50, 2) == 7, np.inf, X), "Input X contains infinity"),
    "sparse": (sp.csr_array(X), "Sparse data was passed"),
    "words": ([["a", "b"], ["c", "d"]], "must have numbers in every column, got text in columns 0, 1"),
    "three dimensions": (X.reshape(5, 10, 2), "Found array with dim 3"),
    "one dimension": (X[:, 0], "Expected 2D array, got 1D array instead"),
    "no rows": (np.empty((0, 2)), "Found array with 0 sample"),
    "no columns": (np.empty((50, 0)), "0 feature"),
    "complex": (X + 1j, "Complex data not supported"),
    "ragged": ([[1.0, 2.0], [3.0]], "inhomogeneous|setting an array element"),
}


@pytest.mark.parametrize(("data", "message"), list(DATA.values()), ids=list(DATA))
def test_data(data, message):
    fitted = swiftem.GaussianMixture(2, random_state=0).fit(X)
    for ask in (
        swiftem.GaussianMixture(2).fit,
        swiftem.GaussianMixture(2, method="fiem").fit,
        swiftem.GaussianMixture(2).partial_fit,
        fitted.predict,
        fitted.score_samples,
        fitted.bic,
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ask(data)


PARAMETERS = {
    "n_components": 0,
    "covariance_type": "round",
    "tol": -1.0,
    "reg_covar": -1.0,
    "max_iter": -1,
    "n_init": 0,
    "init_params": "best",
    "method": "gradient",
    "prior": "wide",
    "verbose_interval": 0,
}


@pytest.mark.parametrize(("name", "value"), list(PARAMETERS.items()))
def test_parameters(name, value):
    for ask in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=f"^{name} must be .*, got"):
            getattr(swiftem.GaussianMixture(**{name: value}), ask)(X)


@pytest.mark.parametrize(
    "schedule",
    [
        swiftem.schedules.inverse(3, 10),
        swiftem.schedules.sample_size(),
        swiftem.schedules.power(1.0, 0.6),
        lambda k: 1 / (k + 2),
        0.1,
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_schedules_as_step_size(schedule):
    method = swiftem.methods.VarianceReducedEM(step_size=schedule)
    mixture = swiftem.GaussianMixture(2, method=method, max_iter=7, random_state=0).fit(X)
    assert np.isfinite(mixture.score(X))


def test_a_schedule_that_leaves_its_range():
    method = swiftem.methods.OnlineEM(step_size=lambda k: 2.0)
    with pytest.raises(ValueError, match=r"step_size must lie in \(0, 1\]"):
        swiftem.GaussianMixture(2, method=method, random_state=0).fit(X)


def test_fewer_rows_than_components():
    with pytest.raises(ValueError, match="Expected n_samples >= n_components but got n_components = 60"):
        swiftem.GaussianMixture(60).fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_starts_that_do_not_fit(method):
    for parameters, message in (
        ({"means_init": [[0.0]]}, "The parameter 'means' should have the shape"),
        ({"weights_init": [0.9, 0.9]}, "weights"),
        (
            {"precisions_init": -np.eye(2)[None].repeat(2, axis=0)},
            "'full precision' should be symmetric, positive",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            swiftem.GaussianMixture(2, method=method, **parameters).fit(X)


def test_another_number_of_columns():
    fitted = swiftem.GaussianMixture(2, random_state=0).fit(X)
    for ask in (fitted.predict, fitted.score, fitted.partial_fit):
        with pytest.raises(ValueError, match="X has 1 features, but GaussianMixture is expecting 2 features"):
            ask(X[:, :1])


@pytest.mark.parametrize("changed", [{"n_components": 3}, {"covariance_type": "diag"}])
def test_parameters_that_no_longer_fit_the_model(changed):
    fitted = swiftem.GaussianMixture(2, random_state=0).fit(X).set_params(**changed)
    for ask in (fitted.predict, fitted.partial_fit, fitted.set_params(warm_start=True).fit):
        with pytest.raises(ValueError, match="The fitted parameters must be of"):
            ask(X)
    fitted.set_params(warm_start=False).fit(X).predict(X)


def test_a_warm_start_with_other_columns():
    fitted = swiftem.GaussianMixture(2, random_state=0, warm_start=True).fit(X)
    with pytest.raises(ValueError, match="and 3 columns, but are not: fit again, without warm_start"):
        fitted.fit(np.column_stack([X, X[:, 0]]))


def test_nothing_fitted():
    from sklearn.exceptions import NotFittedError

    mixture = swiftem.GaussianMixture(2)
    for ask in (
        lambda: mixture.predict(X),
        lambda: mixture.icl(X),
        lambda: mixture.sample(),
        lambda: mixture.marginal([0]),
        lambda: mixture.condition([0], [0.0]),
        lambda: mixture.to_sklearn(),
        lambda: mixture.full_covariances(),
        lambda: mixture.save("nowhere"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask()
