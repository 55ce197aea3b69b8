"""Sources of samples, readers, a corpus, and every random draw of the library."""

from swiftem.data.as_source import as_source
from swiftem.data.documents.corpus import Corpus, CorpusPackage
from swiftem.data.documents.corpus_counts import CorpusCounts
from swiftem.data.documents.count_source import CountSource
from swiftem.data.documents.docstrings.corpus import docstring_corpus
from swiftem.data.documents.document_source import DocumentSource
from swiftem.data.documents.formats.count_matrix import read_count_matrix
from swiftem.data.documents.formats.line_documents import (
    LdaCDocuments,
    TextDocuments,
    read_documents,
    read_lda_c,
)
from swiftem.data.documents.formats.text_folder import read_folder
from swiftem.data.documents.formats.text_table import read_text_csv, read_text_parquet
from swiftem.data.documents.formats.uci_documents import UciDocuments, read_bag_of_words
from swiftem.data.documents.open_documents import CsrDocuments, open_documents
from swiftem.data.documents.read_corpus import read_corpus
from swiftem.data.documents.token_source import TokenSource
from swiftem.data.documents.vocabulary import read_vocabulary
from swiftem.data.documents.word_counts import KnownWordCounts, WordCounts, count_known_words, count_words
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.block_source import BlockSource
from swiftem.data.rows.csv_source import CsvSource
from swiftem.data.rows.npy_source import NpySource
from swiftem.data.rows.open_source import open_source
from swiftem.data.rows.parquet_source import ParquetSource
from swiftem.data.rows.stored_source import Chunk, StoredSource
from swiftem.data.rows.table_columns import UnknownColumnError
from swiftem.data.rows.tables import Table, read_table
from swiftem.data.source import Batch, Source
from swiftem.data.units.collections import open_units
from swiftem.data.units.unit_source import UnitSource

__all__ = [
    "ArraySource",
    "Batch",
    "BlockSource",
    "Chunk",
    "Corpus",
    "CorpusCounts",
    "CorpusPackage",
    "CountSource",
    "CsrDocuments",
    "CsvSource",
    "DocumentSource",
    "KnownWordCounts",
    "LdaCDocuments",
    "NpySource",
    "ParquetSource",
    "Source",
    "StoredSource",
    "Table",
    "TextDocuments",
    "TokenSource",
    "UciDocuments",
    "UnitSource",
    "UnknownColumnError",
    "WordCounts",
    "as_source",
    "count_known_words",
    "count_words",
    "docstring_corpus",
    "open_documents",
    "open_source",
    "open_units",
    "read_bag_of_words",
    "read_corpus",
    "read_count_matrix",
    "read_documents",
    "read_folder",
    "read_lda_c",
    "read_table",
    "read_text_csv",
    "read_text_parquet",
    "read_vocabulary",
]
