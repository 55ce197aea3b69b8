"""Curves: values at an epoch, a pass or a second, ragged ones after Ctrl-C, and their panels."""

import numpy as np
import pytest

from paper.experiments.gmm_precision import PrecisionRow
from paper.reports.curves import AXES, Curves, curve_panels
from paper.reports.figures import panel_svg


def points(method, run, values, cost=1.0):
    """Return the rows of a curve; an epoch takes ``cost`` passes and a tenth of that in seconds."""
    return [
        PrecisionRow(method, run, epoch, 1 + cost * epoch, 0.1 * cost * epoch, value)
        for epoch, value in enumerate(values)
    ]


def test_values_at_epochs_passes_and_seconds():
    curves = Curves(points("em", 0, [5.0, 3.0, 2.0]) + points("em", 1, [6.0, 4.0, 1.0]))
    assert curves.methods == ["em"]
    assert curves.last_epoch == 2
    np.testing.assert_array_equal(curves.at_epoch("em", 1), [3.0, 4.0])
    np.testing.assert_array_equal(curves.at("em", "passes", 2.0), [3.0, 4.0])
    np.testing.assert_array_equal(curves.at("em", "passes", 2.9), [3.0, 4.0])
    np.testing.assert_array_equal(curves.at("em", "passes", 99.0), [2.0, 1.0])
    np.testing.assert_array_equal(curves.at("em", "seconds", -1.0), [5.0, 6.0])  # the first if none
    assert curves.end("em", "passes") == 3.0
    assert curves.end("em", "seconds") == pytest.approx(0.2)


def test_runs_may_differ_in_seconds():
    rows = [p for run, last in ((0, 3.0), (1, 2.0)) for p in points("em", run, [5.0, last])]
    rows[1] = rows[1]._replace(seconds=0.3)
    np.testing.assert_array_equal(Curves(rows).at("em", "seconds", 0.2), [5.0, 2.0])


def test_a_run_without_all_methods_is_left_out():
    rows = [p for run in (0, 1) for p in points("em", run, [5.0, 3.0 + run])]
    rows += points("fiem", 0, [5.0, 1.0])
    curves = Curves(rows)
    np.testing.assert_array_equal(curves.at_epoch("em", 1), [3.0])
    np.testing.assert_array_equal(curves.at_epoch("fiem", 1), [1.0])


def test_a_first_run_that_is_not_complete_is_all_there_is():
    assert Curves(points("em", 0, [5.0, 3.0]) + points("sem", 0, [5.0, 4.0])).methods == ["em", "sem"]


def test_curves_end_where_the_shortest_does():
    curves = Curves(points("em", 0, [5.0, 3.0, 2.0]) + points("fiem", 0, [5.0, 1.0]))
    assert curves.last_epoch == 1
    assert curves.end("em", "passes") == 2.0


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
    panels = curve_panels(
        Curves(rows), value="value", log="y" if logarithmic else "", text=str, suffix=", odd"
    )
    assert [panel.title for panel in panels] == [
        "against epochs, odd",
        "against passes, odd",
        "against seconds, odd",
    ]
    for panel in panels:
        assert panel_svg(panel).startswith(b"<?xml")


class Axes:
    """Draws nothing, but has what was drawn."""

    def __init__(self):
        from matplotlib.figure import Figure

        self.axes = Figure().subplots()

    def draw(self, panel):
        panel.draw(self.axes)
        return self.axes


def test_lines_are_medians_and_bands_the_range_over_runs():
    rows = [p for run, end in enumerate((1.0, 2.0, 9.0)) for p in points("em", run, [10.0, end])]
    epochs, passes, seconds = curve_panels(Curves(rows), value="value", log="", text=str)
    axes = Axes().draw(epochs)
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xydata(), [[0, 10.0], [1, 2.0]])
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert {tuple(corner) for corner in corners} >= {(1.0, 1.0), (1.0, 9.0)}
    assert [text.get_text() for text in axes.texts] == ["EM  2.0"]
    assert [text.get_text() for text in Axes().draw(passes).texts] == ["EM"]
    assert axes.get_xlabel() == AXES["epoch"]
    assert Axes().draw(seconds).get_xlabel() == AXES["seconds"]


def test_a_dive_in_the_first_epochs_does_not_flatten_the_rest():
    curves = Curves(points("em", 0, [-5.0, -90.0, -4.0]))
    panel, *_ = curve_panels(curves, value="v", log="", text=str)
    assert -6 < Axes().draw(panel).get_ylim()[0] < -5
