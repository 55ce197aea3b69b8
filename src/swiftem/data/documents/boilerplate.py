"""What most documents have in common: headers of mails, and words; reported, and left out on request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from swiftem._typing import Array
from swiftem.data.rows.table_columns import shortened

__all__ = ["document_shares", "header_field", "note_on_common", "note_on_headers", "without_header"]

HEADER = re.compile(r"\s*(?:[A-Za-z][\w-]*:[^\n]*(?:\n[ \t]+[^\n]+)*(?:\n|\Z)){2,}(?=\n|\Z)")
"""Two or more lines "Field: value", which may go on in lines that begin with a space, and an empty one."""
FIELD = re.compile(r"^([A-Za-z][\w-]*):", re.MULTILINE)
COMMON = 0.3
"""Share of the documents from which words, and headers, are reported."""
FEW = 20
"""Number of documents below which nothing is reported."""
SHOWN = 8


def without_header(text: str) -> str:
    r"""Return a mail without its header.

    >>> without_header("From: me\nSubject: rice\n\nRice and fish.\n")
    '\nRice and fish.\n'
    >>> without_header("Rice: a crop.\n")
    'Rice: a crop.\n'
    """
    found = HEADER.match(text)
    return text if found is None else text[found.end() :]


def header_field(text: str, name: str) -> str:
    r"""Return the value of a field in the header of a mail; empty if there is none. Case is ignored.

    >>> header_field("From: me\nDate: Mon, 20 Nov 1995\n\nDate: never\n", "date")
    'Mon, 20 Nov 1995'
    >>> header_field("From: me\nSubject: rice\n\nDate: never\n", "date")
    ''
    """
    header = HEADER.match(text)
    if header is None:
        return ""
    pattern = rf"^{re.escape(name)}:[ \t]*([^\n]*(?:\n[ \t]+[^\n]+)*)"
    found = re.search(pattern, header.group(), re.IGNORECASE | re.MULTILINE)
    return "" if found is None else " ".join(found.group(1).split())


def note_on_headers(texts: Sequence[str]) -> list[str]:
    """Return a sentence if many texts begin with the header of a mail."""
    found = [match.group() for match in map(HEADER.match, texts) if match is not None]
    if len(texts) < FEW or len(found) < COMMON * len(texts):
        return []
    fields = Counter(field for header in found for field in set(FIELD.findall(header)))
    names = shortened([field for field, _ in fields.most_common()], 4)
    return [
        f"{len(found):,} of {len(texts):,} documents begin with a header ({names}), whose words count:"
        " leave headers out with drop_headers=True."
    ]


def document_shares(counts: Any) -> Array:
    """Return the share of the documents that have each word, (V,), of counts (D, V)."""
    found: Array = np.bincount(counts.indices, minlength=counts.shape[1]) / counts.shape[0]
    return found


def note_on_common(counts: Any, words: Sequence[str]) -> list[str]:
    """Return a sentence on words that are in many documents, if there are any."""
    shares = document_shares(counts)
    common = [int(place) for place in np.argsort(-shares, kind="stable") if shares[place] > COMMON]
    if counts.shape[0] < FEW or not common:
        return []
    which = shortened([words[place] for place in common], SHOWN)
    subject = "1 word is" if len(common) == 1 else f"{len(common)} words are"
    return [
        f"{subject} in over {COMMON:.0%} of the documents: {which}. If they say nothing of a topic, leave "
        f"them out with drop_common={COMMON}."
    ]
