"""Tables: as text of any width, as HTML, in rich, and as a data frame."""

import io
import math

import numpy as np
import pytest

from swiftem.show.table import Table


def lines(table, width=110):
    return table.to_text(width).split("\n")


def test_numbers_are_aligned_at_the_right_and_text_at_the_left():
    table = Table("Title", ["n", "share", "words"], [[1, 0.25, "a b"], [10_000, 1 / 3, "c"]])
    assert lines(table) == ["Title", "", "     n   share  words", "     1    0.25  a b", "10,000  0.3333  c"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (-0.0, "0"),
        (-1e-9, "-1e-09"),
        (1234567, "1,234,567"),
        (123456.7, "123,457"),
        (np.float32(0.5), "0.5"),
        (np.int64(5000), "5,000"),
        (True, "yes"),
        (np.False_, "no"),
        (None, ""),
        (math.nan, ""),
        ("a\x1b[1mb\nc", "a\\x1b[1mb\\nc"),
    ],
)
def test_cells(cell, text):
    assert lines(Table("", ["x"], [[cell]]))[1].strip() == text
    assert f"<td>{text}</td>" in Table("", ["x"], [[cell]])._repr_html_()


def test_a_format_of_a_column():
    table = Table("", ["x", "y"], [[-0.001, -0.001]], formats={"x": "{:z.2f}".format})
    assert lines(table)[1].split() == ["0.00", "-0.001"]


def wide(n_rows=3):
    spread = [[m, *(f"{10 * m * j}.12 ± 0.{m}" for j in range(30)), "some words " * 9] for m in range(n_rows)]
    return Table("Wide", ["component", *(f"column {j}" for j in range(30)), "words"], spread, ["A note."])


@pytest.mark.parametrize("width", [60, 80, 110, 200])
def test_a_wide_table_continues_below_and_cuts_nothing(width):
    table = wide()
    text = table.to_text(width)
    assert max(map(len, text.splitlines())) <= width
    assert all(str(cell) in text for row in table.rows for cell in row[1:-1])
    assert text.split().count("some") == 3 * 9
    heads = [line for line in text.splitlines() if line.startswith("component")]
    assert len(heads) > 2
    assert " ".join(heads).split().count("column") == 30
    assert text.endswith("\nA note.")


def test_no_number_is_cut_on_a_narrow_terminal():
    number = "1234567890.123456 ± 12345.67"
    assert number in Table("", ["component", "x"], [[0, number]]).to_text(20)


def test_long_text_is_wrapped_at_words():
    words = "alpha beta gamma " * 20
    table = Table("T", ["topic", "words", "share"], [[0, words, 0.5]])
    text = lines(table, 80)
    assert max(map(len, text)) <= 80
    assert " ".join(text).split().count("gamma") == 20
    assert [line.endswith("0.5") for line in text].count(True) == 1


def test_the_last_column_of_text_has_the_rest_of_the_line():
    table = Table("T", ["topic", "words"], [[0, "alpha beta gamma " * 5]])
    assert len(lines(table, 110)) == 4
    assert len(lines(table, 60)) > 4


def test_first_rows():
    table = Table("T", ["k"], [[0], [1], [2]], ["Note."])
    assert table.head(3) is table
    assert lines(table.head(2, "component"))[-2:] == ["... and 1 more component.", "Note."]


def test_html_is_escaped():
    html = Table("<t>", ["<c>"], [["<d>"]], ["<n>"])._repr_html_()
    assert [f"&lt;{name}&gt;" in html for name in "tcdn"] == [True] * 4
    assert "<n>" not in html


def test_a_data_frame_has_the_numbers():
    frame = Table("T", ["a", "b"], [[1, 1 / 3], [2, -0.0]]).to_pandas()
    assert frame["b"].tolist() == [1 / 3, 0.0]
    assert list(frame) == ["a", "b"]


def test_rich_prints_it_in_the_width_of_its_terminal():
    from rich.console import Console

    file = io.StringIO()
    Console(file=file, width=70).print(wide())
    assert file.getvalue().rstrip("\n") == wide().to_text(70)


def test_a_table_without_rows_or_with_one_column():
    assert repr(Table("T", ["a", "b"], [])) == "T\n\na  b"
    assert repr(Table("", ["a"], [[1]])) == "a\n1"
