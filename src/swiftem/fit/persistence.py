"""Models in files, without pickle: arrays, and a header that describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.files import replacing
from swiftem.core.state_file import read_tree, write_tree

__all__ = ["load_arrays", "plain", "read_header", "save_arrays", "shown"]

FORMAT = "swiftem model, format 2"
LARGEST_HEADER = 16 << 20
"""Maximum bytes of the header: JSON takes up to thirty times as much in memory."""
LARGEST_TEXT = 1 << 16
"""Maximum bytes of the line that names the arrays and their shapes."""


def save_arrays(path: str | Path, kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays and a header to a file, atomically.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist. An existing file is replaced and keeps its permissions; a
        link is replaced, and its target stays as it is.
    kind : str
        Kind of the content, such as ``"GaussianMixture"``.
    header : dict
        Content for JSON.
    arrays : dict of str to ndarray
        Numbers; no objects.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from swiftem.fit.persistence import load_arrays, save_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_arrays(pathlib.Path(folder, "toy"), "Toy", {"a": 1}, {"x": np.arange(3)})
    ...     load_arrays(pathlib.Path(folder, "toy"), "Toy")
    ({'a': 1}, {'x': array([0, 1, 2])})
    """
    import swiftem

    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"path must be a file, got the folder {path}.")
    if target.exists() and not target.is_file():
        raise ValueError(f"path must be an ordinary file, got {path}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must be in a folder that exists, got {path}.")
    text = json.dumps(header).encode()
    if len(text) > LARGEST_HEADER:
        raise ValueError(
            f"{path} cannot hold the names of so many columns ({len(text):,} bytes; {LARGEST_HEADER:,} are "
            "allowed): delete feature_names_in_ first."
        )
    content = {
        "swiftem": swiftem.__version__,
        "numpy": np.__version__,
        "kind": kind,
        "header": np.frombuffer(text, np.uint8),
        "arrays": {name: np.asarray(array, order="C") for name, array in arrays.items()},
    }
    try:
        with replacing(target) as file:
            write_tree(file, FORMAT, content, "a model")
    except OSError as error:
        raise type(error)(error.errno, f"{path} cannot be written: {error.strerror}.") from None


def plain(value: Any) -> Any:
    """Return a NumPy number as Python's, for JSON; other values unchanged.

    >>> plain(np.int64(3)), plain("auto")
    (3, 'auto')
    """
    return value.item() if isinstance(value, np.generic) else value


def read_header(path: str | Path) -> dict[str, Any]:
    """Return the description of a file of :func:`save_arrays`: kind, header, versions of swiftem and NumPy.

    Raises
    ------
    FileNotFoundError, PermissionError, ValueError
        As :func:`load_arrays`.
    """
    content = _read(Path(path))
    del content["arrays"]
    return content


def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file of :func:`save_arrays`; nothing in it is executed.

    Raises
    ------
    FileNotFoundError, PermissionError, ValueError
        If the file is missing, cannot be read, is damaged, is not a swiftem model, is of another kind or of
        another version; the message is one sentence.
    """
    content = _read(Path(path))
    if content["kind"] != kind:
        raise ValueError(f"{path} holds a {shown(content['kind'])}, not a {kind}.")
    return content["header"], content["arrays"]


def _read(target: Path) -> dict[str, Any]:
    """Return the content of a file, with its header as a dict."""
    if not target.is_file():
        raise FileNotFoundError(f"There is no file {target}.")
    try:
        with open(target, "rb") as file:
            content, _ = read_tree(file, FORMAT, largest_text=LARGEST_TEXT)
            if file.read(1) or content["header"].nbytes > LARGEST_HEADER:
                raise ValueError("it is too long")
        header = json.loads(content["header"].tobytes())
        arrays = {name: array for name, array in content["arrays"].items() if isinstance(array, np.ndarray)}
        if not isinstance(header, dict):
            raise TypeError("its header is of another type")
        return {**content, "kind": content["kind"], "header": header, "arrays": arrays}
    except MemoryError:
        raise MemoryError(f"{target} needs more memory than is available") from None
    except OSError as error:
        raise type(error)(f"{target} cannot be read ({(error.strerror or str(error)).lower()}).") from None
    except Exception as error:  # a damaged or foreign file may make the reader fail in any way
        reason = str(error) if type(error) is ValueError else "its content cannot be read"
        raise ValueError(
            f"{target} is damaged, or not a model file of this version of swiftem ({reason})."
        ) from None


def shown(value: Any) -> str:
    """Return a name or a version from a file as part of a sentence.

    >>> shown("1.2"), shown({"a": 1}), shown(None)
    ('1.2', '(unknown)', '(unknown)')
    """
    is_short = isinstance(value, str) and 0 < len(value) <= 100
    return value if is_short and value.isascii() and value.isprintable() else "(unknown)"
