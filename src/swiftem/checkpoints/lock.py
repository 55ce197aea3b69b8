"""A lock: one run per folder."""

from __future__ import annotations

import os
from pathlib import Path

from swiftem.files.durable import open_plain

__all__ = ["Lock"]


class Lock:
    """A lock on a folder that ends with its process, however that ends.

    Parameters
    ----------
    folder : Path
        It must exist; the file ``lock`` in it is created if it is missing.

    Raises
    ------
    ValueError
        If another run has the lock.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock(pathlib.Path(folder))
    ...     lock.release()
    """

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = open_plain(folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            import fcntl
        except ImportError:  # pragma: no cover
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._handle, 20, 0).decode(errors="replace").strip()
            os.close(self._handle)
            self._handle = None
            who = f", process {holder}," if holder.isdigit() else ""
            raise ValueError(
                f"checkpoint={str(folder)!r} is in use: another run{who} writes to it. "
                "Wait until it ends, or use another folder."
            ) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release the folder."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
