"""Summaries, profiles and plots of ``swiftem.Mixture``."""

import numpy as np
import pytest
from scipy import stats

import swiftem
from swiftem import Mixture
from swiftem.families import FAMILIES
from swiftem.mixture.families.student_t import StudentT
from swiftem.mixture.tables.profile import density, panel_of
from tests.mixture.tables.test_auto import survey
from tests.mixture.test_families import PARAMS, given, log_law


def fitted():
    frame, _ = survey()
    return Mixture(2, family="auto", random_state=0).fit(frame), frame


def test_a_profile_by_name():
    mixture, frame = fitted()
    profile = mixture.profile_
    assert list(profile) == list(frame.columns)
    assert np.array_equal(profile["age"]["mean"], mixture.params_["gaussian"]["means"][:, 0])
    assert np.array_equal(profile["change"]["variance"], mixture.params_["gaussian"]["variances"][:, 2])
    assert np.array_equal(
        profile["smokes"]["probability"], mixture.params_["bernoulli"]["probabilities"][:, 1]
    )
    assert list(profile["region"]) == ["w", "s", "n"]
    assert np.array_equal(profile["agrees"]["5"], mixture.params_["categorical"]["probabilities"][:, 1, 4])
    assert np.allclose(sum(profile["region"].values()), 1.0)


def test_a_summary_that_a_person_reads():
    mixture, frame = fitted()
    few = int(mixture.params_["poisson"]["rates"].argmin())
    lines = {line.split()[0]: line for line in str(mixture.summary()).splitlines() if line}
    assert str(mixture.summary()).startswith("Mixture of 2 components, gaussian + poisson + bernoulli")
    assert set(frame.columns) <= set(lines)
    cells = dict(zip(mixture.summary().columns, zip(*mixture.summary().rows, strict=True), strict=True))
    mine = dict(zip(cells["column"], cells[f"component {few}"], strict=True))
    assert mine["age"].startswith("30.")
    assert mine["age"].endswith(("± 5", "± 4.9", "± 5.1"))
    assert mine["job"].startswith("clerk: 7")
    assert mine["member"] == "19 %"
    assert "<th>component 1</th>" in mixture.summary()._repr_html_()


def test_many_components_are_several_tables():
    rng = np.random.default_rng(0)
    params = {"rates": rng.uniform(1.0, 9.0, (30, 2))}
    text = str(Mixture.from_parameters(np.full(30, 1 / 30), params, family="poisson").summary())
    assert max(map(len, text.splitlines())) <= 110
    assert text.count("\ncolumn 1") > 1
    assert all(f"component {m}" in text for m in range(30))


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"von-mises-fisher"}))
def test_densities_of_panels_are_those_of_the_columns(name):
    """The density of column 1 alone, compared with that of all columns minus those of the others."""
    family = f"{name}(levels=(4, 4, 4))" if name == "categorical" else given(name)
    mixture = Mixture.from_parameters([0.4, 0.6], PARAMS[name], family=family)
    column = mixture._columns()[1]
    panel = panel_of(column)
    assert panel.name == "column 1"
    assert np.isfinite(panel.heights).all()
    if name == "categorical":
        assert np.allclose(panel.heights, PARAMS[name]["probabilities"][:, 1])
        return
    rng = np.random.default_rng(0)
    y = mixture.family_.draw(PARAMS[name], np.zeros(5, dtype=int), rng)
    found = density(column, y[:, 1])
    for m in range(2):
        one = {key: part[m, 1] for key, part in PARAMS[name].items() if part.ndim == 2}
        if name == "student-t":
            scale = np.sqrt(PARAMS[name]["scales"][m, 1, 1])
            expected = stats.t(PARAMS[name]["degrees_of_freedom"][m], one["means"], scale).pdf(y[:, 1])
        elif name == "binomial":
            expected = stats.binom.pmf(y[:, 1], 9, one["probabilities"])
        else:
            alone = {key: part[:, [1]] for key, part in PARAMS[name].items()}
            expected = np.exp(log_law(name, y[:, [1]], alone, m))
        assert np.allclose(found[m], expected, rtol=1e-9)


@pytest.mark.parametrize("with_rows", [False, True])
def test_a_panel_per_column(with_rows):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    mixture, frame = fitted()
    axes = mixture.plot(frame if with_rows else None)
    assert [ax.get_title() for ax in axes] == list(frame.columns)
    assert [ax.get_ylabel() for ax in axes][:4] == ["density", "probability", "probability", "probability"]
    assert [label.get_text() for label in axes[3].get_xticklabels()] == ["baker", "clerk"]
    heights = [patch.get_height() for patch in axes[3].patches]
    assert np.allclose(heights, np.array(list(mixture.profile_["job"].values())).T.ravel())
    curve = axes[0].lines[0].get_xydata()
    assert np.trapezoid(curve[:, 1], curve[:, 0]) == pytest.approx(1.0, abs=0.02)
    (legend,) = axes[0].figure.legends
    assert ("data" in [text.get_text() for text in legend.get_texts()]) == with_rows
    chosen = mixture.plot(columns=["job", 0], axes=axes[:2])
    assert chosen[0].get_title() == "job"
    for ax in axes:
        ax.figure.clf()


def test_bars_are_of_the_likeliest_levels_and_counts_have_steps_of_one():
    pytest.importorskip("matplotlib").use("Agg")
    params = {"probabilities": [[np.arange(1, 15) / 105]]}
    many = Mixture.from_parameters([1.0], params, family="categorical(levels=(14,))").plot()[0]
    assert [label.get_text() for label in many.get_xticklabels()] == [str(code) for code in range(2, 14)]
    counts = Mixture.from_parameters([1.0], {"rates": [[30.0]]}, family="poisson").plot()[0]
    assert set(np.diff(counts.lines[0].get_xdata())) == {1.0}
    for ax in (many, counts):
        ax.figure.clf()


def test_directions_have_bars_of_their_parameters():
    pytest.importorskip("matplotlib").use("Agg")
    mixture = Mixture.from_parameters([0.4, 0.6], PARAMS["von-mises-fisher"], family="von-mises-fisher")
    axes = mixture.plot()
    heights = [patch.get_height() for patch in axes[2].patches]
    assert np.allclose(heights, PARAMS["von-mises-fisher"]["directions"][:, 2])
    assert "concentration 25" in str(mixture.summary())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"columns": [7]}, "columns must be numbers below 3, or names of columns, got 7"),
        ({"columns": ["x"]}, "columns must be numbers below 3, or names of columns, got 'x'"),
        ({"X": "rows.csv"}, "rows.csv"),
    ],
)
def test_plots_that_cannot_be(given, sentence):
    mixture = Mixture.from_parameters([0.4, 0.6], PARAMS["poisson"], family="poisson")
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        mixture.plot(**given)


def test_student_t_and_own_families():
    family = StudentT(covariance="diag", degrees_of_freedom=4.0)
    X = np.random.default_rng(0).standard_t(4, (500, 2))
    mixture = swiftem.Mixture(1, family=family, random_state=0).fit(X)
    assert "(4 degrees of freedom)" in str(mixture.summary())
    assert list(mixture.profile_["column 0"]) == ["mean", "scale", "degrees_of_freedom"]
