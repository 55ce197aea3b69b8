"""CSV files: forms, numbers, names, and a sentence with the row for what is wrong."""

import csv
import logging

import numpy as np
import pytest
from table_files import sentence_of, write_file

from swiftem.data import open_source, read_table


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
    table = read_table(write_file(tmp_path, content))
    np.testing.assert_array_equal(table.values, [[1, 2.5], [3, -4]])
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert (table.names, table.weights, table.left_out, table.notes) == (("a", "b"), None, {}, ())


def test_numbers_are_exact(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 3)) * 10.0 ** rng.integers(-300, 300, size=(200, 3))
    lines = [",".join(map(repr, row)) for row in values.tolist()]
    table = read_table(write_file(tmp_path, "\n".join(["x,y,z", *lines])))
    np.testing.assert_array_equal(table.values, values)


def test_numbers_are_those_of_python(tmp_path):
    """Rows of odd pieces, by chance: as a table and in blocks, as Python's reader and float have them."""
    pieces = ["1", "-2.5", " 3", "4 ", '"5"', "1e5", ".5", "6.", "+7", "inf", "nan", "NA", "", "x", '"a""b"']
    rng = np.random.default_rng(1)
    accepted = 0
    for _ in range(300):
        pool = pieces[: int(len(pieces) * rng.choice([0.55, 0.7, 1.0]))]
        rows = [",".join(rng.choice(pool, size=3)) + "," + rng.choice(pieces) for _ in range(4)]
        file = write_file(tmp_path, "a,b,c,d\n" + rng.choice(["\n", "\r\n", "\n\n"]).join(rows))
        try:
            table = read_table(file, ["a", "b", "c"])
        except ValueError:
            continue
        accepted += 1
        expected = [[float(cell) for cell in row[:3]] for row in csv.reader(rows)]
        np.testing.assert_array_equal(table.values, expected)
        np.testing.assert_array_equal(next(open_source(file, ["a", "b", "c"]).blocks(9)).y, expected)
    assert accepted > 50


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_rows_are_counted_whatever_ends_lines(tmp_path, end):
    rows = [f"{number},{number}" for number in range(100)]
    file = write_file(tmp_path, end.join(["a,b", *rows, "1,red", "2,3", ""]))
    assert "got 'red' in column 'b', row 100" in sentence_of(lambda: read_table(file))
    file = write_file(tmp_path, end.join(["a,b", *rows, ""]))
    np.testing.assert_array_equal(read_table(file).values, np.arange(100)[:, None] * [1, 1])


def test_spaces_in_names_delimit_nothing(tmp_path):
    assert read_table(write_file(tmp_path, "height in cm\n1\n2\n")).names == ("height in cm",)
    assert read_table(write_file(tmp_path, "in cm,in kg\n1,2\n")).names == ("in cm", "in kg")
    assert read_table(write_file(tmp_path, '"in cm" kg\n1 2\n')).names == ("in cm", "kg")


def test_a_header_over_two_lines(tmp_path):
    table = read_table(write_file(tmp_path, '"a\nof x",b\n1,2\n3,4\n'))
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    assert table.names == ("a\nof x", "b")


def test_text_over_two_lines(tmp_path):
    table = read_table(write_file(tmp_path, 'a,note\n1,"two\nlines, and a comma"\n3,one\n'))
    np.testing.assert_array_equal(table.values, [[1], [3]])


def test_what_is_no_number_is_left_out(tmp_path, caplog):
    content = ",kind,a,empty,date\n0,red,1,,2020-01-01\n1,NA,2,NA,2020-01-02\n"
    file = write_file(tmp_path, content)
    with caplog.at_level(logging.INFO, "swiftem"):
        table = read_table(file)
    np.testing.assert_array_equal(table.values, [[1], [2]])
    assert table.left_out == {"column 0": "no name", "kind": "text", "empty": "no values", "date": "dates"}
    note = f"Left out of {file}: column 0 (no name), kind (text), empty (no values), date (dates)."
    assert table.notes == (note,)
    assert note in caplog.messages


def test_many_left_out_are_a_short_note(tmp_path):
    names = ",".join(f"t{i}" for i in range(30))
    table = read_table(write_file(tmp_path, f"a,{names}\n1{',x' * 30}\n"))
    assert table.notes[0].endswith("t9 (text) and 20 more.")


def test_a_first_line_of_numbers_is_a_row(tmp_path):
    file = write_file(tmp_path, "1,2\n3,4\n")
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
    table = read_table(write_file(tmp_path, "country,2019,2020\nA,1,2\n"))
    assert table.names == ("2019", "2020")
    assert "(2019, 2020): read as names of columns." in table.notes[0]
    # A name goes before a number.
    assert read_table(tmp_path / "table.csv", columns=["2019"]).names == ("2019",)


def test_columns_and_weights(tmp_path):
    file = write_file(tmp_path, "a,b,w,c\n1,2,0.5,3\n4,5,0,6\n")
    table = read_table(file, weights="w")
    np.testing.assert_array_equal(table.values, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(table.weights, [0.5, 0])
    assert table.names == ("a", "b", "c")
    table = read_table(file, columns=["c", 0], weights=2)
    np.testing.assert_array_equal(table.values, [[3, 1], [6, 4]])
    assert table.values.flags.c_contiguous
    assert table.names == ("c", "a")


def test_a_bad_cell_elsewhere_does_not_matter(tmp_path):
    file = write_file(tmp_path, "a,b\n1,2\n3,\n")
    np.testing.assert_array_equal(read_table(file, columns=["a"]).values, [[1], [3]])


def test_a_late_first_value(tmp_path):
    """Beyond the lines that are looked at, a value is not what makes a column numeric."""
    rows = [f"{i}," for i in range(1500)]
    table = read_table(write_file(tmp_path, "\n".join(["a,b", *rows, "1,2"])))
    assert table.left_out == {"b": "no values"}
    assert len(table.values) == 1501


def test_true_and_false_are_numbers(tmp_path):
    file = write_file(tmp_path, "a,yes,mixed\n1,True,true\n2,False,maybe\n3,true,false\n")
    table = read_table(file)
    np.testing.assert_array_equal(table.values, [[1, 1], [2, 0], [3, 1]])
    assert table.left_out == {"mixed": "text"}
    file = write_file(tmp_path, "a,yes\n1,TRUE\n2,NA\n3,FALSE\n")
    np.testing.assert_array_equal(read_table(file, allow_missing=True).values, [[1, 1], [2, np.nan], [3, 0]])
    file = write_file(tmp_path, "a,yes\n" + "1,TRUE\n" * 1000 + "1,2\n")
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
    file = write_file(tmp_path, "a,b\n" + "".join(f"{number},{cell}\n" for number, cell in enumerate(cells)))
    assert read_table(file).left_out == {"b": what}
    assert (read_table(file, text=()).left_out or {"b": "text"}) == {"b": what}
