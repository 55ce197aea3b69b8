"""``swiftem score``: the estimator's numbers, with and without weights."""

import re

import pytest


def values_of(text):
    return {name: float(value) for name, value in re.findall(r"^(\S.*?)  +(\S+)$", text, flags=re.M)}


def test_the_estimator_s_numbers(flowers, model, clusters, call):
    path, mixture = model
    X = clusters[0]
    stdout, stderr = call("score", path, flowers)
    assert stderr == ""
    assert values_of(stdout) == {
        "rows": 120,
        "mean log-likelihood": pytest.approx(mixture.score(X), abs=5e-7),
        "BIC": pytest.approx(mixture.bic(X), abs=5e-3),
        "AIC": pytest.approx(mixture.aic(X), abs=5e-3),
        "ICL": pytest.approx(mixture.icl(X), abs=5e-3),
    }


@pytest.mark.parametrize("weights", ["w", "3"])
def test_weights(weights, flowers, model, clusters, call):
    path, mixture = model
    X, weight = clusters
    stdout, _ = call("score", path, flowers, "--weights", weights)
    found = values_of(stdout)
    assert found["rows"] == 120
    assert found["sum of weights"] == weight.sum()
    assert found["mean log-likelihood"] == pytest.approx(mixture.score(X, sample_weight=weight), abs=5e-7)
    for name, criterion in (("BIC", mixture.bic), ("AIC", mixture.aic), ("ICL", mixture.icl)):
        assert found[name] == pytest.approx(criterion(X, sample_weight=weight), abs=5e-3)


def test_what_is_refused(flowers, model, invoke):
    path = model[0]
    for arguments, expected, words in (
        ((path, flowers, "--weights", "kind"), 1, "got 'red' in column 'kind', row 0"),
        ((path, flowers, "--weights", "q"), 2, "Invalid value for '--weights'"),
    ):
        assert words in invoke("score", *arguments, code=expected)
