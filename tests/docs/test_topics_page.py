"""docs/topics.md names what there is."""

import re
from pathlib import Path

from swiftem.data.documents.corpus import FORMATS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "topics.md").read_text(encoding="utf-8")


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
