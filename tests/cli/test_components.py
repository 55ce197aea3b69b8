"""The table of components: at any width, for any covariance, with numbers that can be read."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from swiftem import GaussianMixture
from swiftem.cli import components
from swiftem.cli.choices import Covariance


def show(mixture, names, width, terminal=True, encoding="utf-8", full=False):
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, force_terminal=terminal, width=width, no_color=True, color_system=None)
    components.show_components(console, mixture, names, full)
    file.flush()
    return raw.getvalue().decode(encoding)


def mixture(m, d):
    means = np.arange(m * d, dtype=float).reshape(m, d)
    return GaussianMixture.from_parameters(np.full(m, 1 / m), means, np.ones((m, d)), covariance_type="diag")


@pytest.mark.parametrize(("m", "d"), [(2, 3), (2, 40), (40, 2), (30, 30), (1, 1)])
@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_lines_fit(m, d, width):
    text = show(mixture(m, d), [f"name{j}" for j in range(d)], width)
    table = [line for line in text.splitlines() if "more columns" not in line]
    assert max(len(line.rstrip()) for line in table) <= max(width, 45)


def test_many_columns_become_rows():
    text = show(mixture(2, 40), [f"name{j}" for j in range(40)], 80)
    assert "component 0" in text
    assert "name39" in text
    assert "more columns" not in text


def test_what_does_not_fit_is_counted():
    text = show(mixture(30, 30), [f"name{j}" for j in range(30)], 80)
    shown = len(re.findall(r"name\d+", text))
    assert f"... and {30 - shown} more columns." in text


def test_one_column_that_does_not_fit_is_one():
    names = [f"name{j}" for j in range(30)]
    widths = (show(mixture(30, 30), names, width) for width in range(200, 700, 4))
    assert any("... and 1 more column." in text for text in widths)


def test_tables_in_files_are_no_wider_than_a_page():
    text = show(mixture(30, 30), [], 100_000, terminal=False)
    assert max(map(len, text.splitlines())) <= components.PLAIN_WIDTH
    shown = len(re.findall(r"column \d+", text))
    assert f"... and {30 - shown} more columns." in text


def test_all_of_it():
    text = show(mixture(80, 30), [], 100_000, terminal=False, full=True)
    assert "column 29" in text
    assert text.splitlines()[-2].split()[0] == "79"
    assert "more" not in text


@pytest.mark.parametrize(("m", "d", "rest"), [(200, 2, "140 more components"), (2, 200, "141 more columns")])
def test_long_tables_are_cut(m, d, rest):
    text = show(mixture(m, d), [], 80)
    assert len(text.splitlines()) < 70
    assert f"... and {rest}." in text


def test_long_names_are_cut():
    text = show(mixture(2, 2), ["a" * 300, "b"], 200)
    assert "a" * 39 + "…" in text
    assert max(map(len, text.splitlines())) < 100


def test_without_unicode():
    assert "0.0 +- 1.0" in show(mixture(1, 1), ["a"], 80, encoding="ascii")


@pytest.mark.parametrize("kind", list(Covariance))
def test_deviations(kind, clusters):
    mixture = GaussianMixture(2, covariance_type=kind.value, random_state=0).fit(clusters[0])
    matrices = mixture.full_covariances()
    np.testing.assert_allclose(
        components.deviations(mixture), np.sqrt(np.einsum("mjj->mj", matrices)), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("mean", "spread", "text"),
    [
        (1.0, 0.0, "1.00e+00 ± 0.0e+00"),
        (1e9, 1.0, "1.00e+09 ± 1.0e+00"),
        (123.456, 45.6, "123 ± 46"),
        (0.0, 0.00123, "0.0000 ± 0.0012"),
    ],
)
def test_numbers(mean, spread, text):
    assert components.numbers(np.array([mean]), np.array([spread])) == [text]
