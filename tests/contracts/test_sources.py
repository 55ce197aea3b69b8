"""Every source passes the contract tests, with weights and without."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import SequentialSource
from stored_sources import KINDS, make

from swiftem.data import ArraySource, CountSource, TokenSource
from swiftem.data.rows.tensor_source import TensorSource
from swiftem.data.source import Batch
from swiftem.testing import check_source

pytest.importorskip("pyarrow")
ROWS = np.random.default_rng(0).normal(size=(1000, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_contract(kind, tmp_path):
    check_source(make(kind, tmp_path, ROWS), ROWS)


@pytest.mark.parametrize("kind", KINDS)
def test_contract_with_weights_and_rows_without_weight(kind, tmp_path):
    weight = np.random.default_rng(1).integers(3, size=1000).astype(float)
    source = make(kind, tmp_path, ROWS, weight)
    assert source.n == np.count_nonzero(weight)
    check_source(source, ROWS[weight > 0])
    batch = source.take(np.arange(5))
    assert np.array_equal(batch.weight, weight[weight > 0][:5])


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
    found = [
        make(kind, folders[0], ROWS), make(kind, folders[1], other), make(kind, folders[2], ROWS, window=600),
        make(kind, folders[3], ROWS, weight), make(kind, folders[4], ROWS, heavy),
    ]  # fmt: skip
    assert len({source.fingerprint() for source in found}) == 5
    again = tmp_path / "again"
    again.mkdir()
    assert make(kind, again, ROWS).fingerprint() == found[0].fingerprint()


@pytest.mark.parametrize(
    "source",
    [
        ArraySource(ROWS),
        ArraySource(ROWS[:, 0], np.arange(1000.0)),
        TokenSource([0, 0, 1], [4, 2, 4]),
        CountSource(sp.csr_array([[2, 0, 1], [0, 1, 0]])),
        SequentialSource(ROWS),
    ],
    ids=["array", "weighted column", "tokens", "counts", "sequential"],
)
def test_contract_of_what_is_in_memory(source):
    check_source(source)


@pytest.mark.parametrize("weight", [None, np.arange(1000.0) % 3])
def test_contract_of_a_tensor(weight):
    torch = pytest.importorskip("torch")
    source = TensorSource(torch.from_numpy(ROWS), weight)
    check_source(source, ROWS if weight is None else ROWS[weight > 0])
    assert set(vars(ArraySource(ROWS))) - {"y"} <= set(vars(source)), "it is used in place of an array"


class Wrong(ArraySource):
    """A source with one thing wrong."""

    def __init__(self, what):
        super().__init__(ROWS)
        self.what = what

    def blocks(self, rows):
        batches = list(super().blocks(rows))
        if self.what == "order":
            batches.reverse()
        if self.what == "missing":
            batches = batches[:-1]
        if self.what == "large":
            batches = list(super().blocks(10 * rows))
        if self.what == "weights":
            batches = [Batch(y, 2.0 * weight, index) for y, weight, index in batches]
        return iter(batches)

    def take(self, index):
        batch = super().take(index)
        return batch._replace(y=batch.y + 1.0) if self.what == "take" else batch

    def fingerprint(self):
        return str(id(object())) + str(np.random.default_rng().random()) if self.what == "hash" else "same"


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("order", "in order"), ("missing", "cover"), ("large", "not yield more"),
        ("weights", "sum of the weights"), ("take", "take must return"), ("hash", "fingerprint"),
    ],
)  # fmt: skip
def test_what_is_broken_is_said(what, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_source(Wrong(what))
