"""Where samples come from: sources, readers, and every random draw of the library."""

from swiftem.data.array_source import ArraySource
from swiftem.data.as_source import as_source
from swiftem.data.count_source import CountSource
from swiftem.data.source import Batch, Source
from swiftem.data.text import read_documents
from swiftem.data.token_source import TokenSource
from swiftem.data.word_counts import WordCounts, count_words

__all__ = [
    "ArraySource",
    "Batch",
    "CountSource",
    "Source",
    "TokenSource",
    "WordCounts",
    "as_source",
    "count_words",
    "read_documents",
]
