"""The counts of a corpus on a device, in the order of documents and in that of words."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields
from typing import Any

from swiftem.data.foreign import torch_of
from swiftem.engine.documents import Documents

__all__ = ["SEGMENT", "DeviceCounts", "Side"]

SEGMENT = 256
"""Maximum number of entries that are added in float32, and of one program's work."""
BLOCK = 32 << 20
"""Bytes of topics of documents that stay in the cache of a device while the words of these documents are
summed: see :class:`DeviceCounts`."""


@dataclass(frozen=True)
class Side:
    """Entries in the order of rows, which are documents or words, in segments of a row.

    Attributes
    ----------
    row : tensor of int, shape (S,)
        Row of each segment.
    begin : tensor of int, shape (S + 1,)
        Segment i is entries ``begin[i]`` to ``begin[i + 1]`` − 1.
    other : tensor of int, shape (m,)
        The entries' words if rows are documents, and the reverse.
    count : tensor, shape (m,)
        Their counts.
    first : tensor of int, shape (R + 1,)
        The segments of row r are ``order[first[r]]`` to ``order[first[r + 1] - 1]``.
    order : tensor of int, shape (S,)
        Segments by row.
    """

    row: Any
    begin: Any
    other: Any
    count: Any
    first: Any
    order: Any

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.first) - 1

    @classmethod
    def of(cls, key: Any, n_keys: int, n_rows: int, other: Any, count: Any) -> Side:
        """Return entries as segments.

        Parameters
        ----------
        key : tensor of int, shape (m,)
            Ascending: the row of each entry, or block·n_rows + row.
        n_keys, n_rows : int
            Number of keys and of rows. With one block every row has a segment, even if it has no entries.
        other, count : tensor, shape (m,)
            The entries.
        """
        torch = torch_of("a device")
        keys = torch.arange(n_keys, device=key.device)
        begin = torch.searchsorted(key, torch.arange(n_keys + 1, device=key.device, dtype=key.dtype))
        length = begin.diff()
        segments = (length + SEGMENT - 1) // SEGMENT
        if n_keys == n_rows:
            segments.clamp_(min=1)
        ends = segments.cumsum(0)
        of_segment = torch.repeat_interleave(keys, segments)
        place = torch.arange(len(of_segment), device=key.device) - (ends - segments)[of_segment]
        starts = torch.cat([begin[of_segment] + SEGMENT * place, begin[-1:]])
        row = of_segment % n_rows
        order = torch.argsort(row, stable=True)
        first = torch.zeros(n_rows + 1, dtype=torch.int64, device=key.device)
        first[1:] = torch.bincount(row, minlength=n_rows).cumsum(0)
        return cls(row.int(), starts, other, count, first, order)


FIELDS = [field.name for field in fields(Side)]


class DeviceCounts:
    """A corpus on a device, twice: by document, and by word.

    Each side computes its own sums, so that nothing is added atomically: sums have the same bits in every
    run. Words are summed from the topics of documents all over the corpus. If these do not fit into the
    device's cache, words are summed in blocks of documents that do.

    Parameters
    ----------
    documents : Documents
        The corpus.
    n_topics : int
        K, for the size of blocks.
    device : str or torch.device
        The device.
    dtype : torch.dtype
        Of the counts.

    Attributes
    ----------
    by_document, by_word : Side
        The entries.
    weight, length : tensor, shape (D,)
        Weights and tokens of documents, float64.
    is_plain : bool
        Whether all weights are one.
    """

    def __init__(self, documents: Documents, n_topics: int, device: Any, dtype: Any) -> None:
        torch = torch_of(f"device={device!r}")
        self.n, self.n_words, self.n_entries = documents.n, documents.n_words, documents.n_entries

        def there(array: Any, kind: Any) -> Any:
            return torch.from_numpy(array).to(device).to(kind)

        word, count = there(documents.word, torch.int32), there(documents.count, dtype)
        begin = there(documents.begin, torch.int64)
        numbers = torch.arange(self.n, device=device, dtype=torch.int32)
        document = torch.repeat_interleave(numbers, begin.diff())
        self.by_document = Side.of(document, self.n, self.n, word, count)
        per_block = max(1, BLOCK // (4 * n_topics))
        n_blocks = -(-self.n // per_block)
        key: Any = word
        if n_blocks > 1:
            key = (document // per_block).long() * self.n_words + word
        key, order = torch.sort(key, stable=True)
        self.by_word = Side.of(key, n_blocks * self.n_words, self.n_words, document[order], count[order])
        self.weight, self.length = (
            there(documents.weight, torch.float64),
            there(documents.length, torch.float64),
        )
        self.is_plain = bool((documents.weight == 1.0).all())
        self.begin = begin

    def tensors(self) -> list[Any]:
        """Return all tensors, in the order that :meth:`with_tensors` takes them in."""
        sides = (self.by_document, self.by_word)
        return [
            *(getattr(side, name) for side in sides for name in FIELDS), self.weight, self.length, self.begin
        ]  # fmt: skip

    def with_tensors(self, tensors: list[Any]) -> DeviceCounts:
        """Return the same counts in other memory."""
        found, size = copy(self), len(FIELDS)
        found.by_document, found.by_word = Side(*tensors[:size]), Side(*tensors[size : 2 * size])
        found.weight, found.length, found.begin = tensors[2 * size :]
        return found
