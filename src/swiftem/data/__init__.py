"""Sources of samples, and readers of files."""

from swiftem.core.source import Batch, Source
from swiftem.data.array import ArraySource
from swiftem.data.as_source import as_source
from swiftem.data.blocks import BlockSource
from swiftem.data.columns import UnknownColumnError
from swiftem.data.documents.corpus import open_documents, read_corpus
from swiftem.data.documents.count_files import read_bag_of_words, read_count_matrix, read_lda_c
from swiftem.data.documents.counts import CorpusCounts, CsrDocuments, DocumentSource
from swiftem.data.documents.text_files import (
    read_documents,
    read_folder,
    read_text_csv,
    read_text_parquet,
    read_vocabulary,
)
from swiftem.data.documents.tokens import CountSource, TokenSource
from swiftem.data.documents.words import WordCounts, count_known_words, count_words
from swiftem.data.npy import NpySource
from swiftem.data.stored import Chunk, StoredSource
from swiftem.data.table_files import TableSource
from swiftem.data.tables import Table, open_source, read_table
from swiftem.data.units.source import UnitSource, open_units

__all__ = [
    "ArraySource",
    "Batch",
    "BlockSource",
    "Chunk",
    "CorpusCounts",
    "CountSource",
    "CsrDocuments",
    "DocumentSource",
    "NpySource",
    "Source",
    "StoredSource",
    "Table",
    "TableSource",
    "TokenSource",
    "UnitSource",
    "UnknownColumnError",
    "WordCounts",
    "as_source",
    "count_known_words",
    "count_words",
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
