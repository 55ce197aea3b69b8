"""Figures as files: PNG and SVG, the same for the same picture; labels that keep apart; no matplotlib."""

import sys

import numpy as np
import pytest

from paper.reports.figures import label_ends, panel_svg, plain_axes, save_picture, spread
from paper.reports.section import Panel, Picture


def line(x):
    def draw(axes):
        plain_axes(axes, x="x", y="y")
        axes.plot([0, 1], [0, x], color="#0072B2")

    return draw


def picture(count=4):
    panels = [Panel(f"panel {number}", line(number + 1)) for number in range(count)]
    return Picture("odd", "Lines", "Lines that rise", panels)


def test_png_and_svg_are_written(tmp_path):
    image = pytest.importorskip("PIL.Image")
    save_picture(picture(), tmp_path)
    png, svg = tmp_path / "odd.png", tmp_path / "odd.svg"
    assert {png.name, svg.name} == {"odd.png", "odd.svg"} == {file.name for file in tmp_path.iterdir()}
    with image.open(png) as opened:
        opened.load()
        assert opened.format == "PNG"
        colours = {f"#{r:02X}{g:02X}{b:02X}" for r, g, b in set(opened.convert("RGB").get_flattened_data())}
    assert "#0072B2" in colours
    assert svg.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("count", [1, 4])
def test_the_same_picture_is_the_same_file(tmp_path, count):
    contents = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        save_picture(picture(count), folder)
        contents.append([file.read_bytes() for file in sorted(folder.iterdir())])
    assert contents[0] == contents[1]
    panel = picture().panels[0]
    assert panel_svg(panel) == panel_svg(panel)


def test_pyplot_is_left_alone(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    save_picture(picture(1), tmp_path)
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_svg_needs_no_fonts_and_nothing_from_the_network():
    svg = panel_svg(picture().panels[0]).decode()
    assert "<text" not in svg
    assert "@import" not in svg
    assert 'href="http' not in svg


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1e-20, 1.0, {"1", "10⁻¹⁵"}),
        (3.0, 15.0, {"5", "10"}),
        (800.0, 130_000.0, {"1,000", "10,000", "100,000"}),
        (0.0011, 0.012, {"0.002", "0.005", "0.01"}),
        (900.0, 40_000.0, {"1,000", "2,000", "5,000", "10,000", "20,000"}),
    ],
)
def test_a_logarithmic_axis_has_labels_however_short(low, high, expected):
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    plain_axes(axes, x="x", y="y", log="y")
    axes.plot([0, 1], [low, high])
    figure.draw_without_rendering()
    inside = axes.get_ylim()
    labels = {
        text.get_text()
        for minor in (False, True)
        for place, text in zip(axes.get_yticks(minor=minor), axes.get_yticklabels(minor=minor), strict=True)
        if inside[0] <= place <= inside[1]
    }
    assert expected <= labels
    assert len(labels - {""}) <= 9


def test_labels_stand_beside_the_ends_in_the_methods_colours():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.set_ylim(0, 10)
    ends = [(2.0, "EM", "#000000"), (8.0, "fiEM", "#D55E00"), (8.1, "sEM-VR", "#0072B2")]
    label_ends(axes, [*ends, (np.nan, "nowhere", "#009E73")])
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    assert heights["EM"] == pytest.approx(0.2)
    assert heights["sEM-VR"] - heights["fiEM"] > 0.06
    assert {text.get_color() for text in axes.texts} == {"#000000", "#D55E00", "#0072B2"}


def test_labels_keep_their_order_and_distance():
    heights = np.array([0.95, 0.5, 0.52, 0.53, 0.1])
    moved = spread(heights, 0.05)
    assert (np.argsort(moved) == np.argsort(heights)).all()
    assert np.diff(np.sort(moved)).min() >= 0.05 - 1e-12
    assert (moved[0], moved[4]) == (0.95, 0.1)


def test_groups_that_collide_after_they_moved_are_one():
    moved = spread(np.linspace(0.4, 0.6, 6), 0.1)
    np.testing.assert_allclose(np.diff(moved), 0.1)
    assert moved.mean() == pytest.approx(0.5)
    assert len(spread(np.array([]), 0.1)) == 0
