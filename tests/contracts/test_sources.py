"""Every source passes the contract tests, with weights and without."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import SequentialSource
from stored_sources import KINDS, make, write

from swiftem.core.source import Source
from swiftem.data import (
    ArraySource,
    BlockSource,
    CountSource,
    CsrDocuments,
    TokenSource,
    UnitSource,
    open_source,
    open_units,
)
from swiftem.data.tensor import TensorSource
from swiftem.testing import check_source
from swiftem.topics.compute.corpus import Documents, StreamedDocuments
from swiftem.topics.compute.units import UnitDocuments

ROWS = np.random.default_rng(0).normal(size=(1000, 3))
COUNTS = sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(40, 12)))
WEIGHT = np.random.default_rng(1).integers(3, size=1000).astype(float)


@pytest.mark.parametrize("kind", KINDS)
def test_contract(kind, tmp_path):
    source = make(kind, tmp_path, ROWS)
    check_source(source, ROWS)
    assert source.layout is not None
    assert source.row_bytes == 24
    assert not source.is_weighted
    assert source.names == (("c0", "c1", "c2") if "csv" in kind or "parquet" in kind else ())


@pytest.mark.parametrize("kind", KINDS)
def test_contract_with_weights_and_rows_without_weight(kind, tmp_path):
    source = make(kind, tmp_path, ROWS, WEIGHT)
    assert source.is_weighted
    assert source.n == np.count_nonzero(WEIGHT)
    check_source(source, ROWS[WEIGHT > 0])
    batch = source.take(np.arange(5))
    assert np.array_equal(batch.weight, WEIGHT[WEIGHT > 0][:5])
    check_source(source.unweighted(), ROWS)


@pytest.mark.parametrize("ending", ["npy", "parquet", "csv"])
def test_contract_of_files_with_missing_cells(ending, tmp_path):
    rows = ROWS.copy()
    rows[::7, 1] = np.nan
    source = open_source(write(tmp_path, f"rows.{ending}", rows), allow_missing=True)
    assert source.has_missing
    check_source(source)
    blocks = BlockSource([rows[:500], rows[500:]], allow_missing=True)
    check_source(blocks)
    np.testing.assert_array_equal(source.take(np.arange(20)).y, blocks.take(np.arange(20)).y)


def test_contract_of_units_of_files(tmp_path):
    source = open_units(write(tmp_path, "rows.parquet", ROWS))
    assert (source.n, source.rows) == (10, 1000)
    check_source(source)


@pytest.mark.parametrize("kind", KINDS)
def test_fingerprint_changes_with_data_weights_and_window(kind, tmp_path):
    folders = [tmp_path / str(number) for number in range(5)]
    for folder in folders:
        folder.mkdir()
    other = ROWS.copy()
    other[700, 1] += 1.0
    weight = np.ones(1000)
    heavy = weight.copy()
    heavy[3] = 2.0
    sources = [
        make(kind, folders[0], ROWS),
        make(kind, folders[1], other),
        make(kind, folders[2], ROWS, window=600),
        make(kind, folders[3], ROWS, weight),
        make(kind, folders[4], ROWS, heavy),
    ]
    assert len({source.fingerprint() for source in sources}) == 5
    again = tmp_path / "again"
    again.mkdir()
    assert make(kind, again, ROWS).fingerprint() == sources[0].fingerprint()


IN_MEMORY = {
    "array": lambda: ArraySource(ROWS),
    "weighted column": lambda: ArraySource(ROWS[:, 0], np.arange(1000.0)),
    "missing cells": lambda: ArraySource([[1.0, np.nan], [2.0, 3.0]], allow_missing=True),
    "tokens": lambda: TokenSource([0, 0, 1], [4, 2, 4]),
    "counts": lambda: CountSource(sp.csr_array([[2, 0, 1], [0, 1, 0]])),
    "weighted counts": lambda: CountSource(sp.csr_array([[2, 0, 1], [0, 1, 0]]), [1.0, 3.0]),
    "fractions": lambda: CountSource(sp.csr_array([[0.5, 0, 1], [0, 1.5, 0]])),
    "units": lambda: UnitSource([ROWS[:300], ROWS[300:]]),
    "weighted units": lambda: UnitSource([ROWS[:300], ROWS[300:]], [WEIGHT[:300], WEIGHT[300:]]),
    "documents": lambda: Documents(COUNTS),
    "weighted documents": lambda: Documents(COUNTS, np.arange(1.0, 41.0)),
    "documents in blocks": lambda: StreamedDocuments(CsrDocuments(COUNTS)),
    "units of documents": lambda: UnitDocuments(
        [COUNTS[:15], COUNTS[15:]], None, is_small=lambda entries, documents: True
    ),
    "sequential": lambda: SequentialSource(ROWS),
}


@pytest.mark.parametrize("case", IN_MEMORY)
def test_contract_of_what_is_in_memory(case):
    check_source(IN_MEMORY[case]())


def test_sources_say_what_a_sample_is():
    samples = {case: make().samples for case, make in IN_MEMORY.items()}
    words = {case: sample for case, sample in samples.items() if sample != "rows"}
    assert words == {
        **dict.fromkeys(("tokens", "counts", "weighted counts", "fractions"), "tokens"),
        **dict.fromkeys(("documents", "weighted documents", "documents in blocks"), "documents"),
        "units of documents": "documents",
    }


def test_what_a_source_defines():
    assert set(Source.__abstractmethods__) == {"n", "total_weight", "take", "blocks", "fingerprint"}


@pytest.mark.parametrize("weight", [None, np.arange(1000.0) % 3])
def test_contract_of_a_tensor(weight):
    torch = pytest.importorskip("torch")
    source = TensorSource(torch.from_numpy(ROWS), weight)
    check_source(source, ROWS if weight is None else ROWS[weight > 0])
    assert source.fingerprint() == ArraySource(ROWS, weight).fingerprint()
    assert set(vars(ArraySource(ROWS))) - {"y"} <= set(vars(source)), "it is used in place of an array"


def blocks(change):
    """Return a member ``blocks`` that changes the list of batches."""
    return {"blocks": lambda self, rows: iter(change(list(ArraySource.blocks(self, rows))))}


WRONG = {
    "in order": blocks(lambda batches: batches[::-1]),
    "cover": blocks(lambda batches: batches[:-1]),
    "not yield more": {"blocks": lambda self, rows: ArraySource.blocks(self, 10 * rows)},
    "sum of the weights": blocks(lambda batches: [one._replace(weight=2.0 * one.weight) for one in batches]),
    "weight must have the weights of the blocks": {
        "weight": property(lambda self: np.full(1000, 2.0)),
        "is_weighted": False,
    },
    "a name for each column, or none, got 2 for 3": {"names": ("a", "b")},
    "rows_in_memory of Wrong must be the samples": {"rows_in_memory": ROWS[::-1]},
    "has_missing of Wrong must be False": {"has_missing": True},
    "take must return": {
        "take": lambda self, index: (lambda batch: batch._replace(y=batch.y + 1.0))(
            ArraySource.take(self, index)
        )
    },
    "fingerprint": {"fingerprint": lambda self: str(np.random.default_rng().random())},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_is_broken_is_said(sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_source(type("Wrong", (ArraySource,), WRONG[sentence])(ROWS))
