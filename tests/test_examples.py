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


SLOW = ("online_mixture", "convergence_by_method", "model_choice")
GALLERY = [
    pytest.param(path.stem, marks=pytest.mark.slow if path.stem in SLOW else [])
    for path in sorted((EXAMPLES / "gallery").glob("*.py"))
]


@pytest.mark.parametrize("name", GALLERY)
def test_gallery_scripts_draw_a_picture(name, monkeypatch, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    monkeypatch.syspath_prepend(EXAMPLES / "gallery")
    file = importlib.import_module(name).main(tmp_path / "pictures")
    assert file == tmp_path / "pictures" / f"{name}.png"
    picture = image.imread(file)
    assert min(picture.shape[:2]) >= 300
    assert picture[..., :3].std() > 0.03, "something is drawn"


@pytest.mark.parametrize("path", sorted((EXAMPLES / "gallery").glob("*.py")), ids=lambda path: path.stem)
def test_gallery_scripts_are_short_and_say_how_to_run_them(path):
    text = path.read_text()
    assert len(text.splitlines()) < 60
    assert f"Run it: python examples/gallery/{path.name} [FOLDER]" in text
