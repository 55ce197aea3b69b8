"""Where samples come from: sources, readers, a corpus, and every random draw of the library."""

from swiftem.data.array_source import ArraySource
from swiftem.data.as_source import as_source
from swiftem.data.bag_of_words import read_bag_of_words
from swiftem.data.block_source import BlockSource
from swiftem.data.corpus import Corpus, CorpusPackage
from swiftem.data.corpus_counts import CorpusCounts
from swiftem.data.count_matrix import read_count_matrix
from swiftem.data.count_source import CountSource
from swiftem.data.csr_documents import CsrDocuments
from swiftem.data.csv_source import CsvSource
from swiftem.data.docstrings import docstring_corpus
from swiftem.data.document_source import DocumentSource
from swiftem.data.known_words import KnownWordCounts, count_known_words
from swiftem.data.lda_c import read_lda_c
from swiftem.data.line_documents import LdaCDocuments, TextDocuments
from swiftem.data.npy_source import NpySource
from swiftem.data.open_documents import open_documents
from swiftem.data.open_source import open_source
from swiftem.data.parquet_source import ParquetSource
from swiftem.data.read_corpus import read_corpus
from swiftem.data.source import Batch, Source
from swiftem.data.stored_source import StoredSource
from swiftem.data.table_columns import UnknownColumnError
from swiftem.data.tables import Table, read_table
from swiftem.data.text import read_documents
from swiftem.data.text_folder import read_folder
from swiftem.data.text_table import read_text_csv, read_text_parquet
from swiftem.data.token_source import TokenSource
from swiftem.data.uci_documents import UciDocuments
from swiftem.data.vocabulary import read_vocabulary
from swiftem.data.word_counts import WordCounts, count_words

__all__ = [
    "ArraySource",
    "Batch",
    "BlockSource",
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
    "UnknownColumnError",
    "WordCounts",
    "as_source",
    "count_known_words",
    "count_words",
    "docstring_corpus",
    "open_documents",
    "open_source",
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
