"""What a user can call on a device: results equal those of the CPU, or one sentence refuses before any work.

Without a GPU the device is PyTorch's CPU, by ``device="torch:cpu"``, and there are fewer and smaller cases.
"""

import copy
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from combinations.pairs import all_pairs
from gpu_problems import KINDS, ON, clusters, on_device, torch
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem import methods, models
from swiftem.core.checks import in_numpy
from swiftem.methods import METHODS
from swiftem.mixture.starts.collapsed_components import SpuriousComponentWarning
from swiftem.mixture.starts.named_starts import DegenerateComponentWarning

HAS_GPU = torch.cuda.is_available()
SIZES = (500, 1500, 200_000) if HAS_GPU else (500, 1500)
PASSES = 8 if HAS_GPU else 4
TOL = 1e-3
"""The default of mixtures: fits end within eight times this of an optimum."""

INPUTS = {
    "tensor": on_device,
    "float32 tensor": lambda y: on_device(y.astype(np.float32)),
    "array": lambda y: y,
    "float32 array": lambda y: y.astype(np.float32),
}
try:
    import cupy
except ImportError:
    cupy = None
if HAS_GPU and cupy is not None:
    INPUTS |= {"cupy": cupy.asarray, "float32 cupy": lambda y: cupy.asarray(y.astype(np.float32))}


@pytest.fixture(autouse=True)
def few_passes():
    """Fits of few passes do not converge, and small ones may lose a component: on the CPU they do, too."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, DegenerateComponentWarning, SpuriousComponentWarning):
            warnings.simplefilter("ignore", kind)
        yield


def cases(factors, **options):
    """Return parameters of pytest, one for each case of all pairs."""
    values = {name: list(each) for name, each in factors.items()}
    found = all_pairs(values, np.random.default_rng(0), **options)
    return [pytest.param(case, id="-".join(str(value) for value in case.values())) for case in found]


def weights_of(case, n):
    """Return weights of rows, or None; some are zero."""
    return None if case["weight"] is None else np.random.default_rng(3).integers(4, size=n).astype(float)


def as_given(parameters, X):
    """Return arrays on the device if the rows are there."""
    if isinstance(X, np.ndarray):
        return parameters
    return {
        name: on_device(value) if isinstance(value, np.ndarray) else value
        for name, value in parameters.items()
    }


def device_of(X):
    """Return the device to ask for: "auto" finds that of data on a GPU."""
    return "auto" if HAS_GPU and not isinstance(X, np.ndarray) else ON


def on_cpu(model):
    """Return a fitted model with the same parameters, for the CPU."""
    return copy.copy(model).set_params(device="cpu")


def check(found, expected, *, rtol):
    np.testing.assert_allclose(in_numpy(found), in_numpy(expected), rtol=rtol, atol=rtol)


def check_place(found, X):
    """Results have the library and the device of the data."""
    if isinstance(X, torch.Tensor):
        assert isinstance(found, torch.Tensor)
        assert found.device == X.device
    else:
        assert type(found) is type(X)


def check_calls(model, X, y, path, *, rtol):
    """Every method of a fitted mixture for rows gives what the CPU gives for the same parameters."""
    expected, weight = on_cpu(model), 1.0 + np.arange(len(y)) % 3
    for name in ("predict_proba", "score_samples", "predict"):
        found, wanted = getattr(model, name)(X), getattr(expected, name)(y)
        check_place(found, X)
        if name == "predict":  # two components may be equally likely
            assert (in_numpy(found) == wanted).mean() > 0.995
        else:
            check(found, wanted, rtol=rtol)
    for name in ("score", "bic", "aic", "icl"):
        of_rows, of_all = getattr(model, name), getattr(expected, name)
        assert of_rows(X) == pytest.approx(of_all(y), rel=rtol)
        assert of_rows(X, sample_weight=on_device(weight)) == pytest.approx(
            of_all(y, sample_weight=weight), rel=rtol
        )
    rows, labels = map(in_numpy, model.sample(20))
    assert (rows.shape, labels.shape) == ((20, y.shape[1]), (20,))
    assert np.isfinite(rows).all()
    model.save(path)
    loaded = type(model).load(path)
    np.testing.assert_array_equal(loaded.predict(y), expected.predict(y))


def precisions(kind, d):
    full = 0.5 * np.eye(d) + 0.01
    found = {"full": np.array([full] * 3), "tied": full, "diag": np.full((3, d), 0.5)}
    return found.get(kind, np.full(3, 0.5))


STARTS = {
    "default": lambda y, kind: {},
    "kmeans": lambda y, kind: {"init_params": "kmeans"},
    "k-means++": lambda y, kind: {"init_params": "k-means++"},
    "random_from_data": lambda y, kind: {"init_params": "random_from_data"},
    "random": lambda y, kind: {"init_params": "random"},
    "means": lambda y, kind: {"means_init": y[[0, 100, 200]]},
    "all": lambda y, kind: {
        "weights_init": np.full(3, 1.0 / 3.0),
        "means_init": y[[0, 100, 200]],
        "precisions_init": precisions(kind, y.shape[1]),
    },
    "labels": lambda y, kind: {"init_params": np.random.default_rng(1).integers(3, size=len(y))},
    "function": lambda y, kind: {"init_params": lambda X, count, rng: rng.randint(count, size=len(X))},
}

GAUSSIANS = {
    "start": STARTS,
    "method": ("auto", *METHODS) if HAS_GPU else ("auto", "em", "sem", "fiem"),
    "kind": KINDS,
    "input": INPUTS,
    "columns": (1, 3, 20) if HAS_GPU else (1, 3),
    "rows": SIZES,
    "weight": (None, "some are zero"),
}


@pytest.mark.parametrize("case", cases(GAUSSIANS))
def test_gaussian_mixture(case, tmp_path):
    y = clusters(case["rows"], case["columns"], 3, spread=4.0)
    X, is_single = INPUTS[case["input"]](y), case["input"].startswith("float32")
    y, rtol = (y.astype(np.float32), 2e-4) if is_single else (y, 1e-9)
    weight, start = weights_of(case, len(y)), STARTS[case["start"]](y, case["kind"])
    options = {"covariance_type": case["kind"], "random_state": 0, "max_iter": PASSES}
    fitted = swiftem.GaussianMixture(
        3, method=case["method"], device=device_of(X), **options, **as_given(start, X)
    )
    fitted.fit(X, **as_given({"sample_weight": weight}, X))
    method = "em" if case["method"] == "auto" else case["method"]
    expected = swiftem.GaussianMixture(3, method=method, device="cpu", **options, **start)
    expected.fit(y, sample_weight=weight)
    # Rounding may choose another start: always in a race, and other rows or more batches if it is float32.
    is_rounded = is_single and (case["start"] == "k-means++" or method != "em")
    is_same = case["start"] != "default" and not is_rounded
    close = {"rel": rtol} if is_same else {"abs": 8 * TOL}
    assert fitted.log_likelihood_ == pytest.approx(expected.log_likelihood_, **close)
    if is_same and not is_single:
        check(fitted.means_, expected.means_, rtol=1e-6)
    check_calls(fitted, X, y, tmp_path / "a.model", rtol=rtol)
    expected = on_cpu(fitted)
    for model in (fitted, expected):
        model.set_params(warm_start=True, method="em", max_iter=2)
    assert fitted.fit(X).log_likelihood_ == pytest.approx(expected.fit(y).log_likelihood_, rel=rtol)
    check(fitted.partial_fit(X[:200]).means_, expected.partial_fit(y[:200]).means_, rtol=10 * rtol)


def positive(rng, group):
    return rng.gamma(3.0, 1.0 + 3.0 * group, size=(len(group), 3)) + 0.01


def directions(rng, group):
    rows = rng.normal(size=(len(group), 3)) + 3.0 * (2 * group - 1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def counts(rng, group):
    return rng.poisson(1.0 + 8.0 * group, size=(len(group), 3)).astype(float)


def with_holes(rows):
    rows[::7, 0] = np.nan
    return rows


FAMILIES = {
    "bernoulli": lambda rng, group: (rng.random((len(group), 3)) < 0.2 + 0.6 * group).astype(float),
    "binomial": lambda rng, group: rng.binomial(10, 0.2 + 0.5 * group, size=(len(group), 3)).astype(float),
    "exponential": positive,
    "gamma": positive,
    "gaussian": lambda rng, group: rng.normal(size=(len(group), 3)) + 4.0 * group,
    "inverse-gaussian": positive,
    "log-normal": positive,
    "poisson": counts,
    "von-mises-fisher": directions,
    "poisson and gaussian": counts,
    "poisson, missing cells": lambda rng, group: with_holes(counts(rng, group)),
}
GIVEN_FAMILIES = {
    "poisson and gaussian": {"family": {"poisson": [0, 2], "gaussian": [1]}},
    "poisson, missing cells": {"family": "poisson", "missing": "ignore"},
}
OF_FAMILIES = {
    "family": FAMILIES,
    "method": ("auto", "em", "sem", "iem", "spider") if HAS_GPU else ("auto", "iem"),
    "start": ("default", "kmeans", "labels") + (("random_from_data",) if HAS_GPU else ()),
    "input": [name for name in INPUTS if not name.startswith("float32")],
    "rows": SIZES,
    "weight": (None, "some are zero"),
}


def is_possible(case):
    return "missing" not in case["family"] or case["input"] == "array"


@pytest.mark.parametrize("case", cases(OF_FAMILIES, allowed=is_possible))
def test_mixture_of_a_family(case, tmp_path):
    rng = np.random.default_rng(4)
    y = FAMILIES[case["family"]](rng, rng.integers(2, size=(case["rows"], 1)))
    X, weight = INPUTS[case["input"]](y), weights_of(case, len(y))
    options = {"random_state": 0, "max_iter": PASSES}
    options |= GIVEN_FAMILIES.get(case["family"], {"family": case["family"]})
    start = {} if case["start"] == "default" else {"init_params": case["start"]}
    if case["start"] == "labels":
        start = {"init_params": np.random.default_rng(1).integers(2, size=len(y))}
    fitted = swiftem.Mixture(2, method=case["method"], device=device_of(X), **options, **as_given(start, X))
    fitted.fit(X, **as_given({"sample_weight": weight}, X))
    method = "em" if case["method"] == "auto" else case["method"]
    expected = swiftem.Mixture(2, method=method, device="cpu", **options, **start)
    expected.fit(y, sample_weight=weight)
    close = {"abs": 8 * TOL} if case["start"] == "default" else {"rel": 1e-8}
    assert fitted.log_likelihood_ == pytest.approx(expected.log_likelihood_, **close)
    check_calls(fitted, X, y, tmp_path / "a.model", rtol=1e-8)
    assert np.isfinite(fitted.partial_fit(X[:200]).lower_bound_)


def texts(n, n_words=60, n_topics=4):
    """Return counts of words (n, n_words), of which the first row is an empty document."""
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    shares = rng.dirichlet(np.full(n_topics, 0.3), size=n) @ topics
    found = rng.multinomial(rng.poisson(40, size=n), shares).astype(float)
    found[0] = 0.0
    return found


def sparse_tensor(X):
    found = torch.as_tensor(X).to_sparse()
    return found.cuda() if HAS_GPU else found


def read_only(values):
    values.flags.writeable = False
    return values


OF_TEXTS = {"sparse": sp.csr_array, "array": np.array, "tensor": on_device, "sparse tensor": sparse_tensor}
ALPHA = {
    "a number": 0.1,
    "a read-only array": read_only(np.full(4, 0.1)),
    "a tensor": on_device(np.full(4, 0.1)),
    "learn": "learn",
}
TEXTS = {
    "method": ("auto", "em", "sem", "sem-vr"),
    "init": ("auto", "random", "k-means", "given"),
    "input": OF_TEXTS,
    "alpha": ALPHA,
    "tol": (1e-4, 1e-7),
    "documents": (200, 1200, 20_000) if HAS_GPU else (200, 600),
    "weight": (None, "some are zero"),
}


def is_learnable(case):
    return case["alpha"] != "learn" or case["method"] in ("auto", "em")


@pytest.mark.parametrize("case", cases(TEXTS, allowed=is_learnable))
def test_topics(case, tmp_path):
    X = texts(case["documents"])
    given, weight, alpha = OF_TEXTS[case["input"]](X), weights_of(case, len(X)), ALPHA[case["alpha"]]
    init = np.random.default_rng(6).random((4, X.shape[1])) if case["init"] == "given" else case["init"]
    options = {
        "method": case["method"],
        "init": init,
        "random_state": 0,
        "max_iter": PASSES,
        "tol": case["tol"],
    }
    fitted = swiftem.PLSA(4, alpha=alpha, device=ON, **options)
    fitted.fit(given, sample_weight=None if weight is None else on_device(weight))
    expected = swiftem.PLSA(4, alpha=in_numpy(alpha), device="cpu", **options).fit(X, sample_weight=weight)
    if case["method"] != "auto" or len(X) < 500:  # otherwise there is no first reading by sem
        check(fitted.components_, expected.components_, rtol=1e-3)
        assert fitted.perplexity(given) == pytest.approx(expected.perplexity(X), rel=1e-3)
    expected = on_cpu(fitted)
    assert fitted.perplexity(given) == pytest.approx(expected.perplexity(X), rel=1e-3)
    assert fitted.score(given) == pytest.approx(expected.score(X), rel=1e-3)
    shares = fitted.transform(given)
    check_place(shares, given if isinstance(given, torch.Tensor) else X)
    check(shares, expected.transform(X), rtol=1e-3)
    fitted.save(tmp_path / "a.model")
    check(swiftem.PLSA.load(tmp_path / "a.model").transform(X), expected.transform(X), rtol=1e-6)
    assert fitted.topics_over(on_device(np.arange(len(X)) % 3), given).shares.shape == (3, 4)
    check(fitted.partial_fit(given).components_, expected.partial_fit(X).components_, rtol=1e-6)


RUNS = {
    "method": METHODS,
    "kind": KINDS,
    "input": INPUTS,
    "order": ("iid", "shuffled", "weighted"),
    "batch": (1, 16),
    "weight": (None, "some are zero"),
}


@pytest.mark.parametrize("case", cases(RUNS))
def test_run(case):
    y, kind = clusters(600, spread=4.0), METHODS[case["method"]]
    X, weight = INPUTS[case["input"]](y), weights_of(case, len(y))
    is_single = case["input"].startswith("float32")
    y = y.astype(np.float32) if is_single else y
    method = kind() if kind is methods.EM else kind(batch_size=case["batch"], order=case["order"])
    model = models.GaussianMixtureModel(3, covariance=case["kind"], reg_covar=1e-6)
    theta = model.bind(swiftem.data.ArraySource(y, weight)).initial_theta(np.random.default_rng(1))
    options = {"n_iter": 12, "seed": 0, "theta0": theta, "record_every": 6}
    given = as_given({"sample_weight": weight}, X)
    found = swiftem.run(model, X, method, device=device_of(X), **given, **options)
    expected = swiftem.run(model, y, method, device="cpu", sample_weight=weight, **options)
    check(found.s, expected.s, rtol=1e-5 if is_single else 1e-9)
    assert (found.passes, found.rejected) == (expected.passes, expected.rejected)
    assert len(found.path) == len(expected.path)
    wanted = {"responsibilities": True, "labels": True}
    here = swiftem.posterior(model, X, expected.theta, device=ON, **wanted)
    for one, other in zip(here, swiftem.posterior(model, y, expected.theta, **wanted), strict=True):
        assert type(one) is np.ndarray
        check(one, other, rtol=1e-4 if is_single else 1e-9)


FULL = models.GaussianMixtureModel(2, covariance="full", reg_covar=1e-6)


def test_a_run_on_a_device_is_resumed(tmp_path):
    y, method = on_device(clusters(600, spread=4.0)), methods.FastIncrementalEM(step_size=0.1, batch_size=16)
    options = {"seed": 0, "device": ON}
    whole = swiftem.run(FULL, y, method, n_iter=40, **options)
    options |= {"checkpoint": tmp_path / "run", "checkpoint_every": 10}
    swiftem.run(FULL, y, method, n_iter=20, **options)
    resumed = swiftem.run(FULL, y, method, n_iter=40, resume=True, **options)
    np.testing.assert_array_equal(resumed.s, whole.s)


WIDE = 70_000 if HAS_GPU else 1200
WHOLE = [(WIDE, 20, 3, "full", "race"), (WIDE, 20, 3, "full", "k-means++")]


@pytest.mark.parametrize(
    ("n", "d", "count", "kind", "start"), WHOLE + HAS_GPU * [(200_000, 16, 40, "diag", "race")]
)
def test_whole_fits(n, d, count, kind, start):
    """On a GPU, so many float32 columns or components have kernels of their own."""
    X = clusters(n, d, count, spread=4.0, dtype=np.float32)
    options = {"covariance_type": kind, "init_params": start, "random_state": 0}
    fitted = swiftem.GaussianMixture(count, device=ON, **options).fit(on_device(X))
    expected = swiftem.GaussianMixture(count, **options).fit(X)
    assert fitted.log_likelihood_ == pytest.approx(expected.log_likelihood_, abs=8 * TOL)


ROWS, COUNTS, ONES = clusters(600, spread=4.0), texts(200), np.ones(600)
PLAIN = {"random_state": 0, "device": ON, "max_iter": 3}


def fitted_means(X, sample_weight=None, **start):
    return swiftem.GaussianMixture(3, **PLAIN, **start).fit(X, sample_weight=sample_weight).means_


def given_rates(there):
    params = {"rates": there(np.array([[1.0], [5.0]]))}
    mixture = swiftem.Mixture(2, family="poisson", weights_init=there(np.full(2, 0.5)), params_init=params)
    return mixture.set_params(**PLAIN).fit(np.arange(100.0)[:, None] % 9).params_["rates"]


def given_topics(there):
    priors = {"alpha": there(np.full(4, 0.1)), "beta": there(np.full(60, 0.1))}
    return swiftem.PLSA(4, init=there(0.1 + COUNTS[1:5]), **priors, **PLAIN).fit(COUNTS).components_


def regression(there):
    X, y = there(ROWS[:, :2]), there(ROWS[:, 2])
    model = swiftem.RegressionMixture(2, random_state=0).fit(X, y, sample_weight=there(ONES))
    assert np.isfinite(model.score(X, y))
    assert model.predict_proba(X, y).shape == (len(ROWS), 2)
    return model.partial_fit(X, y).predict(X)


def selected(there, **options):
    return swiftem.select(there(np.abs(ROWS).round()), [1, 2], random_state=0, **options).best.weights_


def given_run(there):
    theta = FULL.theta(
        weights=there(np.full(2, 0.5)), means=there(ROWS[:2]), covariances=there(np.array([np.eye(3)] * 2))
    )
    s = there(swiftem.run(FULL, ROWS, methods.EM(), n_iter=1, theta0=theta).s)
    draws = there(np.arange(15).reshape(3, 5))
    return swiftem.run(
        FULL, ROWS, methods.OnlineEM(0.1, 5), n_iter=3, device=ON, draws=draws, theta0=theta, s0=s
    ).s


ARGUMENTS = {
    "sample_weight": lambda there: fitted_means(ROWS, there(1.0 + np.arange(600) % 3)),
    "weights_init, means_init, precisions_init": lambda there: fitted_means(
        ROWS,
        covariance_type="tied",
        weights_init=there(np.full(3, 1 / 3)),
        means_init=there(ROWS[:3]),
        precisions_init=there(precisions("tied", 3)),
    ),
    "labels of all rows, some of weight zero": lambda there: fitted_means(
        there(ROWS), np.arange(600.0) % 2, init_params=there(np.arange(600) % 3)
    ),
    "responsibilities": lambda there: fitted_means(
        ROWS, init_params=there(np.random.default_rng(0).random((600, 3)))
    ),
    "labels of a function": lambda there: fitted_means(
        ROWS, init_params=lambda X, count, rng: there(np.arange(len(X)) % count)
    ),
    "weights_init, params_init": given_rates,
    "alpha, beta, init": given_topics,
    "X of select": lambda there: selected(there, covariance_types="diag"),
    "X of select, a family": lambda there: selected(there, family="poisson"),
    "X and y of select": lambda there: selected(there, y=there(ROWS[:, 2]), sample_weight=there(ONES)),
    "X and y of RegressionMixture": regression,
    "theta0, s0, draws": given_run,
    "rows of ArraySource": lambda there: swiftem.data.ArraySource(there(ROWS), there(ONES)).y,
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_may_be_on_the_device(name):
    found, expected = (ARGUMENTS[name](there) for there in (on_device, np.asarray))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_start_without_a_pass(kind):
    start = STARTS["all"](ROWS, kind)
    model = swiftem.GaussianMixture(3, covariance_type=kind, device=ON, max_iter=0, **start).fit(ROWS)
    assert np.isfinite(in_numpy(model.sample(5)[0])).all()


@pytest.mark.parametrize("device", [ON, "cpu"])
def test_tensors_of_other_types(device):
    """Rows of bfloat16 are numbers as others; sparse ones are not rows."""
    options = {"random_state": 0, "init_params": "kmeans", "device": device}
    rows = torch.as_tensor(ROWS).bfloat16()
    expected = swiftem.GaussianMixture(3, random_state=0, init_params="kmeans").fit(rows.double().numpy())
    found = swiftem.GaussianMixture(3, **options).fit(on_device(rows))
    assert found.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-4)
    with pytest.raises(TypeError, match=r"tensors must be dense here, got torch.sparse_coo: .*to_dense"):
        swiftem.GaussianMixture(3, **options).fit(sparse_tensor(ROWS))


def never(*given):
    raise AssertionError("the fit has begun")


def holes(kind, there=np.asarray, columns=3):
    model = swiftem.GaussianMixture(2, covariance_type=kind, missing="ignore", device=ON)
    return model.fit(there(with_holes(clusters(300, columns))))


def given_mixture():
    return swiftem.GaussianMixture.from_parameters(
        [0.5, 0.5], np.eye(2, 3), np.ones((2, 3)), covariance_type="diag", missing="ignore", device=ON
    )


def run_on_device(model, data):
    return swiftem.run(model, data, methods.EM(), n_iter=1, device=ON)


def family(name, rows):
    return swiftem.Mixture(2, family=name, device=ON).fit(rows)


HOLES = "device must be 'cpu' if cells are missing"
REFUSED = {
    **{f"missing cells, {kind}": (lambda kind=kind: holes(kind), HOLES) for kind in KINDS},
    "missing cells of one column": (lambda: holes("diag", columns=1), HOLES),
    "missing cells of a tensor": (
        lambda: holes("diag", on_device),
        "data must be finite, got NaN or infinity in row 0: .* device='cpu'",
    ),
    "missing cells of new rows": (lambda: given_mixture().predict(with_holes(clusters(300))), HOLES),
    "a run with missing cells": (
        lambda: run_on_device(
            models.GaussianMixtureModel(2, covariance="diag", missing="ignore"), with_holes(clusters(300))
        ),
        HOLES,
    ),
    "categories": (lambda: family("categorical", np.arange(300)[:, None] % 3), "'cpu' for categorical"),
    "student-t": (lambda: family("student-t", clusters(300)), "'cpu' for student-t"),
    "an automatic family": (
        lambda: family("auto", on_device(clusters(300))),
        "family must be given for data whose columns have no types",
    ),
    "unit variances": (
        lambda: run_on_device(models.GaussianMixtureModel(2), clusters(300)),
        "device must be 'cpu' for this model",
    ),
    "a run of topics": (
        lambda: run_on_device(models.PLSAModel(2), sp.csr_array(COUNTS)),
        "device must be 'cpu' for this model",
    ),
    "topics by tokens": (
        lambda: swiftem.PLSA(2, method="iem", device=ON).fit(COUNTS),
        "method must be 'auto', 'em', 'sem' or 'sem-vr' for a GPU, got 'iem': it draws tokens",
    ),
    "topics of files": (
        lambda: swiftem.PLSA(2, device=ON).fit("counts.npz"),
        "device must be 'cpu' for documents read in blocks",
    ),
    "impute": (
        lambda: given_mixture().impute(on_device(clusters(5))),
        "X must be an array, a table or a file for impute",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_device_cannot_do_is_refused_before_any_work(name, monkeypatch):
    call, sentence = REFUSED[name]
    monkeypatch.setattr("swiftem.mixture.estimator.find_starts", never)
    with pytest.raises((ValueError, TypeError), match=sentence) as raised:
        call()
    assert "\n" not in str(raised.value)


PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


def test_what_the_page_shows_runs(monkeypatch):
    """As it is on a GPU; else on PyTorch's CPU with fewer rows."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert blocks
    if not HAS_GPU:
        real = torch.randn
        monkeypatch.setattr(torch, "randn", lambda n, d, device: on_device(real(min(n, 600), d)))
        blocks = [block.replace('"cuda"', f'"{ON}"') for block in blocks]
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert isinstance(names["labels"], torch.Tensor)
    assert names["shares"].shape == (100, 10)
