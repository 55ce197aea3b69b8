"""The base class of all estimators: parameters, files, and checkpoints of clones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from swiftem.fit.checkpoint import kept_apart
from swiftem.fit.model_content import ModelContent
from swiftem.fit.parameters import Allowed, check_parameters
from swiftem.fit.persistence import load_arrays, save_arrays

__all__ = ["Estimator"]


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Parameters that are checked, ``save`` and ``load``, and clones with checkpoints of their own."""

    _allowed: ClassVar[Mapping[str, Sequence[Allowed]]] = {}
    """What the parameters may be."""
    _layout: tuple[int, ...]

    @abstractmethod
    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted model as header and arrays."""

    @classmethod
    @abstractmethod
    def _from_file(cls, content: ModelContent) -> Self:
        """Return the model of a file, after checks."""

    def _validate_params(self) -> None:
        """Raise ValueError for a parameter that cannot have its value."""
        check_parameters(self.get_params(deep=False), self._allowed)

    def __sklearn_clone__(self) -> Any:
        """Return a clone whose fits have a folder of their own in the block of :func:`swiftem.checkpoint`.

        ``GridSearchCV`` and others fit clones, several at a time, with other parameters and to other rows.
        """
        return kept_apart(super().__sklearn_clone__(), vars(self).get("_checkpoint"))

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
        content = ModelContent(*load_arrays(path, cls.__name__))
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
