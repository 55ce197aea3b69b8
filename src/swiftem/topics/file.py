"""The content of the file of a :class:`swiftem.PLSA`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import check_simplex, in_numpy
from swiftem.core.types import Array
from swiftem.fit.history import History
from swiftem.fit.model_file import LARGEST, ModelContent, plain
from swiftem.methods import Method
from swiftem.topics.learned_alpha import LEARN
from swiftem.topics.resolve import first_alpha

PLAIN = (
    "n_components",
    "background",
    "decorrelation",
    "method",
    "max_iter",
    "tol",
    "verbose",
    "verbose_interval",
)
ELSE_AUTO = ("init", "n_init")
"""Parameters that may be functions or arrays; those are not saved."""
RESULTS = {
    "converged_": bool,
    "n_iter_": int,
    "log_likelihood_": float,
    "stationarity_": float,
    "method_": str,
    "n_features_in_": int,
}


OF_FIT = ("log_likelihood_", "stationarity_")
"""Attributes that ``partial_fit`` does not set."""


class TopicFile:
    """The content that ``save`` and ``load`` of :class:`swiftem.PLSA` write and read: no documents."""

    if TYPE_CHECKING:
        n_components: int
        method: str | Method
        random_state: Any
        alpha: ArrayLike | str
        beta: ArrayLike | str
        components_: Array
        topic_counts_: Array
        feature_names_in_: NDArray[Any]
        history_: History
        background_: int | None
        alpha_: Array
        _word_counts: Array
        _is_stream: bool

        def __init__(self, **parameters: Any) -> None: ...
        def _validate_params(self) -> None: ...
        def _beta(self, n_words: int) -> Array: ...

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        parameters = {name: plain(getattr(self, name)) for name in PLAIN}
        if isinstance(self.method, Method):
            parameters["method"] = self.method.name
        for name in ELSE_AUTO:
            value = plain(getattr(self, name))
            parameters[name] = value if isinstance(value, int | float | str) else "auto"
        seed = plain(self.random_state)
        parameters["random_state"] = seed if isinstance(seed, int) else None
        header: dict[str, Any] = {"parameters": parameters}
        for name in RESULTS:
            header[name] = plain(getattr(self, name, None))
        if hasattr(self, "feature_names_in_"):
            header["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        header |= {"learns_alpha": isinstance(self.alpha, str), "background_": self.background_}
        header["auto_beta"] = isinstance(self.beta, str)
        header["is_stream"] = bool(self.__dict__.get("_is_stream", False))
        header["history"] = [list(moment) for moment in getattr(self, "history_", [])]
        arrays = {
            "alpha": np.asarray(
                self.alpha_ if isinstance(self.alpha, str) else in_numpy(self.alpha), dtype=np.float64
            ),
            "beta": np.asarray(0.0 if isinstance(self.beta, str) else in_numpy(self.beta), dtype=np.float64),
            "components_": self.components_,
            "topic_counts_": self.topic_counts_,
            "word_counts": self._word_counts,
        }
        return header, arrays

    @classmethod
    def _from_file(cls, content: ModelContent) -> Self:
        parameters = content.parameters()
        if set(parameters) - {*PLAIN, *ELSE_AUTO, "random_state"}:
            raise ValueError("parameters must be those of an estimator")
        made = cls(**parameters)
        made._validate_params()
        K, V = made.n_components, content.integer("n_features_in_", 1)
        # First the arrays, whose size is bounded by the file's: the header may claim any size.
        made.components_ = content.array("components_", (K, V))
        check_simplex("components_", made.components_)
        made.alpha, made.beta = (_strength(content, name) for name in ("alpha", "beta"))
        if "auto_beta" in content.header and content.result("auto_beta", bool):
            made.beta = "auto"
        made.alpha_ = alpha = first_alpha(made.alpha, K)
        beta = np.broadcast_to(made._beta(V), (K, V))
        if "learns_alpha" in content.header and content.result("learns_alpha", bool):
            made.alpha = LEARN
        made.background_ = content.result("background_", int) if "background_" in content.header else None
        if made.background_ is not None and made.background_ >= K:
            raise ValueError(f"background_ must be one of the {K} topics, got {made.background_}")
        if not (alpha.sum() <= LARGEST and beta.sum() <= LARGEST):
            raise ValueError(f"alpha and beta must sum to at most {LARGEST:g}")
        made.topic_counts_ = content.array("topic_counts_", (K,))
        if not made.topic_counts_.sum() > 0:
            raise ValueError("topic_counts_ must have a positive sum")
        made._word_counts = content.array("word_counts", (K, V))
        _check_counts(made._word_counts, beta)
        made._is_stream = "is_stream" in content.header and bool(content.result("is_stream", bool))
        for name, kind in RESULTS.items():
            value = content.result(name, kind)
            if value is None and name not in OF_FIT:
                raise ValueError(f"{name} is missing")
            if value is not None:
                setattr(made, name, value)
        names = content.names(V)
        if names is not None:
            made.feature_names_in_ = names
        made.history_ = content.history()
        return made


def _strength(content: ModelContent, name: str) -> float | Array:
    """Return α or β: a number, or an array of any shape, which is checked later."""
    found = content.array(name, (None,) * np.ndim(content.arrays.get(name, 0.0)))
    return float(found) if found.ndim == 0 else found


def _check_counts(counts: Array, beta: Array) -> None:
    """Raise ValueError if running counts are too large to add to, or to divide a topic's counts by.

    sem-vr may leave some of them, even a topic's total, below zero: these are read as zero.
    """
    totals = counts.sum(axis=1) + beta.sum(axis=1)
    least = LARGEST ** -(2 / 3) * np.abs(counts).max(axis=1)
    if not 1 / LARGEST <= counts.sum() <= LARGEST or ((totals > 0) & (totals < least)).any():
        raise ValueError("word_counts must have a positive sum, and totals that they can be divided by")
