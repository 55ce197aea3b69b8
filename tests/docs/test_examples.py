"""The examples run and say what they promise."""

import importlib
import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

import swiftem
from swiftem import methods

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


def test_a_source_of_ones_own_runs(load, capsys):
    load("npz_source").main()
    assert "weights [0.39 0.61]" in capsys.readouterr().out


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


GALLERY = sorted((EXAMPLES / "gallery").glob("*.py"))
QUICK = {"anomalies", "counts", "density", "own_model"}
"""Examples that every `make test` runs; the others are slow tests, and `make docs` runs them all."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else pytest.mark.slow)
        for path in GALLERY
    ],
)
def test_gallery_scripts_draw_a_picture(path, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    pyplot.close("all")
    with warnings.catch_warnings():
        runpy.run_path(str(path))
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures, "a figure is left open for the gallery"
    for number, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{number}.png", dpi=60)
        picture = pyplot.imread(tmp_path / f"{number}.png")
        assert picture[..., :3].std() > 0.03, "something is drawn"
    pyplot.close("all")


def test_the_gallery_is_large_enough_and_ordered(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES.parent / "docs")
    order = importlib.import_module("gallery_order")
    assert len(GALLERY) >= 15
    assert set(order.ORDER) == {path.stem for path in GALLERY}
    assert order.by_place("mixture_ellipses.py") < order.by_place("topics.py") < order.by_place("unknown.py")


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery_scripts_are_short_and_begin_with_a_title(path):
    text = path.read_text()
    assert len(text.splitlines()) < 70
    title, line = text.splitlines()[1:3]
    assert line == "=" * len(title)
    assert "fetch_" not in text, "no download"
