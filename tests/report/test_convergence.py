"""The figure of squared error by epoch, and the sentences that go with it."""

import builtins
import sys
from itertools import pairwise

import pytest

from swiftem.methods import METHODS
from swiftem.report.conclusion import conclusion, headline
from swiftem.report.convergence import plot_convergence, spread
from swiftem.report.method_names import STYLES, style_of

FIVE = {
    "em": [0.5, 1e-2, 8e-3],
    "sem": [0.5, 2e-2, 2e-2],
    "iem": [0.5, 1e-2, 7e-3],
    "sem-vr": [0.5, 1e-4, 1e-6],
    "fiem": [0.5, 2e-4, 3e-6],
}


def test_the_file_is_an_image_with_something_on_it(tmp_path):
    image = pytest.importorskip("PIL.Image")
    file = plot_convergence(FIVE, tmp_path / "five.png", title="Five methods", subtitle="n = 10")
    with image.open(file) as picture:
        picture.load()
        assert picture.format == "PNG"
        assert min(picture.size) >= 600
        colours = {f"#{r:02X}{g:02X}{b:02X}" for r, g, b in set(picture.convert("RGB").get_flattened_data())}
    assert {style.colour for style in STYLES.values()} <= colours


def test_pyplot_is_left_alone(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    plot_convergence(FIVE, tmp_path / "five.png", title="Five methods")
    assert ("matplotlib.pyplot" in sys.modules) == before


@pytest.mark.parametrize(
    "errors",
    [
        {"em": [0.5, 0.0, 0.0], "mine": [0.5, 1e-3]},
        {"em": [0.5]},
        {"em": [0.5, 0.1], "fiem": []},
        {"em": [1e-30, 1e-31], "sem": [1e20, 1e19]},
    ],
    ids=["zero and unequal lengths", "one point", "empty series", "huge range"],
)
def test_odd_series_are_drawn(tmp_path, errors):
    assert plot_convergence(errors, tmp_path / "odd.png", title="Odd").stat().st_size > 1000


def test_nothing_to_draw_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one value"):
        plot_convergence({"em": []}, tmp_path / "none.png", title="None")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    real_import = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(ImportError, match=r"pip install 'swiftem\[plot\]'"):
        plot_convergence(FIVE, tmp_path / "five.png", title="Five methods")


def test_every_method_has_its_own_style():
    assert set(STYLES) == set(METHODS)
    assert len({style.colour for style in STYLES.values()}) == len(METHODS)
    assert style_of("mine").colour not in {style.colour for style in STYLES.values()}


def test_labels_keep_their_order_and_distance():
    heights = {"a": 0.95, "b": 0.5, "c": 0.52, "d": 0.53, "e": 0.1}
    moved = spread(heights, 0.05)
    assert sorted(moved, key=moved.get) == sorted(heights, key=heights.get)
    places = sorted(moved.values())
    assert min(upper - lower for lower, upper in pairwise(places)) >= 0.05 - 1e-12
    assert (moved["a"], moved["e"]) == (0.95, 0.1)


def test_conclusion_compares_the_worst_reduced_with_the_best_other():
    sentence = conclusion(FIVE)
    assert sentence.startswith(
        "After 2 epochs the squared error is 1e-06 (sEM-VR), 3e-06 (fiEM), 7e-03 (iEM)"
    )
    assert sentence.endswith("with variance reduction at least 2,000 times smaller than without.")
    assert headline(FIVE) == "After 2 epochs variance reduction makes the error 2,000 times smaller"


def test_conclusion_does_not_claim_what_is_not_so():
    errors = {"em": [0.5, 1e-3], "sem": [0.5, 1e-2], "fiem": [0.5, 5e-2]}
    assert conclusion(errors).endswith(": EM is closest.")
    assert headline(errors) == "After 1 epoch EM is closest"
    del errors["fiem"]
    assert conclusion(errors) == "After 1 epoch the squared error is 1e-03 (EM), 1e-02 (sEM): EM is closest."


def test_conclusion_of_an_interrupted_run_is_fair():
    """It compares at the last epoch that all have, and leaves out a method that had none."""
    errors = {"em": [0.5, 1e-2, 1e-9], "fiem": [0.5, 1e-4], "sem-vr": [0.5]}
    assert conclusion(errors).startswith("After 1 epoch the squared error is 1e-04 (fiEM), 1e-02 (EM): ")


def test_conclusion_of_exact_zero():
    assert "infinitely many times smaller" in conclusion({"em": [0.5, 1e-3], "fiem": [0.5, 0.0]})
