"""What of :class:`swiftem.PLSA` is kept in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._typing import Array
from swiftem.estimators.history import History, Moment
from swiftem.estimators.persistence import plain

__all__ = ["TopicFile"]

PLAIN = (
    "n_components", "method", "leave_one_out", "sampling", "max_iter", "tol", "verbose", "verbose_interval",
    "memory_limit",
)  # fmt: skip
ELSE_AUTO = ("batch_size", "step_size", "init", "n_init")
"""Parameters that may be functions or arrays; those are not kept."""
RESULTS = ("converged_", "n_iter_", "log_likelihood_", "stationarity_", "method_", "n_features_in_")


class TopicFile:
    """What ``save`` and ``load`` of :class:`swiftem.PLSA` write and read: no document of the corpus."""

    if TYPE_CHECKING:
        random_state: Any
        alpha: ArrayLike
        beta: ArrayLike
        components_: Array
        topic_counts_: Array
        feature_names_in_: NDArray[Any]
        history_: History
        _word_counts: Array

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        parameters = {name: plain(getattr(self, name)) for name in PLAIN}
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
        header["history"] = [list(moment) for moment in getattr(self, "history_", [])]
        arrays = {
            "alpha": np.asarray(self.alpha, dtype=np.float64),
            "beta": np.asarray(self.beta, dtype=np.float64),
            "components_": self.components_,
            "topic_counts_": self.topic_counts_,
            "word_counts": self._word_counts,
        }
        return header, arrays

    @classmethod
    def _from_file(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        made = cls(**header["parameters"])
        made.alpha, made.beta = (a.item() if a.ndim == 0 else a for a in (arrays["alpha"], arrays["beta"]))
        made.components_, made.topic_counts_ = arrays["components_"], arrays["topic_counts_"]
        made._word_counts = arrays["word_counts"]
        for name in RESULTS:
            if header[name] is not None:
                setattr(made, name, header[name])
        if "feature_names_in_" in header:
            made.feature_names_in_ = np.array(header["feature_names_in_"], dtype=object)
        made.history_ = History([Moment(*moment) for moment in header["history"]])
        return made
