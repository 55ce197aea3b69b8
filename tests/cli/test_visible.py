"""Control characters of files reach no terminal: names of columns and files, categories, model files."""

import io
import logging
import re
import warnings

import numpy as np
import pytest
from rich.text import Text
from typer.testing import CliRunner

from swiftem import Mixture
from swiftem.cli.app import app
from swiftem.cli.console import Console
from swiftem.core.messages import visible, warn

TITLE, COLOUR, TURN = "\x1b]0title\x07", "\x9b31m", "\u202e"
HOSTILE = f"{TITLE}{COLOUR}{TURN}"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def test_every_control_character_is_escaped_and_nothing_else():
    text = "".join(map(chr, range(0x3000)))
    assert set(CONTROLS.findall(text)) == {char for char in text if visible(char) != char}
    assert not CONTROLS.search(visible(text))
    assert visible("a\tb\n±é…") == "a\tb\n±é…"


@pytest.fixture
def table(tmp_path):
    """A table whose name, columns and categories have control characters."""
    rng = np.random.default_rng(0)
    heads = [f"height{HOSTILE}", f"colour{HOSTILE}", f"kind{HOSTILE}", "day"]
    lines = [
        f"{value:.3f},{'red' if value < 0 else 'blue'}{HOSTILE},{place % 2}{HOSTILE},{HOSTILE}{place}"
        for place, value in enumerate(np.concatenate([rng.normal(-5, 1, 30), rng.normal(5, 1, 30)]))
    ]
    file = tmp_path / f"table{HOSTILE}.csv"
    file.write_text("\n".join([",".join(heads), *lines, f",red{HOSTILE},,"]))
    return file


def test_no_command_shows_them(table, tmp_path):
    model, out = tmp_path / f"{HOSTILE}.model", tmp_path / f"{HOSTILE}.csv"
    label, family = f"kind{HOSTILE}", f"categorical=colour{HOSTILE};gaussian=height{HOSTILE}"
    commands = {
        0: [
            ["fit", table, "-k", 2, "--family", "auto", "--missing", "ignore", "-l", label, "-o", model],
            ["fit", table, "-k", 2, "--family", family, "--missing", "ignore"],
            ["select", table, "-k", "1:2", "--family", "auto", "--missing", "skip"],
            ["info", model],
            ["predict", model, table],
            ["predict", model, table, "-o", out],
            ["score", model, table, "-l", label],
            ["impute", model, table],
            ["fit", table, "--update", model],
        ],
        1: [
            ["fit", table, "-k", 2, "--family", f"poisson=height{HOSTILE},colour{HOSTILE}"],
            ["fit", tmp_path / f"none{HOSTILE}.csv", "-k", 2],
            ["info", table],
            ["predict", model, out],
        ],
        2: [
            ["fit", table, "-k", 2, "--columns", HOSTILE],
            ["fit", table, "-k", HOSTILE],
            ["fit", table, "-k", 2, "-o", out],
            ["fit", table, "-k", 2, f"--{HOSTILE}"],
            [f"--{HOSTILE}"],
            [HOSTILE],
        ],
    }
    for code, lines in commands.items():
        for line in lines:
            result = CliRunner().invoke(app, [str(word) for word in line])
            assert result.exit_code == code, (line, result.output)
            shown = re.sub(r"\x1b\[[0-9;]*m", "", result.output)  # typer colours its errors if told to
            assert not CONTROLS.search(shown), (line, shown)
            if code == 0 and line[0] in ("fit", "select", "info", "impute"):
                assert "\\x1b]0title\\x07\\x9b31m\\u202e" in shown, (line, shown)
    CliRunner().invoke(app, ["impute", str(model), str(table), "-o", str(out)])
    assert HOSTILE in out.read_text()  # a file has what it was given


def test_a_terminal_gets_the_sequences_of_rich_alone():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=200)
    console.print(Text(HOSTILE, style="red"))
    console.print(HOSTILE, markup=False)
    with console.status(Text(HOSTILE)):
        pass
    shown = stream.getvalue()
    assert "\x1b[31m" in shown
    assert TITLE not in shown
    assert COLOUR not in shown
    assert TURN not in shown


def test_warnings_the_log_and_summaries(caplog):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(f"Column {HOSTILE}.", UserWarning)
    logging.getLogger("swiftem").warning("Folder %s.", HOSTILE)
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({HOSTILE: [f"a{HOSTILE}", "b"] * 20})
    summary = Mixture(1, family="auto", random_state=0).fit(rows).summary()
    for text in (str(caught[0].message), caplog.messages[0], str(summary)):
        assert "title" in text
        assert not CONTROLS.search(text)
