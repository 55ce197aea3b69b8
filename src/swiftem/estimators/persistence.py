"""Models in files, without pickle: arrays, and a header that says what they are."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from swiftem._cache import write_atomically

__all__ = ["FORMAT", "Persistent", "load_arrays", "save_arrays"]

FORMAT = 1
"""Number of the layout; files with a higher one are refused."""
HEADER = "header.json"
LARGEST_HEADER = 16 << 20


def save_arrays(path: str | Path, kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays and a header to a file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    kind : str
        What it holds, such as ``"GaussianMixture"``.
    header : dict
        What JSON can hold.
    arrays : dict of str to ndarray
        Numbers; no objects.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from swiftem.estimators.persistence import load_arrays, save_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_arrays(pathlib.Path(folder, "toy"), "Toy", {"a": 1}, {"x": np.arange(3)})
    ...     load_arrays(pathlib.Path(folder, "toy"), "Toy")
    ({'a': 1}, {'x': array([0, 1, 2])})
    """
    import numpy

    import swiftem

    full = {
        "swiftem": swiftem.__version__, "numpy": numpy.__version__, "format": FORMAT, "kind": kind, "header": header,
    }  # fmt: skip
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        file.writestr(HEADER, json.dumps(full, indent=1, allow_nan=True))
        for name, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.asarray(array, order="C"), allow_pickle=False)
            file.writestr(f"{name}.npy", part.getvalue())
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must be in a folder that exists, got {target}.")
    write_atomically(target, buffer.getvalue())
    target.chmod(0o644)


def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file of :func:`save_arrays`.

    Raises
    ------
    FileNotFoundError, ValueError
        Where the file is missing, damaged, of another kind or of a later version, in one sentence.
    """
    target = Path(path)
    if not target.is_file():
        raise FileNotFoundError(f"There is no file {target}.")
    try:
        with zipfile.ZipFile(target) as file:
            broken = file.testzip()
            if broken is not None:
                raise ValueError(
                    f"{target} is damaged: its part {broken} does not have the checksum it should."
                )
            if HEADER not in file.namelist() or file.getinfo(HEADER).file_size > LARGEST_HEADER:
                raise ValueError(f"{target} is no swiftem model: it has no header.")
            full = json.loads(file.read(HEADER))
            if not isinstance(full, dict) or not {"format", "kind", "header"} <= set(full):
                raise ValueError(f"{target} is no swiftem model: its header is another's.")
            if full["format"] > FORMAT:
                raise ValueError(
                    f"{target} was written by swiftem {full.get('swiftem')}, whose files this version cannot read."
                )
            if full["kind"] != kind:
                raise ValueError(f"{target} holds a {full['kind']}, not a {kind}.")
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(file.read(name)), allow_pickle=False
                )
                for name in file.namelist()
                if name.endswith(".npy")
            }
    except (zipfile.BadZipFile, json.JSONDecodeError, UnicodeDecodeError, EOFError, OSError) as error:
        if isinstance(error, PermissionError):
            raise
        raise ValueError(f"{target} is no swiftem model, or damaged: {error}.") from None
    return full["header"], arrays


class Persistent:
    """Adds ``save`` and ``load`` to an estimator.

    The estimator says what there is to keep: ``_to_file()`` returns (header, arrays), and ``_from_file``
    takes them.
    """

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file: arrays and a JSON header, no pickle.

        Parameters
        ----------
        path : str or Path
            The file; one that exists is replaced, whole or not at all.
        """
        header, arrays = self._to_file()
        save_arrays(path, type(self).__name__, header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the model that :meth:`save` wrote; a damaged or foreign file is refused with a sentence."""
        header, arrays = load_arrays(path, cls.__name__)
        try:
            return cls._from_file(header, arrays)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is damaged: {error} is missing or wrong in it.") from None

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        raise NotImplementedError

    @classmethod
    def _from_file(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        raise NotImplementedError
