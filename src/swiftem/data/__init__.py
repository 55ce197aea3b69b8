"""Where samples come from: sources, readers, a corpus, and every random draw of the library."""

from swiftem.data.array_source import ArraySource
from swiftem.data.as_source import as_source
from swiftem.data.corpus import Corpus, CorpusPackage
from swiftem.data.count_source import CountSource
from swiftem.data.docstrings import docstring_corpus
from swiftem.data.source import Batch, Source
from swiftem.data.table_columns import UnknownColumnError
from swiftem.data.tables import Table, read_table
from swiftem.data.text import read_documents
from swiftem.data.token_source import TokenSource
from swiftem.data.word_counts import WordCounts, count_words

__all__ = [
    "ArraySource",
    "Batch",
    "Corpus",
    "CorpusPackage",
    "CountSource",
    "Source",
    "Table",
    "TokenSource",
    "UnknownColumnError",
    "WordCounts",
    "as_source",
    "count_words",
    "docstring_corpus",
    "read_documents",
    "read_table",
]
