"""CSV files: forms, numbers, names, and a sentence with the row for what is wrong."""

import logging
import re

import numpy as np
import pytest
from table_files import csv_file, sentence_of

from swiftem.data import read_table


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,2.5\n3,-4\n",
        "a,b\n1,2.5\n3,-4",
        "a,b\r\n1,2.5\r\n3,-4\r\n",
        "a,b\r1,2.5\r3,-4\r",
        "a,b\r\r1,2.5\r3,-4\n",
        "a b\n1 2.5\n3 -4\n",
        "  a    b\r\n  1  2.5 \r\n  3   -4\r\n",
        '"a" \t b\n1 2.5\n3\t-4\n',
        "\ufeffa,b\n1,2.5\n3,-4\n",
        "a\tb\n1\t2.5\n3\t-4\n",
        "a;b\n1;2.5\n3;-4\n",
        "a;b\n1;2,5\n3;-4,0\n",
        "a;b\n1;2,5\n3;-4\n",
        '"a","b"\n"1","2.5"\n"3","-4"\n',
        "a, b\n1, 2.5\n 3 ,-4.\n",
        "a, b\n1, 2.5\n3,-4e0\n",
        "\n\na,b\n\n1,2.5\n   \n3,-4\n\n",
        '"a",b\n+1,25e-1\n3.000,-4\n',
    ],
)
def test_forms_of_the_same_table(tmp_path, content):
    table = read_table(csv_file(tmp_path, content))
    np.testing.assert_array_equal(table.values, [[1, 2.5], [3, -4]])
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert (table.names, table.weights, table.left_out, table.notes) == (("a", "b"), None, {}, ())


def test_numbers_are_exact(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 3)) * 10.0 ** rng.integers(-300, 300, size=(200, 3))
    lines = [",".join(map(repr, row)) for row in values.tolist()]
    table = read_table(csv_file(tmp_path, "\n".join(["x,y,z", *lines])))
    np.testing.assert_array_equal(table.values, values)


def test_one_column(tmp_path):
    table = read_table(csv_file(tmp_path, "height\n1\n2\n"))
    np.testing.assert_array_equal(table.values, [[1.0], [2.0]])


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_rows_are_counted_whatever_ends_lines(tmp_path, end):
    rows = [f"{number},{number}" for number in range(100)]
    file = csv_file(tmp_path, end.join(["a,b", *rows, "1,red", "2,3", ""]))
    assert "got 'red' in column 'b', row 100" in sentence_of(lambda: read_table(file))
    file = csv_file(tmp_path, end.join(["a,b", *rows, ""]))
    np.testing.assert_array_equal(read_table(file).values, np.arange(100)[:, None] * [1, 1])


def test_spaces_in_names_delimit_nothing(tmp_path):
    assert read_table(csv_file(tmp_path, "height in cm\n1\n2\n")).names == ("height in cm",)
    assert read_table(csv_file(tmp_path, "in cm,in kg\n1,2\n")).names == ("in cm", "in kg")
    assert read_table(csv_file(tmp_path, '"in cm" kg\n1 2\n')).names == ("in cm", "kg")


def test_a_short_line_of_a_table_with_spaces(tmp_path):
    file = csv_file(tmp_path, "a b c\n1 2 3\n4 5\n6 7 8\n")
    assert "must have 3 cells in every row" in sentence_of(lambda: read_table(file))


def test_a_header_over_two_lines(tmp_path):
    table = read_table(csv_file(tmp_path, '"a\nof x",b\n1,2\n3,4\n'))
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    assert table.names == ("a\nof x", "b")


def test_text_over_two_lines(tmp_path):
    table = read_table(csv_file(tmp_path, 'a,note\n1,"two\nlines, and a comma"\n3,one\n'))
    np.testing.assert_array_equal(table.values, [[1], [3]])


def test_what_is_no_number_is_left_out(tmp_path, caplog):
    content = ",kind,a,empty,date\n0,red,1,,2020-01-01\n1,NA,2,NA,2020-01-02\n"
    file = csv_file(tmp_path, content)
    with caplog.at_level(logging.INFO, "swiftem"):
        table = read_table(file)
    np.testing.assert_array_equal(table.values, [[1], [2]])
    assert table.left_out == {
        "column 0": "no name", "kind": "text", "empty": "no values", "date": "dates"
    }  # fmt: skip
    note = f"Left out of {file}: column 0 (no name), kind (text), empty (no values), date (dates)."
    assert table.notes == (note,)
    assert note in caplog.messages


def test_many_left_out_are_a_short_note(tmp_path):
    names = ",".join(f"t{i}" for i in range(30))
    table = read_table(csv_file(tmp_path, f"a,{names}\n1{',x' * 30}\n"))
    assert table.notes[0].endswith("t9 (text) and 20 more.")


def test_a_first_line_of_numbers_is_a_row(tmp_path):
    file = csv_file(tmp_path, "1,2\n3,4\n")
    table = read_table(file)
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    assert table.names == ()
    assert "numbers in its first line: read as a row" in table.notes[0]
    np.testing.assert_array_equal(read_table(file, columns=[1]).values, [[2], [4]])
    np.testing.assert_array_equal(read_table(file, columns=["1"]).values, [[2], [4]])
    assert "has no names of columns, got 'a': choose by number, from 0 to 1." in sentence_of(
        lambda: read_table(file, columns=["a"])
    )


def test_years_as_names_are_noted(tmp_path):
    table = read_table(csv_file(tmp_path, "country,2019,2020\nA,1,2\n"))
    assert table.names == ("2019", "2020")
    assert "(2019, 2020): read as names of columns." in table.notes[0]
    # A name goes before a number.
    assert read_table(tmp_path / "table.csv", columns=["2019"]).names == ("2019",)


def test_columns_and_weights(tmp_path):
    file = csv_file(tmp_path, "a,b,w,c\n1,2,0.5,3\n4,5,0,6\n")
    table = read_table(file, weights="w")
    np.testing.assert_array_equal(table.values, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(table.weights, [0.5, 0])
    assert table.names == ("a", "b", "c")
    table = read_table(file, columns=["c", 0], weights=2)
    np.testing.assert_array_equal(table.values, [[3, 1], [6, 4]])
    assert table.values.flags.c_contiguous
    assert table.names == ("c", "a")


def test_a_bad_cell_elsewhere_does_not_matter(tmp_path):
    file = csv_file(tmp_path, "a,b\n1,2\n3,\n")
    np.testing.assert_array_equal(read_table(file, columns=["a"]).values, [[1], [3]])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "must have column names in its first line and rows below, got an empty file."),
        ("\n \n", "must have column names in its first line and rows below, got only empty lines."),
        ("a,b\n", "must have at least one row below its column names, got none."),
        ("a,b\n1,2\n3\n", "must have 2 cells in every row, got 1 cell in row 1 (from 0)."),
        ("a,b\n1,2\n\n3,4,5\n", "must have 2 cells in every row, got 3 cells in row 1 (from 0)."),
        ("a\n1,5\n", "must have 1 cell in every row, got 2 cells in row 0 (from 0)."),
        ("a,b\nx,y\n", "must have a numeric column, got a (text), b (text)."),
        (
            "a,b\n1,2\n3,\n",
            "must hold finite numbers, got a missing value in column 'b', row 1 (from 0): "
            "fill in such rows, or skip them (skip_missing=True, on the command line --missing skip).",
        ),
        (
            "a,b\n1,2\n\n3,NA\n",
            "must hold finite numbers, got a missing value in column 'b', row 1 (from 0): "
            "fill in such rows, or skip them (skip_missing=True, on the command line --missing skip).",
        ),
        (
            "a,b\n1,NaN\n2,1\n",
            "must hold finite numbers, got a missing value in column 'b', row 0 (from 0): "
            "fill in such rows, or skip them (skip_missing=True, on the command line --missing skip).",
        ),
        (
            "a,b\n1,2\n-inf,2\n",
            "must hold finite numbers, got an infinity in column 'a', row 1 (from 0): remove or",
        ),
        (
            "a,b\n1,2\n1e999,2\n",
            "must hold finite numbers, got an infinity in column 'a', row 1 (from 0): remove or",
        ),
        (
            'a,n,b\n1,"x\ny",2\n1,x,"two"\n',
            "must have a number in every cell, got 'two' in column 'b', row 1 (from 0): correct it, or omit",
        ),
        ("a,b\n1,1\n2,1_0\n", "must have a number in every cell, got '1_0' in column 'b', row 1 (from 0)"),
        ("a,a\n1,2\n", "must have distinct names for its columns, got 'a' twice: rename one."),
        (b"a,b\n1,2\ncaf\xe9,3\n", "must be text in UTF-8, got the byte 0xe9: convert the file"),
        (
            "a,b\n1,2\n".encode("utf-16"),
            "must be text in UTF-8, got a NUL byte: it is a binary file, or UTF-16.",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_row(tmp_path, content, sentence):
    file = csv_file(tmp_path, content)
    assert sentence_of(lambda: read_table(file)).startswith(f"{file} {sentence}")


def test_a_long_cell_is_shortened(tmp_path):
    file = csv_file(tmp_path, f"a\n1\n{'x' * 500}\n")
    assert len(sentence_of(lambda: read_table(file))) < 200 + len(str(file))


def test_a_cell_without_end(tmp_path):
    file = csv_file(tmp_path, 'a,b\n1,"2\n' + "3,4\n" * 50_000)
    assert re.search("must be a table in CSV, got something else|must have", sentence_of(
        lambda: read_table(file)))  # fmt: skip


def test_text_that_was_asked_for(tmp_path):
    file = csv_file(tmp_path, "kind,a\nred,1\n")
    assert "got 'red' in column 'kind', row 0" in sentence_of(lambda: read_table(file, columns=["kind"]))
    assert "got 'red' in column 'kind', row 0" in sentence_of(lambda: read_table(file, weights="kind"))


def test_bad_weights(tmp_path):
    file = csv_file(tmp_path, "a,w\n1,2\n\n1,-2\n")
    assert sentence_of(lambda: read_table(file, weights="w")) == (
        f"{file} must have weights that are not negative, got -2 in row 1 (from 0)."
    )
    file = csv_file(tmp_path, "a,w\n1,0\n1,0\n")
    assert "must have a positive weight, got only zeros." in sentence_of(
        lambda: read_table(file, weights="w")
    )
    file = csv_file(tmp_path, "w\n1\n")
    assert "must have a numeric column, got none except the weights." in sentence_of(
        lambda: read_table(file, weights="w")
    )


def test_a_late_first_value(tmp_path):
    """Beyond the lines that are looked at, a value is not what makes a column numeric."""
    rows = [f"{i}," for i in range(1500)]
    table = read_table(csv_file(tmp_path, "\n".join(["a,b", *rows, "1,2"])))
    assert table.left_out == {"b": "no values"}
    assert len(table.values) == 1501


def test_a_late_mistake(tmp_path):
    file = csv_file(tmp_path, "\n".join(["a,b", *["1,2"] * 100_000, "1,x", "1,2"]))
    assert "got 'x' in column 'b', row 100000" in sentence_of(lambda: read_table(file))


def test_true_and_false_are_numbers(tmp_path):
    file = csv_file(tmp_path, "a,yes,mixed\n1,True,true\n2,False,maybe\n3,true,false\n")
    table = read_table(file)
    np.testing.assert_array_equal(table.values, [[1, 1], [2, 0], [3, 1]])
    assert table.left_out == {"mixed": "text"}
    file = csv_file(tmp_path, "a,yes\n1,TRUE\n2,NA\n3,FALSE\n")
    np.testing.assert_array_equal(read_table(file, allow_missing=True).values, [[1, 1], [2, np.nan], [3, 0]])
    file = csv_file(tmp_path, "a,yes\n" + "1,TRUE\n" * 1000 + "1,2\n")
    assert "got '2' in column 'yes', row 1000" in sentence_of(lambda: read_table(file))


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        (["2021-03-04", "2021-12-31"], "dates"),
        (["2021-03-04 12:30:05.250+02:00", "2021-03-04T12:30Z"], "dates"),
        (["3/4/2021", "31/12/21"], "dates"),
        (["04.03.2021", "4.3.2021"], "dates"),
        (["4 March 2021", "04-Mar-21"], "dates"),
        (['"Mar 4, 2021"', '"December 31, 2021"'], "dates"),
        (["12:30", "12:30:05 PM"], "times"),
        (["1 days 02:03:04", "0 days"], "durations"),
        (["P1DT2H", "PT5M"], "durations"),
        (['"[1, 2]"', '"[]"'], "lists"),
        (["2021-03-04", "never"], "text"),
        (["10.0.0.1", "10.0.0.2"], "text"),
        (["p", "pt"], "text"),
    ],
)
def test_dates_and_durations_are_no_text(tmp_path, cells, what):
    file = csv_file(tmp_path, "a,b\n" + "".join(f"{number},{cell}\n" for number, cell in enumerate(cells)))
    assert read_table(file).left_out == {"b": what}
    assert (read_table(file, text=()).left_out or {"b": "text"}) == {"b": what}
