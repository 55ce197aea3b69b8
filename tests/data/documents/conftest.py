"""Files that are read in small pieces."""

import pytest

from swiftem.data.documents import text_files


@pytest.fixture
def in_pieces(monkeypatch):
    """Return a function that sets how many bytes are read at a time."""
    return lambda size: monkeypatch.setattr(text_files, "PIECE", size)
