"""Topics of a stream of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from swiftem.core.checks import check_int, shown
from swiftem.core.types import Array
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.documents import RunningCounts
from swiftem.topics.documents import m_step
from swiftem.topics.input import documents_for, facts_of
from swiftem.topics.resolve import TopicSpec, resolve

__all__ = ["TopicStream"]

STREAM_BATCH, STREAM_ROUNDS, STREAM_START, STREAM_POWER = 128, (10, 1e-2), 2000.0, 2.0
"""``partial_fit``: documents per step, rounds of folding in, weight of the initial topics in tokens, and the
power with which old documents are forgotten in a stream that begins with ``partial_fit`` (1 would weigh all
alike, also those of the initial topics). After a ``fit`` it is 1: every token counts once."""


class TopicStream:
    """``partial_fit`` of :class:`swiftem.PLSA`."""

    if TYPE_CHECKING:
        n_components: int
        random_state: Any
        components_: Array
        doc_topic_: Array
        topic_counts_: Array
        n_iter_: int
        n_features_in_: int
        alpha: ArrayLike | str
        beta: ArrayLike | str
        background_: int | None
        _word_counts: Array
        _is_stream: bool

        @property
        def _learns_alpha(self) -> bool: ...
        def _validate_params(self) -> None: ...
        def _counts(self, X: Any, *, reset: bool) -> Any: ...
        def _weights(
            self, sample_weight: ArrayLike | None, X: Any, *, may_be_zero: bool = False
        ) -> Array | None: ...
        def _table_type(self, documents: Documents) -> type: ...
        def _alpha(self) -> Array: ...
        def _beta(self, n_words: int) -> Array: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...  # noqa: D102
        def _starts(self, documents: Documents, spec: TopicSpec, random_state: Any) -> list[Array]: ...

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update the model with more documents, by online EM, in any number of calls.

        ``doc_topic_`` has the topics of the documents of this call. After ``fit``, also if the model was
        saved and loaded, every token counts once, those of the fit included. A model that begins with
        ``partial_fit`` forgets its first documents slowly, as their topics were poor. Neither follows topics
        that change: for this, fit again.
        """
        self._validate_params()
        first = not hasattr(self, "components_")
        X = self._counts(X, reset=first)
        if not first and len(self.components_) != self.n_components:
            raise ValueError(
                f"n_components must stay {len(self.components_)} while documents are added, "
                f"got {self.n_components}."
            )
        weight = self._weights(sample_weight, X, may_be_zero=not first)
        documents = documents_for(X, weight, self.n_components)
        documents.dtype = self._table_type(documents)
        if first and self._learns_alpha:
            raise ValueError(
                f"alpha must be numbers for partial_fit of a new model, got {self.alpha!r}: fit learns it."
            )
        alpha, beta = self._alpha(), self._beta(X.shape[1])
        if first:
            self.background_, self._is_stream = None, True
            spec = resolve(self.get_params(deep=False), facts_of(documents))
            (topics,) = self._starts(
                documents, replace(spec, n_starts=1), check_random_state(self.random_state)
            )
            self._word_counts, self.n_iter_ = topics * (STREAM_START / len(topics)), 0
        power = STREAM_POWER if self.__dict__.get("_is_stream", False) else 1.0
        seen = first_seen = float(self._word_counts.sum())
        running = RunningCounts(self._word_counts.T, beta, seen)
        for start in range(0, documents.n, STREAM_BATCH):
            batch: Any = documents.take(np.arange(start, min(start + STREAM_BATCH, documents.n))).y
            if batch.total > 0:
                uniform = np.full((batch.n, len(alpha)), 1.0 / len(alpha))
                change, _ = batch.sums(uniform, running.topics_at(batch.words), alpha, *STREAM_ROUNDS)
                gamma = 1.0 - (seen / (seen + batch.total)) ** power
                running.step(batch.words, change * (first_seen / batch.total), gamma)
                seen += batch.total
                running.tokens = seen
        self._word_counts = np.ascontiguousarray(running.counts().T) * (seen / first_seen)
        self.components_ = np.ascontiguousarray(m_step(self._word_counts, beta))
        self.doc_topic_ = documents.fold_in(self.components_, alpha)[0]
        self.topic_counts_ = self._word_counts.sum(axis=1)
        for name in ("history_", "stationarity_", "log_likelihood_"):
            self.__dict__.pop(name, None)  # from an earlier fit
        self.method_, self.converged_, self.n_iter_ = "sem", False, self.n_iter_ + 1
        return self

    def add_words(self, words: int | Sequence[str]) -> Self:
        """Add words that the model has not seen, as further columns after the existing ones.

        Topics learn them in the next ``partial_fit``, whose X must have these columns, too.

        Parameters
        ----------
        words : int or sequence of str
            How many; or their names, if the columns have names.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> model = swiftem.PLSA(2, random_state=0).fit(np.array([[4, 3, 0, 0], [0, 0, 2, 5]]))
        >>> model = model.add_words(1).partial_fit(np.array([[3, 2, 0, 0, 4], [0, 0, 3, 3, 0]] * 9))
        >>> model.components_.shape, model.components_[:, 4].argmax() == model.components_[:, 0].argmax()
        ((2, 5), np.True_)
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        given = isinstance(words, Sequence | np.ndarray) and not isinstance(words, str | bytes | bytearray)
        new = [str(word) for word in np.ravel(np.asarray(words, dtype=object))] if given else []
        if isinstance(words, str | bytes | bytearray) or (given and not new):
            raise ValueError(f"words must be a positive number or a list of words, got {shown(words)}.")
        count = len(new) if given else check_int("words", words, minimum=1)
        if names is not None and not new:
            raise ValueError("words must be names, as the columns that the model was fitted with have names.")
        known = set() if names is None else set(names)
        twice = [word for number, word in enumerate(new) if word in known or word in new[:number]]
        if twice:
            raise ValueError(
                f"words must be new and distinct, got {shown(twice[0])}: already in the vocabulary or "
                "given twice."
            )
        if np.ndim(self.beta):
            raise ValueError(
                f"beta must be a number if words are added, got shape {np.shape(self.beta)}: set it again."
            )
        self._word_counts = np.pad(self._word_counts, ((0, 0), (0, count)))
        self.n_features_in_ += count
        if names is not None:
            self.feature_names_in_ = np.append(names, np.array(new, dtype=object))
        self.components_ = np.ascontiguousarray(m_step(self._word_counts, self._beta(self.n_features_in_)))
        return self
