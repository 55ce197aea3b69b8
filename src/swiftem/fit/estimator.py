"""The base class of all estimators: parameters, files, and checkpoints of clones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from swiftem.core.checks import TOO_LARGE
from swiftem.core.messages import warn
from swiftem.core.types import Tree
from swiftem.fit.checkpoint import FitCheckpoint, identity_of, kept_apart, place_of
from swiftem.fit.driver import Callbacks, FitState, Watcher
from swiftem.fit.history import History
from swiftem.fit.model_file import PARTS, ModelContent, load_arrays, save_arrays, to_header
from swiftem.fit.parameters import Allowed, check_parameters
from swiftem.fit.validated import as_table

__all__ = ["Estimator", "InterruptedWarning"]


class InterruptedWarning(ConvergenceWarning):  # type: ignore[misc]
    """Ctrl-C ended a fit; the estimator has what there was."""


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Parameters that are checked, ``save`` and ``load``, and clones with checkpoints of their own.

    A subclass declares what its parameters may be and which results its files have, returns its fitted
    arrays, and reads them after checks.
    """

    _allowed: ClassVar[Mapping[str, Sequence[Allowed]]] = {}
    """What the parameters may be."""
    _results: ClassVar[Mapping[str, type]] = {
        "converged_": bool,
        "n_iter_": int,
        "lower_bound_": float,
        "stationarity_": float,
        "log_likelihood_": float,
        "method_": str,
        "n_features_in_": int,
    }
    """Fitted attributes that are numbers or texts, and their types."""
    _layout: tuple[int, ...]
    verbose: int
    max_iter: int

    @abstractmethod
    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted parameters by their names in attributes and files."""

    @abstractmethod
    def _read_fitted(self, content: ModelContent, d: int) -> None:
        """Set the fitted parameters for ``d`` columns from a file, after checks."""

    def _state_to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what else a file has: header and arrays."""
        return {}, {}

    def _read_state(self, content: ModelContent, d: int) -> None:
        """Set what :meth:`_state_to_file` returned, after checks."""

    @classmethod
    def _file_types(cls) -> Mapping[str, type[Any]]:
        """Return the dataclasses among parameters, by their names in files."""
        return PARTS

    def _validate_params(self) -> None:
        """Raise ValueError for a parameter that cannot have its value."""
        check_parameters(self.get_params(deep=False), self._allowed)

    def _validated(self, X: Any, **options: Any) -> Any:
        """Return rows in memory as numbers, by scikit-learn's ``validate_data``, which takes the options.

        It sets the columns of the estimator, or compares them.
        """
        missing = getattr(self, "missing", None)  # mixtures have this parameter
        for_text = "" if missing is None else ', or use Mixture(family="auto") for text'
        rows = as_table(X, allow_missing=missing == "ignore", for_text=for_text)
        if missing == "ignore":
            options["ensure_all_finite"] = "allow-nan"
        with np.errstate(invalid="ignore"):  # it sums the data to look for infinities
            try:
                return validate_data(self, rows, **options)
            except OverflowError:
                raise ValueError(TOO_LARGE.format("X")) from None
            except ValueError as error:
                if missing is None or not str(error).startswith("Input X contains NaN"):
                    raise
                raise ValueError(
                    f"Input X contains NaN: give {type(self).__name__} missing='ignore' if cells are "
                    "missing at random, or fill in or leave out such rows."
                ) from None

    def __sklearn_clone__(self) -> Any:
        """Return a clone whose fits have a folder of their own in the block of :func:`swiftem.checkpoint`.

        ``GridSearchCV`` and others fit clones, several at a time, with other parameters and to other rows.
        """
        return kept_apart(super().__sklearn_clone__(), vars(self).get("_checkpoint"))

    def _checkpoint_of(self, data: Any, started_from: Tree = None) -> FitCheckpoint:
        """Return the checkpoints of a fit to data that begins now, from given parameters or from new ones."""
        place = place_of(vars(self).get("_checkpoint"))
        if place is None:
            return FitCheckpoint()
        parameters = self.get_params(deep=False)
        return FitCheckpoint(
            place, identity_of(type(self).__name__, parameters, data.fingerprint(), started_from)
        )

    def _warn_of_end(self, fit: FitState, not_converged: str) -> None:
        """Warn of a fit that was interrupted or did not converge."""
        if fit.interrupted:
            said = f"The fit was interrupted after {fit.passes:.1f} passes; the model is as it was then."
            warn(said, InterruptedWarning)
        elif not fit.converged:
            warn(not_converged, ConvergenceWarning)

    def _watcher(
        self,
        n_starts: int,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        most_passes: int | None = None,
        title: str = "",
        at_once: bool = True,
    ) -> Watcher:
        """Return the observer of a call of ``fit`` with these arguments; the others are its own."""
        callbacks = None
        if getattr(self, "_skl_callbacks", None):
            metadata = None if sample_weight is None else {"sample_weight": sample_weight}
            arguments = {"estimator": self, "X": X, "y": y, "metadata": metadata}

            def begin(starts: int) -> Any:
                return self._init_callback_context(max_subtasks=starts)

            callbacks = Callbacks(begin, arguments, self.attributes_of, most_passes)
        interval = getattr(self, "verbose_interval", 10)
        return Watcher(n_starts, self.verbose, interval, self.max_iter, title, callbacks, at_once)

    @abstractmethod
    def attributes_of(self, theta: Any) -> dict[str, Any]:
        """Return the attributes for the parameters of a fit; estimators that take callbacks have it."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file: arrays and a JSON header, no pickle.

        Functions and random generators among the parameters are not saved: defaults replace them.

        Parameters
        ----------
        path : str or Path
            The file; an existing one is replaced atomically.
        """
        header, arrays = self._to_file()
        if layout := getattr(self, "_layout", ()):
            header["layout"] = list(layout)
        save_arrays(path, type(self).__name__, header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the model that :meth:`save` wrote; raise an error for a damaged or foreign file.

        Parameters
        ----------
        path : str or Path
            The file; nothing in it is executed.
        """
        content = ModelContent(*load_arrays(path, cls.__name__), cls._file_types())
        try:
            made = cls._from_file(content)
            if "layout" in content.header:
                made._layout = content.layout()
            return made
        except MemoryError:
            raise MemoryError(f"{path} needs more memory than is available") from None
        except Exception as error:  # any failure here is the file's fault
            what = " ".join(str(error).split()).rstrip(".")
            raise ValueError(f"{path} is not a valid {cls.__name__}: {what[:300]}.") from None

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        check_is_fitted(self)
        state, arrays = self._state_to_file()
        parameters: dict[str, Any] = {}
        types = self._file_types()
        for name, value in self.get_params(deep=False).items():
            try:
                parameters[name] = to_header(value, types)
            except TypeError:  # a default replaces it
                continue
        parameters.pop("device", None)  # it belongs to the machine
        header = {"parameters": parameters} | {name: getattr(self, name, None) for name in self._results}
        if hasattr(self, "feature_names_in_"):
            header["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        history: History = getattr(self, "history_", History())
        header |= {"history": [list(moment) for moment in history], "moves": history.moves}
        arrays |= self._fitted_arrays()
        arrays["lower_bounds_"] = np.asarray(getattr(self, "lower_bounds_", []), dtype=np.float64)
        return header | state, arrays

    @classmethod
    def _from_file(cls, content: ModelContent) -> Self:
        made = cls(**content.parameters())
        made._validate_params()
        d = content.integer("n_features_in_", 1)
        # First the arrays, whose size is bounded by the file's: the header may claim any size.
        made._read_fitted(content, d)
        for name, kind in cls._results.items():
            setattr(made, name, content.result(name, kind))
        names = content.names(d)
        if names is not None:
            made.feature_names_in_ = names
        made.lower_bounds_ = content.array("lower_bounds_", (None,), finite=False).tolist()
        made.history_ = content.history()
        made._read_state(content, d)
        return made
