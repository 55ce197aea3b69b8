"""Pictures of mixtures: what is on them, on whose axes, and without pyplot."""

import subprocess
import sys

import numpy as np
import pytest

import swiftem
from swiftem.fit.driver import Moment
from swiftem.fit.history import History, draw_history
from swiftem.mixture.plots import MOST_POINTS, draw_mixture
from swiftem.show.drawing import COLOURS, new_axes
from swiftem.show.numbers import STYLES

pytest.importorskip("matplotlib")

WEIGHTS = [0.3, 0.7]
MEANS = [[0.0, 0.0], [3.0, 1.0]]
COVARIANCES = [[[1.0, 0.5], [0.5, 1.0]], [[0.3, 0.0], [0.0, 2.0]]]


def moments(method, passes, rejected=0):
    return [Moment(p, 0.1 * p, 5.0 - 0.1 * p, 1.0, rejected, method) for p in passes]


def labels(axes):
    return axes.get_legend_handles_labels()[1]


def colours(axes):
    return [line.get_color() for line in axes.lines]


def ellipses(axes):
    return [patch for patch in axes.patches if type(patch).__name__ == "Ellipse"]


def own_axes(**options):
    from matplotlib.figure import Figure

    return Figure().subplots(**options)


def drawn(X=None, axes=None, means=MEANS, covariances=COVARIANCES):
    return draw_mixture(WEIGHTS, means, covariances, ["length", "width"], X, axes)


# --- the history of a fit ---


def test_the_curve_is_the_mean_log_likelihood_against_passes():
    axes = draw_history(moments("em", [1, 2, 3]))
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(line.get_ydata(), [-4.9, -4.8, -4.7])
    assert labels(axes) == ["EM"]
    assert line.get_color() == STYLES["em"].colour
    assert axes.get_xlabel() == "passes over the data"
    assert axes.get_xlim()[0] == 0


def test_a_stochastic_start_is_told_apart_and_shaded():
    axes = draw_history(moments("sem", [1]) + moments("sem-vr", [4, 7]))
    assert labels(axes) == ["sEM, at first", "sEM-VR"]
    assert colours(axes) == [STYLES["sem"].colour, STYLES["sem-vr"].colour]
    np.testing.assert_array_equal(axes.lines[1].get_xdata(), [1, 4, 7])  # goes on where sem ended
    (shade,) = axes.patches
    assert shade.get_extents().transformed(axes.transData.inverted()).x1 == pytest.approx(1)
    alone = draw_history(moments("sem", [1, 2]))
    assert labels(alone) == ["sEM"]
    assert not alone.patches


@pytest.mark.parametrize(
    ("rejected", "words"), [([0, 1, 1], "1 step rejected"), ([2, 2, 5], "5 steps rejected")]
)
def test_rejected_steps_are_counted_and_placed(rejected, words):
    history = [Moment(p, 0.0, -p, 0.1, r, "fiem") for p, r in zip([2.0, 4.0, 6.0], rejected, strict=True)]
    axes = draw_history(history)
    assert labels(axes) == ["fiEM", words]
    when = axes.lines[-1].get_xdata()
    np.testing.assert_array_equal(when, [4.0] if rejected[0] == 0 else [2.0, 6.0])
    restarted = draw_history(moments("sem", [1], rejected=3) + moments("fiem", [3, 5], rejected=2))
    assert "5 steps rejected" in labels(restarted)


def test_several_fits_on_the_same_axes_have_one_legend_entry_each():
    axes = draw_history(moments("sem", [1]) + moments("sem-vr", [4]))
    draw_history(moments("sem", [1]) + moments("fiem", [3]), axes)
    assert labels(axes) == ["sEM, at first", "sEM-VR", "fiEM"]


def test_a_model_that_was_given_has_nothing_to_show_and_says_so():
    axes = swiftem.GaussianMixture.from_parameters([1.0], [[0.0]], [[[1.0]]]).history_.plot()
    assert "given, not fitted" in axes.texts[0].get_text()


# --- the components ---


def test_two_ellipses_and_a_number_a_component():
    axes = drawn()
    outlines = [patch for patch in ellipses(axes) if not patch.get_fill()]
    assert len(outlines) == 4
    assert sorted(text.get_text() for text in axes.texts if text.get_text().isdigit()) == ["0", "1"]
    assert {patch.get_edgecolor()[:3] for patch in outlines} == {
        tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)) for colour in COLOURS[:2]
    }


def test_the_ellipses_are_where_the_density_says():
    axes = drawn()
    for patch in ellipses(axes):
        number = MEANS.index([*map(float, patch.center)])
        points = patch.get_patch_transform().transform(patch.get_path().vertices) - MEANS[number]
        distance = np.sqrt(np.einsum("ij,jk,ik->i", points, np.linalg.inv(COVARIANCES[number]), points))
        on_the_curve = distance[1:-1:3]  # the others are control points
        assert np.ptp(on_the_curve) < 1e-6
        assert round(on_the_curve[0]) in (1, 2)


def test_many_rows_are_thinned_and_said_so():
    X = np.random.default_rng(0).normal(size=(MOST_POINTS + 1000, 2))
    axes = drawn(X)
    assert len(axes.lines[0].get_xdata()) == MOST_POINTS
    assert "4,000 of 5,000 rows" in axes.texts[-1].get_text()
    again = drawn(X)
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), again.lines[0].get_xydata())


def test_one_far_row_does_not_decide_what_is_shown():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[0] = 1e6
    axes = drawn(X)
    assert max(axes.get_xlim()) < 100


@pytest.mark.parametrize(("scale", "aspect"), [(1.0, 1.0), (100.0, "auto")])
def test_units_are_equal_where_that_leaves_a_picture(scale, aspect):
    stretch = np.array([scale, 1.0])
    axes = drawn(means=MEANS * stretch, covariances=COVARIANCES * np.outer(stretch, stretch))
    assert axes.get_aspect() == aspect


def test_given_axes_are_used_also_shared_ones():
    one, other = own_axes(ncols=2, sharex=True, sharey=True)
    assert drawn(axes=one) is one
    assert draw_history(moments("em", [1, 2]), axes=other) is other
    one.figure.canvas.draw()


def test_the_estimator_passes_its_names_on():
    mixture = swiftem.GaussianMixture.from_parameters(WEIGHTS, MEANS, COVARIANCES)
    assert mixture.plot().get_xlabel() == "column 0"
    mixture.feature_names_in_ = np.array(["length", "width"], dtype=object)
    assert mixture.plot().get_ylabel() == "width"
    with pytest.raises(ValueError, match=r"X must be of shape \(n, 2\)"):
        mixture.plot(np.zeros((3, 4)))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_every_kind_of_a_fitted_mixture_is_drawn_and_saved(kind, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    X[30:] += 6
    mixture = swiftem.GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    axes = mixture.plot(X)
    assert len(ellipses(axes)) == 8
    axes.figure.savefig(tmp_path / "mixture.png")
    mixture.history_.plot().figure.savefig(tmp_path / "history.png")


# --- the criterion ---


# --- what they need ---


def test_pyplot_is_left_alone():
    code = (
        "import sys; from swiftem.mixture.plots import draw_mixture; "
        "draw_mixture([1], [[0, 0]], [[[1, 0], [0, 1]]], 'ab').figure.canvas.draw(); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_history(History(moments("em", [1]))),
        lambda: drawn(np.zeros((2, 2))),
        new_axes,
    ],
)
def test_without_matplotlib_the_extra_is_named(draw, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"swiftem\[plot\]"):
        draw()
