"""The examples of docs/topics.md run, and name what there is."""

import re
from pathlib import Path

import pytest

from swiftem.data.documents.formats.no_text import FORMATS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "topics.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_the_examples_run(capsys):
    names = {}
    for example in re.findall(r"```python\n(.*?)```", PAGE, flags=re.S):
        exec(compile(example, "docs/topics.md", "exec"), names)
    output = capsys.readouterr().out
    assert output.count("\n") == 8 + 5
    assert "7 topics; topic 0 is most of sklearn." in output
    assert "(300, 5) 1.0" in output
    assert "CorpusCounts of 2 documents, 4 words and 5 tokens ('a.txt', 'b.txt')" in output
    assert names["topics"].components_.shape == (8, 2000)


def test_every_format_is_in_the_table():
    assert set(re.findall(r"`([\w-]+)`", " ".join(re.findall(r"\| ([^|]*) \|$", PAGE, flags=re.M)))) >= set(
        FORMATS
    )


def test_every_option_exists():
    from typer.main import get_command

    from swiftem.cli.app import app

    options = get_command(app).commands["topics"].params
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= known
