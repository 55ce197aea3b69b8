"""Documents in small blocks."""

import pytest

from swiftem.topics.compute import corpus


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 64 documents: several of them in a small corpus."""
    monkeypatch.setattr(corpus, "BLOCK", 64)
