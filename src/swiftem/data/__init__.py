"""Where samples come from: sources, and every random draw of the library."""

from swiftem.data.array_source import ArraySource
from swiftem.data.as_source import as_source
from swiftem.data.count_source import CountSource
from swiftem.data.source import Batch, Source
from swiftem.data.token_source import TokenSource

__all__ = ["ArraySource", "Batch", "CountSource", "Source", "TokenSource", "as_source"]
