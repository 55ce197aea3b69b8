"""Topics as a table to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from swiftem.show.numbers import counted, share_text
from swiftem.show.table import Table

if TYPE_CHECKING:
    from swiftem.topics.plsa import PLSA

__all__ = ["topic_table"]


def topic_table(
    model: PLSA,
    names: Sequence[str] = (),
    coherence: ArrayLike | None = None,
    shares: ArrayLike | None = None,
    n_words: int = 10,
) -> Table:
    """Return the topics with their words, the most prevalent first.

    Parameters
    ----------
    model : PLSA
        Fitted.
    names : sequence of str, length K
        Names that somebody gave to topics, or nothing.
    coherence : array-like, shape (K,), optional
        A further column.
    shares : array-like, shape (K,), optional
        Shares of the topics; by default of the corpus that was fitted.
    n_words : int
        Number of words of a topic.
    """
    heads = None
    if not hasattr(model, "feature_names_in_"):
        heads = [f"word {v}" for v in range(model.n_features_in_)]
    words = model.top_words(heads, n=n_words)
    prevalence = np.asarray(model.topic_prevalence() if shares is None else shares)
    columns: dict[str, list[object]] = {"topic": [], "share": [], "coherence": [], "words": []}
    for k in np.argsort(-prevalence, kind="stable").tolist():
        name = (names[k] if names else "") or ("background" if k == model.background_ else "")
        columns["topic"].append(k)
        columns["share"].append(share_text(prevalence[k]))
        columns["coherence"] += [] if coherence is None else [np.asarray(coherence)[k]]
        columns["words"].append(f"{name}: {', '.join(words[k])}" if name else ", ".join(words[k]))
    shown = {head: cells for head, cells in columns.items() if cells}
    rows = list(zip(*shown.values(), strict=True))
    formats = {"coherence": lambda value: f"{value:z.2f}"}
    return Table(counted(len(words), "topic"), list(shown), rows, formats=formats, n_index=2)
