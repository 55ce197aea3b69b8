"""Figures: files, the same for the same picture; lines, bands and labels; curves of runs; numbers."""

import sys
from math import inf, nan

import numpy as np
import pytest

from paper.experiments.gmm_precision import PrecisionRow
from paper.report.figures import Line, Panel, Picture, label_ends, short, spread
from paper.report.runs import AXES, Runs, curve_panels
from swiftem.show.numbers import style_of


def panel(x, log=""):
    line = Line(style_of("sem-vr"), np.array([0.0, 1.0]), np.array([[0.0, x]]))
    return Panel(f"panel {x}", ("x", "y"), [line], log)


def picture(count=4):
    return Picture("odd", "Lines", [panel(number + 1) for number in range(count)])


def drawn(panel):
    """Return axes on which a panel was drawn."""
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    panel.draw(axes)
    return axes


def test_png_and_svg_are_written(tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture().save(tmp_path)
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
        picture(count).save(folder)
        contents.append([file.read_bytes() for file in sorted(folder.iterdir())])
    assert contents[0] == contents[1]
    assert panel(1.0).svg() == panel(1.0).svg()


def test_pyplot_is_left_alone(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    picture(1).save(tmp_path)
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_svg_needs_no_fonts_and_nothing_from_the_network():
    svg = panel(1.0).svg().decode()
    assert "<text" not in svg
    assert "@import" not in svg
    assert 'href="http' not in svg


@pytest.mark.parametrize(("low", "high", "least"), [(1e-20, 1.0, 3), (3.0, 15.0, 2), (800.0, 130_000.0, 3)])
def test_a_logarithmic_axis_has_labels_however_short(low, high, least):
    line = Line(style_of("em"), np.array([0.0, 1.0]), np.array([[low, high]]))
    axes = drawn(Panel("short", ("x", "y"), [line], "y"))
    axes.figure.draw_without_rendering()
    bottom, top = axes.get_ylim()
    labels = {
        text.get_text()
        for minor in (False, True)
        for place, text in zip(axes.get_yticks(minor=minor), axes.get_yticklabels(minor=minor), strict=True)
        if bottom <= place <= top
    }
    assert len(labels - {""}) >= least


def test_labels_stand_beside_the_ends_in_the_methods_colours():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.set_ylim(0, 10)
    ends = [(2.0, "EM", "#000000"), (8.0, "fiEM", "#D55E00"), (8.1, "sEM-VR", "#0072B2")]
    label_ends(axes, ends)
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    assert heights["EM"] == pytest.approx(0.2)
    assert heights["sEM-VR"] - heights["fiEM"] > 0.06
    assert {text.get_color() for text in axes.texts} == {"#000000", "#D55E00", "#0072B2"}


def test_labels_stay_below_the_title():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    label_ends(axes, [(1.0, f"line {number}", "#000000") for number in range(5)])
    heights = [text.xy[1] for text in axes.texts]
    assert max(heights) == pytest.approx(1.0)
    assert np.diff(sorted(heights)).min() > 0.06


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


def points(method, run, values, cost=1.0):
    """Return the rows of a curve; an epoch takes ``cost`` passes and a tenth of that in seconds."""
    return [
        PrecisionRow(method, run, epoch, 1 + cost * epoch, 0.1 * cost * epoch, value)
        for epoch, value in enumerate(values)
    ]


def test_values_medians_and_means():
    runs = Runs(points("em", 0, [5.0, 3.0, 2.0]) + points("em", 1, [6.0, 4.0, 1.0]), "epoch")
    assert (runs.methods, runs.places, runs.span) == (["em"], [0, 1, 2], "0 to 2")
    np.testing.assert_array_equal(runs.values("em", "squared_error"), [[5.0, 3.0, 2.0], [6.0, 4.0, 1.0]])
    np.testing.assert_array_equal(runs.medians("em", "passes"), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(runs.means("em", "squared_error"), [5.5, 3.5, 1.5])


def test_a_run_without_all_methods_is_left_out():
    rows = [p for run in (0, 1) for p in points("em", run, [5.0, 3.0 + run])]
    rows += points("fiem", 0, [5.0, 1.0])
    runs = Runs(rows, "epoch")
    np.testing.assert_array_equal(runs.values("em", "squared_error"), [[5.0, 3.0]])
    np.testing.assert_array_equal(runs.values("fiem", "squared_error"), [[5.0, 1.0]])


def test_a_first_run_that_is_not_complete_is_all_there_is():
    assert Runs(points("em", 0, [5.0, 3.0]) + points("sem", 0, [5.0, 4.0]), "epoch").methods == ["em", "sem"]


def test_a_place_without_a_value_is_nan():
    runs = Runs(points("em", 0, [5.0, 3.0, 2.0]) + points("fiem", 0, [5.0, 1.0]), "epoch")
    np.testing.assert_array_equal(runs.medians("fiem", "squared_error"), [5.0, 1.0, np.nan])


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [
        ([[0.5, 1e-3, 1e-20]], True),
        ([[0.5, 0.0, 0.0]], True),
        ([[0.5]], True),
        ([[0.5, 0.1], [0.4, 0.2]], True),
        ([[0.5, 0.5, 0.5]], True),
        ([[-5.0, -90.0, -4.0], [-5.1, -4.8, -4.1]], False),
        ([[-5.0]], False),
        ([[-5.0, -5.0]], False),
    ],
    ids=["small", "zero", "one point", "band", "flat", "dive", "one point, linear", "flat, linear"],
)
def test_odd_curves_are_drawn(values, logarithmic):
    """Warnings are errors here."""
    rows = [p for method in ("em", "mine") for run, v in enumerate(values) for p in points(method, run, v)]
    log = "y" if logarithmic else ""
    panels = curve_panels(Runs(rows, "epoch"), "squared_error", "value", log=log, text=str, suffix=", odd")
    assert [panel.title for panel in panels] == [
        "against epochs, odd",
        "against passes, odd",
        "against seconds, odd",
    ]
    for panel in panels:
        assert panel.svg().startswith(b"<?xml")


def test_lines_are_medians_and_bands_the_range_over_runs():
    rows = [p for run, end in enumerate((1.0, 2.0, 9.0)) for p in points("em", run, [10.0, end])]
    epochs, passes, seconds = curve_panels(Runs(rows, "epoch"), "squared_error", "value", log="", text=str)
    axes = drawn(epochs)
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xydata(), [[0, 10.0], [1, 2.0]])
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert {tuple(corner) for corner in corners} >= {(1.0, 1.0), (1.0, 9.0)}
    assert [text.get_text() for text in axes.texts] == ["EM  2.0"]
    assert [text.get_text() for text in drawn(passes).texts] == ["EM"]
    assert axes.get_xlabel() == AXES["epoch"][1]
    assert drawn(seconds).get_xlabel() == AXES["seconds"][1]


def test_a_dive_in_the_first_epochs_does_not_flatten_the_rest():
    runs = Runs(points("em", 0, [-5.0, -90.0, -4.0]), "epoch")
    panel, *_ = curve_panels(runs, "squared_error", "v", log="", text=str)
    assert -6 < drawn(panel).get_ylim()[0] < -5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1"), (0.5, "0.5"), (0.015, "0.015"), (0.00996, "0.01"), (0.0099, "9.9·10⁻³"),
        (9.96e-5, "1.0·10⁻⁴"), (9.94e-5, "9.9·10⁻⁵"), (123.0, "120"), (9960.0, "1.0·10⁴"), (1234.0, "1,200"),
        (2e20, "2.0·10²⁰"), (5e-324, "4.9·10⁻³²⁴"), (nan, "none"), (inf, "none"),
    ],
)  # fmt: skip
def test_short(value, text):
    assert short(value) == text
