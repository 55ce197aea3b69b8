"""Atomic and durable files, arrays in ``.npy`` format, hashes, and errors of damaged files as sentences."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FORMAT", "OtherFormatError", "array_bytes", "check_plain", "damage_named", "file_hash", "fingerprint",
    "in_brackets", "open_plain", "read_array", "read_into", "read_sealed", "replacing", "sync_folder",
    "telling_damage", "telling_where", "write_all", "write_atomically", "write_sealed",
]  # fmt: skip

FORMAT = 4
"""Version of a checkpoint's layout; a folder with another one is not read."""
FAMILY = b"swiftem checkpoint, format "
MAGIC = FAMILY + b"%d\n" % FORMAT
"""First line of sealed files."""
DIGEST = 16
SEAL = struct.Struct(f"<{DIGEST}sQ")
"""BLAKE2b and length of the content, after the first line."""
OWN = re.compile(r"\.?(begun|state-[01]|memory-[01]|path|lock)(\.new)?")
"""Names of the files of a checkpoint."""
BELOW = re.compile(r"start-[0-9]+")
"""Names of the folders in it."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags for every file that is opened: links are not followed, and pipes do not block."""


class OtherFormatError(ValueError):
    """A file of a checkpoint in another format."""


def check_plain(folder: Path) -> None:
    """Raise ValueError if a file of the checkpoint is not a plain file.

    The target of a link belongs to somebody else: it must be neither read nor written.
    """
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        is_below = BELOW.fullmatch(entry.name) is not None
        if not is_below and not OWN.fullmatch(entry.name):
            continue
        what = _fault(entry.stat(follow_symlinks=False), is_below)
        if what:
            raise ValueError(
                f"checkpoint={str(folder)!r} must have plain files, but {entry.name!r} in it is {what}: "
                "remove it, or use another folder."
            )


def _fault(found: os.stat_result, is_folder: bool = False) -> str:
    """Return what is wrong with a file or a folder; empty if nothing is."""
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    if is_folder:
        return "" if stat.S_ISDIR(found.st_mode) else "no folder"
    if not stat.S_ISREG(found.st_mode):
        return "no plain file"
    return "a file that has another name, too (a hard link)" if found.st_nlink > 1 else ""


def open_plain(path: Path, flags: int) -> int:
    """Open a plain file and return its descriptor; OSError if it is a link, a pipe or the like."""
    try:
        handle = os.open(path, flags | NO_LINK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, f"{path.name} is a symbolic link") from None
        raise
    what = _fault(os.fstat(handle))
    if what:
        os.close(handle)
        raise OSError(errno.EINVAL, f"{path.name} is {what}")
    return handle


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file with a checksum: under a temporary name, flushed to disk, then renamed.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sealed(pathlib.Path(folder, "file"), b"content")
    ...     read_sealed(pathlib.Path(folder, "file"))
    b'content'
    """
    head = MAGIC + SEAL.pack(hashlib.blake2b(content, digest_size=DIGEST).digest(), len(content))
    with replacing(path, durable=True) as file:
        write_all(file.fileno(), content, write_all(file.fileno(), head, 0))


def read_sealed(path: Path) -> bytes:
    """Return the content of a file of :func:`write_sealed`; ValueError if it is not as it was written."""
    with open(open_plain(path, os.O_RDONLY), "rb") as file:
        first = file.read(len(MAGIC))
        if first != MAGIC:
            if first.startswith(FAMILY):
                number = first[len(FAMILY) :].split(b"\n")[0].decode("ascii", "replace")
                raise OtherFormatError(
                    f"it is in format {number}, and this version of swiftem reads {FORMAT}"
                )
            raise ValueError("it is not a file of a checkpoint")
        head = file.read(SEAL.size)
        # A damaged length must not lead to a larger allocation.
        if len(head) < SEAL.size or SEAL.unpack(head)[1] != os.fstat(file.fileno()).st_size - file.tell():
            raise ValueError("it has the wrong length")
        content = file.read()
    if hashlib.blake2b(content, digest_size=DIGEST).digest() != SEAL.unpack(head)[0]:
        raise ValueError("its checksum is wrong")
    return content


def write_all(handle: int, content: Any, position: int) -> int:
    """Write all bytes at a position of an open file; return the position after them."""
    view = memoryview(content).cast("B")
    done = 0
    while done < len(view):
        # One call may write less than all bytes; and Ctrl-C should not wait for a gigabyte.
        done += os.pwrite(handle, view[done : done + (1 << 24)], position + done)
    return position + done


def read_into(handle: int, view: memoryview, position: int) -> int:
    """Read from a position of an open file until ``view`` is full or the file ends; return the bytes read."""
    got = 0
    # One call may read less than requested: on Linux never more than two gigabytes.
    while got < len(view) and (more := os.preadv(handle, [view[got : got + (1 << 24)]], position + got)):
        got += more
    return got


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that its names are as durable as its files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def telling_where(folder: Path, what: str) -> Iterator[None]:
    """Add the folder to errors of the system."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        reason = (error.strerror or str(error)).lower()
        raise OSError(error.errno, f"checkpoint={str(folder)!r} {what} ({reason}).") from None


@contextmanager
def telling_damage(folder: Path) -> Iterator[None]:
    """Add the folder to errors about its content."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"checkpoint={str(folder)!r} is damaged: its content does not match this run ({reason}). "
            "Use another folder."
        ) from None


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a file that other processes see complete or not at all; its folder must exist.

    An existing file keeps its permissions, unless the file is durable: flushed to disk, and then its name.
    A link is replaced; what it points to stays as it is.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "file")
    ...     with replacing(file) as stream:
    ...         _ = stream.write(b"content")
    ...         there = file.exists()
    ...     there, file.read_bytes()
    (False, b'content')
    """
    if durable:
        name = str(path.with_name(f".{path.name}.new"))  # a fixed name: kills leave at most one such file
        Path(name).unlink(missing_ok=True)
        handle = open_plain(Path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    else:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            yield file
            if durable:
                os.fsync(handle)
        if not durable:  # such a temporary file is private to its owner, and the result would be, too
            is_file = path.exists() and not path.is_symlink()
            os.chmod(name, path.stat().st_mode & 0o777 if is_file else 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:  # also Ctrl-C: nothing half-written remains
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that other processes see complete or not at all; its folder must exist.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "file")
    ...     write_atomically(file, b"content")
    ...     file.read_bytes()
    b'content'
    """
    with replacing(path) as file:
        file.write(content)


def _umask() -> int:
    mask = os.umask(0o077)  # it cannot be read without being set
    os.umask(mask)
    return mask


ROWS, BYTES = 4096, 1 << 20


def fingerprint(kind: str, *arrays: NDArray[Any] | None) -> str:
    """Return a hash of the values, shapes and dtypes of ``arrays``; memory layout does not matter.

    >>> import numpy as np
    >>> a = np.arange(6.0).reshape(2, 3)
    >>> fingerprint("demo", a) == fingerprint("demo", np.asfortranarray(a))
    True
    """
    digest = hashlib.blake2b(kind.encode(), digest_size=16)
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        for start in range(0, len(array), ROWS):
            # A checksum of each block is four times as fast as hashing it; no security is needed.
            checksum = zlib.crc32(np.ascontiguousarray(array[start : start + ROWS]).data)
            digest.update(checksum.to_bytes(4, "little"))
    return digest.hexdigest()


def file_hash(kind: str, files: Sequence[Path]) -> str:
    """Return a hash of the bytes of ``files``, in order, whatever their names.

    Whole files are hashed: dates change when a file is copied, and date and size may stay after an edit.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [pathlib.Path(folder, name) for name in "ab"]
    ...     _ = [file.write_text("1,2") for file in files]
    ...     file_hash("demo", files[:1]) == file_hash("demo", files[1:])
    True
    """
    digest = hashlib.blake2b(kind.encode(), digest_size=16)
    for file in files:
        digest.update(str(file.stat().st_size).encode())
        with file.open("rb") as stream:
            while part := stream.read(BYTES):
                digest.update(part)
    return digest.hexdigest()


@contextmanager
def damage_named(file: Path, what: str) -> Iterator[None]:
    """Convert any error of a library that reads ``file`` into a sentence; ``what`` is the expected content.

    Libraries that parse binary files raise various errors: ``zlib.error``, ``EOFError``, ``OverflowError``,
    ``KeyError`` and others. Errors of the system keep their type, and errors that already name the file are
    raised unchanged.

    Examples
    --------
    >>> with damage_named(Path("toy.npz"), "an archive"):
    ...     {}["indptr.npy"]
    Traceback (most recent call last):
    ...
    ValueError: toy.npz must be an archive, got another or a damaged file (indptr.npy).
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ImportError) or str(error).startswith(str(file)):
            raise
        # An invalid argument is an impossible position in the file, from its directory.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            reason = (error.strerror or type(error).__name__).lower()
            raise type(error)(f"{file} cannot be read ({reason}).") from None
        if isinstance(error, MemoryError):  # a damaged file may claim any size
            raise ValueError(
                f"{file} must be {what} that fits into memory, got a larger or a damaged one."
            ) from None
        raise ValueError(
            f"{file} must be {what}, got another or a damaged file ({in_brackets(error)})."
        ) from None


def in_brackets(error: Exception) -> str:
    r"""Return an error's text as part of a sentence.

    >>> in_brackets(OSError("Couldn't deserialize thrift: invalid data.\nMore.")), in_brackets(EOFError())
    ("Couldn't deserialize thrift: invalid data", 'EOFError')
    """
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first.rstrip(". ")[:200] or type(error).__name__


def array_bytes(array: NDArray[Any]) -> bytes:
    """Return an array in ``.npy`` format; no objects."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def read_array(part: bytes | memoryview) -> NDArray[Any]:
    """Return the array of an .npy part, with its size checked, and no objects."""
    stream = io.BytesIO(part)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize != len(part) - stream.tell():
        raise ValueError("an array in it has another size than stated")
    stream.seek(0)
    found: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return found
