"""Names that people gave to topics, and topics that they merged, in a file that the explorer writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swiftem.core.types import Array, Index
from swiftem.show.numbers import counted
from swiftem.topics.plsa import PLSA

KIND = "topic names"
LARGEST = 1 << 24
"""Bytes of a file, at most."""
ALIKE = 0.3
"""Share of a topic's words that must be the same for a name to be used."""


@dataclass(frozen=True)
class TopicNames:
    """Names and groups of topics.

    Attributes
    ----------
    names : tuple of str
        A name for each group of topics; an empty one stands for the topic's words.
    groups : tuple of tuples of int
        The topics of each group; each topic is in one.
    words : tuple of tuples of str
        The first words of each topic, by which topics of another fit are recognised.
    """

    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    words: tuple[tuple[str, ...], ...]

    def apply(self, model: PLSA, words: Sequence[str]) -> tuple[PLSA, tuple[str, ...], list[str]]:
        """Return the model with topics merged, a name for each topic, and sentences on what did not fit.

        Topics are recognised by their first words, so that names survive another fit. A model that has as
        many topics as there are groups is taken as merged already.

        Parameters
        ----------
        model : PLSA
            Fitted.
        words : sequence of str, length V
            Its words.
        """
        n_topics, n_groups = len(model.components_), len(self.groups)
        most = max(map(len, self.words), default=0)
        tops = [set(top) for top in model.top_words(list(words), n=most, relevance=1.0)]
        if n_topics == len(self.words):
            groups, wanted = self.groups, [set(top) for top in self.words]
        elif n_topics == n_groups:
            groups = tuple((k,) for k in range(n_groups))
            wanted = [set().union(*(self.words[k] for k in group)) for group in self.groups]
        else:
            merged = "" if n_groups == len(self.words) else f", or {n_groups} after merging"
            raise ValueError(
                f"names must be of a model of {n_topics} topics, got names of {len(self.words)}{merged}."
            )
        place, alike = _matched(wanted, tops)
        merging, names, lost = [], [""] * n_topics, 0
        for name, group in zip(self.names, groups, strict=True):
            topics = sorted(int(place[k]) for k in group)
            if min(alike[k] for k in group) >= ALIKE:
                names[topics[0]] = name
                merging += [topics] if len(topics) > 1 else []
            else:
                lost += bool(name) or len(topics) > 1
        gone = {k for topics in merging for k in topics[1:]}
        notes = []
        if lost:
            do = "was" if lost == 1 else "were"
            notes.append(
                f"{counted(lost, 'name')} {do} not used: no topic has the words that the name was given to."
            )
        made = model.merge_topics(merging) if merging else model
        return made, tuple(name for k, name in enumerate(names) if k not in gone), notes


def read_names(file: Path) -> TopicNames:
    r"""Return the names of topics from a file that the explorer has written.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read or is something else.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "names.json")
    ...     _ = file.write_text(
    ...         '{"swiftem": "topic names", "words": [["fish"], ["rice"], ["pond"]], "topics": '
    ...         '[{"name": "Water", "merge": [0, 2]}, {"name": "", "merge": [1]}]}'
    ...     )
    ...     read_names(file)
    TopicNames(names=('Water', ''), groups=((0, 2), (1,)), words=(('fish',), ('rice',), ('pond',)))
    """
    if file.stat().st_size > LARGEST:
        raise ValueError(f"{file} must be names of topics, got a file of more than {LARGEST >> 20} MB.")
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        raise ValueError(f"{file} must be names of topics as the page exports them, got no JSON.") from None
    wrong = f"{file} must be names of topics as the page exports them, got JSON "
    if not isinstance(content, dict) or content.get("swiftem") != KIND:
        raise ValueError(wrong + f'without "swiftem": "{KIND}".')
    words: Any = content.get("words")
    topics: Any = content.get("topics")
    if not _is_list(words, lambda row: _is_list(row, lambda word: isinstance(word, str))):
        raise ValueError(wrong + 'whose "words" are not a list of words for each topic.')
    if not _is_list(topics, _is_topic):
        raise ValueError(wrong + 'whose "topics" do not have a "name" and numbers of topics to "merge".')
    if sorted(k for topic in topics for k in topic["merge"]) != list(range(len(words))):
        raise ValueError(wrong + f'whose "topics" do not have each number below {len(words)} once.')
    return TopicNames(
        tuple(" ".join(topic["name"].split()) for topic in topics),
        tuple(tuple(topic["merge"]) for topic in topics),
        tuple(tuple(row) for row in words),
    )


def _is_list(values: Any, has: Callable[[Any], bool]) -> bool:
    return isinstance(values, list) and bool(values) and all(map(has, values))


def _is_topic(topic: Any) -> bool:
    is_named = isinstance(topic, dict) and isinstance(topic.get("name"), str)
    return is_named and _is_list(topic.get("merge"), lambda k: type(k) is int)


def _matched(wanted: Sequence[set[str]], found: Sequence[set[str]]) -> tuple[Index, Array]:
    """Return the topic of each wanted set of words, and the share of its words that are found there."""
    from scipy.optimize import linear_sum_assignment

    same = np.array(
        [[len(one & other) / max(1, min(len(one), len(other))) for other in found] for one in wanted]
    )
    # Among topics that are equally alike, the one of the same number.
    _, place = linear_sum_assignment(-(same + 1e-6 * np.eye(len(same))))
    return place, same[np.arange(len(place)), place]
