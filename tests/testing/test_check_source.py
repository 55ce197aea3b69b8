"""check_source says which members a source lacks."""

import pytest

from swiftem.data import Chunk, StoredSource
from swiftem.testing import check_source


class Bare:
    """A source that was begun."""

    n, total_weight, access = 3, 3.0, "random"

    def fingerprint(self):
        return "same"


class Stored(StoredSource):
    """A stored source that has not said what its rows are."""

    access = "sequential"

    def __init__(self):
        super().__init__()
        self.n, self.total_weight, self.is_weighted = 3, 3.0, False

    def chunks(self, rows):
        yield Chunk([[1.0], [2.0], [3.0]], None)

    def fingerprint(self):
        return "same"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [(Bare(), "Bare must derive from swiftem.data.Source"), (Stored(), "Stored must have dtype, tail")],
)
def test_names_what_is_missing(source, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_source(source)
