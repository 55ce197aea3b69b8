"""The page on data larger than memory has its figures."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "larger_than_memory.md").read_text()


def test_the_page_has_its_figures():
    assert "RATIOS" not in PAGE
    assert "SORTED" not in PAGE
    assert len(re.findall(r"\| (?:any row|blocks, window|in order)", PAGE)) == 8
