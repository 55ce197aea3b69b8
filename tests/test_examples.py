"""The examples run and say what they promise."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import swiftem
from swiftem import methods

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


def test_compiled_mixture_runs(load, capsys):
    load("compiled_mixture").main()
    fitted, timed = capsys.readouterr().out.splitlines()
    first, second = map(float, re.search(r"\[ *([\d.]+) +([\d.]+)\]", fitted).groups())
    assert 0.5 < first < 2
    assert 15 < second < 25
    compiled, python = map(float, re.findall(r"([\d.]+) µs", timed))
    assert compiled > 0
    assert python > 0


def test_compiled_mixture_is_the_one_of_the_other_example(load):
    mine, other = load("compiled_mixture").MODEL, load("exponential_mixture").ExponentialMixture()
    y = np.random.default_rng(0).exponential(size=100)
    results = [
        swiftem.run(model, y, methods.FastIncrementalEM(), n_iter=200, seed=0) for model in (mine, other)
    ]
    np.testing.assert_allclose(results[0].s, results[1].s, rtol=1e-9)
    objectives = [swiftem.objective(m, y, r.theta) for m, r in zip((mine, other), results, strict=True)]
    np.testing.assert_allclose(*objectives, rtol=1e-9)
