"""Models in files, without pickle: arrays, and a header that describes them."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from swiftem.estimators.model_content import ModelContent
from swiftem.files.durable import array_bytes, read_array, write_atomically

__all__ = [
    "FORMAT",
    "HEADER",
    "LARGEST_HEADER",
    "Persistent",
    "load_arrays",
    "plain",
    "read_header",
    "read_parts",
    "save_arrays",
    "shown",
]

FORMAT = 1
"""Version of the layout; files with a higher one are not read."""


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
    >>> from swiftem.estimators.persistence import load_arrays, save_arrays
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
    full = {
        "swiftem": swiftem.__version__, "numpy": np.__version__, "format": FORMAT, "kind": kind,
        "header": header,
    }  # fmt: skip
    text = json.dumps(full, indent=1, allow_nan=True).encode()
    if len(text) > LARGEST_HEADER:
        raise ValueError(
            f"{path} cannot hold the names of so many columns ({len(text):,} bytes; {LARGEST_HEADER:,} are "
            "allowed): delete feature_names_in_ first."
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        file.writestr(HEADER, text)
        for name, array in arrays.items():
            file.writestr(f"{name}.npy", array_bytes(np.asarray(array, order="C")))
    try:
        write_atomically(target, buffer.getvalue())
    except OSError as error:
        raise type(error)(error.errno, f"{path} cannot be written: {error.strerror}.") from None


def plain(value: Any) -> Any:
    """Return a NumPy number as Python's, for JSON; other values unchanged.

    >>> plain(np.int64(3)), plain("auto")
    (3, 'auto')
    """
    return value.item() if isinstance(value, np.generic) else value


def read_header(path: str | Path) -> dict[str, Any]:
    """Return the description of a file of :func:`save_arrays`: format, kind, header, and version of swiftem.

    Raises
    ------
    FileNotFoundError, PermissionError, ValueError
        As :func:`load_arrays`.
    """
    return _header(Path(path), _read(Path(path), only=HEADER))


def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file of :func:`save_arrays`; nothing in it is executed.

    Raises
    ------
    FileNotFoundError, PermissionError, ValueError
        If the file is missing, cannot be read, is damaged, is not a swiftem model, is of another kind or of a
        later version; the message is one sentence.
    """
    target = Path(path)
    parts = _read(target)
    full = _header(target, parts)
    if type(full["format"]) is not int or full["format"] > FORMAT:
        raise ValueError(
            f"{target} was written by swiftem {shown(full.get('swiftem'))}, whose files this version cannot "
            "read."
        )
    if full["kind"] != kind:
        raise ValueError(f"{target} holds a {shown(full['kind'])}, not a {kind}.")
    if not isinstance(full["header"], dict):
        raise ValueError(f"{target} is not a swiftem model, or is damaged.")
    arrays = {}
    try:
        for name in sorted(set(parts) - {HEADER}):
            arrays[name.removesuffix(".npy")] = read_array(parts.pop(name))
    except MemoryError:
        raise
    except Exception:
        raise ValueError(f"{target} is damaged: an array in it cannot be read.") from None
    return full["header"], arrays


def _read(target: Path, only: str | None = None) -> dict[str, bytes]:
    """Return the parts of a file, or one of them."""
    if not target.is_file():
        raise FileNotFoundError(f"There is no file {target}.")
    try:
        with open(target, "rb") as file:
            return read_parts(file, only)
    except MemoryError:
        raise MemoryError(f"{target} needs more memory than is available") from None
    except OSError as error:
        if error.errno is None:
            raise ValueError(f"{target} is not a swiftem model, or is damaged.") from None
        raise type(error)(f"{target} cannot be read ({(error.strerror or str(error)).lower()}).") from None
    except Exception:  # a damaged or foreign file may hold anything, and make the reader fail in any way
        raise ValueError(f"{target} is not a swiftem model, or is damaged.") from None


def _header(target: Path, parts: dict[str, bytes]) -> dict[str, Any]:
    if HEADER not in parts:
        raise ValueError(f"{target} is not a swiftem model: it has no header.")
    try:
        full = json.loads(parts[HEADER])
    except (ValueError, RecursionError):
        raise ValueError(f"{target} is not a swiftem model, or is damaged.") from None
    if not isinstance(full, dict) or not {"format", "kind", "header"} <= set(full):
        raise ValueError(f"{target} is not a swiftem model: its header is unknown.")
    return full


def shown(value: Any) -> str:
    """Return a name or a version from a file as part of a sentence.

    >>> shown("1.2"), shown({"a": 1}), shown(None)
    ('1.2', '(unknown)', '(unknown)')
    """
    is_short = isinstance(value, str) and 0 < len(value) <= 100
    return value if is_short and value.isascii() and value.isprintable() else "(unknown)"


class Persistent:
    """Adds ``save`` and ``load`` to an estimator.

    The estimator implements ``_to_file()``, which returns (header, arrays), and ``_from_file``, which takes
    and validates them.
    """

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

    if TYPE_CHECKING:  # attributes of the estimator
        _layout: tuple[int, ...]

        def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]: ...

        @classmethod
        def _from_file(cls, content: ModelContent) -> Self: ...


HEADER = "header.json"
LARGEST_HEADER = 16 << 20
"""Maximum bytes of the header: JSON takes up to thirty times as much in memory."""
LARGEST_DIRECTORY = 1 << 16
"""Maximum bytes of the zip's directory, each entry of which takes a hundred or more in memory."""
MOST_PARTS = 64
END, END_64 = struct.Struct("<4s8xL6x"), struct.Struct("<4s36xQ8x")
"""End record of a zip, and the additional one of a large zip: signature, and size of the directory."""
LOCATOR = 20
"""Bytes between the two."""


def read_parts(file: BinaryIO, only: str | None = None) -> dict[str, bytes]:
    """Return the parts by name, or just one of them; raises ValueError and others for invalid files.

    At most the file's length is read, however often the file lists its parts and whatever lengths it claims.
    """
    size = file.seek(0, os.SEEK_END)
    if _directory_size(file, size) > LARGEST_DIRECTORY:
        raise ValueError("the list of its parts is too long")
    with zipfile.ZipFile(file) as parts:
        found = parts.infolist()
        names = {info.filename for info in found}
        if len(found) > MOST_PARTS or len(names) < len(found):
            raise ValueError("parts are there twice, or too many")
        if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 for info in found):
            raise ValueError("parts are never compressed or encrypted")
        # Stored parts have two equal lengths; zipfile would allocate as much as the second says.
        if sum(max(info.file_size, info.compress_size) for info in found) > size:
            raise ValueError("parts are longer than the file")
        if HEADER in names and parts.getinfo(HEADER).file_size > LARGEST_HEADER:
            raise ValueError("the header is too long")
        # Reading verifies the checksum.
        return {name: parts.read(name) for name in names if only is None or name == only}


def _directory_size(file: BinaryIO, size: int) -> int:
    """Return the size of the zip's directory, which :mod:`zipfile` would read first."""
    file.seek(max(0, size - END.size - (1 << 16) - LOCATOR - END_64.size))
    tail = file.read()
    place = len(tail) - END.size
    if place < 0 or tail[place : place + 4] != b"PK\5\6" or tail[-2:] != b"\0\0":
        place = tail.rfind(b"PK\5\6")
    if place < 0 or place + END.size > len(tail):
        raise ValueError("it is not a zip file")
    length = int(END.unpack_from(tail, place)[1])
    before = place - LOCATOR - END_64.size
    if before >= 0 and tail[place - LOCATOR : place - LOCATOR + 4] == b"PK\6\7":
        length = max(length, int(END_64.unpack_from(tail, before)[1]))
    return length
