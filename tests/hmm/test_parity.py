"""Ten iterations of EM against hmmlearn 0.3.3: its stored values, and hmmlearn itself where it is installed.

``python tests/hmm/test_parity.py`` writes the values, with hmmlearn on the path.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import swiftem

STORED = Path(__file__).with_name("hmmlearn_values.npz")
K, N_ITER, LENGTHS = 3, 10, np.array([50, 30, 1, 119])
NAMES = ("full", "diag", "spherical", "tied", "poisson", "categorical")


def problem_of(name):
    """Return rows, start probabilities, transitions, and parameters by our names."""
    rng = np.random.default_rng(0)
    n = LENGTHS.sum()
    states = np.repeat(rng.integers(0, K, size=n // 5), 5)
    start, transitions = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), size=K)
    if name == "poisson":
        return rng.poisson(1.0 + 4.0 * states)[:, None], start, transitions, {"rates": [[1.0], [3.0], [8.0]]}
    if name == "categorical":
        y = (states + rng.integers(0, 2, size=n)) % 4
        return y[:, None], start, transitions, {"probabilities": rng.dirichlet(np.ones(4), size=(K, 1))}
    y = rng.normal(2.0 * states[:, None], 1.0, size=(n, 2))
    shapes = {"full": np.tile(np.eye(2), (K, 1, 1)), "tied": np.eye(2), "diag": np.ones((K, 2))}
    covariances = shapes.get(name, np.ones(K))
    return y, start, transitions, {"means": y[:: n // K][:K].copy(), "covariances": covariances}


def ours(name):
    y, start, transitions, params = problem_of(name)
    kind = (
        {"covariance_type": name, "reg_covar": 0.0}
        if "means" in params
        else {"family": name, "smoothing": 0.0}
    )
    model = swiftem.HiddenMarkovModel(
        K,
        **kind,
        startprob_init=start,
        transmat_init=transitions,
        params_init=params,
        max_iter=N_ITER,
        tol=0.0,
    )
    with pytest.warns(ConvergenceWarning):
        model.fit(y, lengths=LENGTHS)
    fitted = model.emissions_
    found = [fitted.means_, fitted.covariances_] if "means" in params else list(fitted.params_.values())
    found = [
        np.asarray(part).reshape(np.shape(given)) for part, given in zip(found, params.values(), strict=True)
    ]
    score = model.score(y, lengths=LENGTHS) * len(y)
    return [score, model.startprob_, model.transmat_, *found], model, y


def theirs(name):
    from hmmlearn import hmm

    y, start, transitions, params = problem_of(name)
    common = {"n_iter": N_ITER, "tol": -np.inf, "init_params": ""}
    if name == "poisson":
        model = hmm.PoissonHMM(K, lambdas_prior=0.0, lambdas_weight=0.0, **common)
        model.lambdas_ = np.array(params["rates"])
    elif name == "categorical":
        model = hmm.CategoricalHMM(K, **common)
        model.n_features, model.emissionprob_ = 4, params["probabilities"][:, 0]
    else:
        model = hmm.GaussianHMM(K, name, min_covar=0.0, covars_prior=0.0, covars_weight=0.0, **common)
        model.n_features, model.means_, model.covars_ = 2, params["means"], params["covariances"]
    model.startprob_, model.transmat_ = start, transitions
    model.fit(y, LENGTHS)
    if name == "poisson":
        found = [model.lambdas_]
    elif name == "categorical":
        found = [model.emissionprob_[:, None]]
    else:
        covariances = (
            model._covars_[:, 0] if model._covars_.shape == (K, 2) and name == "spherical" else model._covars_
        )
        found = [model.means_, covariances]
    return [model.score(y, LENGTHS), model.startprob_, model.transmat_, *found], model, y


def check(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_as_the_stored_values_of_hmmlearn(name):
    with np.load(STORED) as stored:
        expected = [stored[f"{name}_{place}"] for place in range(len(ours(name)[0]))]
    check(ours(name)[0], expected)


@pytest.mark.skipif(not importlib.util.find_spec("hmmlearn"), reason="hmmlearn is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_as_hmmlearn(name):
    found, model, y = ours(name)
    expected, other, _ = theirs(name)
    check(found, expected)
    np.testing.assert_allclose(model.predict_proba(y, LENGTHS), other.predict_proba(y, LENGTHS), atol=1e-8)
    value, states = model.decode(y, LENGTHS)
    expected, their_states = other.decode(y, LENGTHS)
    assert value == pytest.approx(expected, rel=1e-8)
    assert (states == their_states).all()


if __name__ == "__main__":
    np.savez(
        STORED, **{f"{name}_{place}": part for name in NAMES for place, part in enumerate(theirs(name)[0])}
    )
