"""Folders for results that take seconds to compute: compiled kernels, also Triton's, and docstrings.

A file in the cache of kernels is code that runs when it is loaded. A folder is therefore used only if nobody
else can put or exchange files in it: neither in the folder, nor by renaming a folder above it.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from functools import cache
from pathlib import Path

log = logging.getLogger("swiftem")
_own: list[tempfile.TemporaryDirectory[str]] = []


def user_cache() -> Path:
    """Return swiftem's folder below NUMBA_CACHE_DIR, else in the user's cache folder; it need not exist."""
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base)) / "swiftem"


def cache_in(base: Path, *names: str) -> tuple[Path, str]:
    """Create a private folder for a cache, and return it without links, and why it is not used.

    The reason is empty if the folder can be used. Every folder from ``base`` on must belong to the user or
    to root, and nobody else may write there; folders above may be like ``/tmp``, where everybody can write
    but nobody can rename what belongs to others.

    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder, why = cache_in(Path(name), "swiftem")
    ...     os.chmod(name, 0o777)
    ...     oct(folder.stat().st_mode & 0o777), why, cache_in(Path(name), "swiftem")[1].replace(name, "DIR")
    ('0o700', '', 'others can write to DIR (chmod go-w DIR helps)')
    """
    # Without a home, the path still begins with ~ and would be created below the current folder.
    if base.parts[:1] == ("~",):
        return base.joinpath(*names), "there is no home folder"
    # Links are resolved once: one that is changed later does not matter.
    base = Path(os.path.realpath(base))
    folder = Path(os.path.realpath(base.joinpath(*names)))
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    why = _whose(folder, base)
    if why:
        return folder, why
    try:
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return folder, f"{folder} cannot be written to"
    # Again, as somebody else may have created one of them.
    return folder, _whose(folder, base) or ("" if is_writable(folder) else f"{folder} cannot be written to")


def _whose(folder: Path, base: Path) -> str:
    """Return why others could put files into a folder, of which only parents may exist; empty if nobody."""
    if not hasattr(os, "geteuid"):  # Windows: folders of users are private
        return ""
    # In a container without root, all that belongs to root looks like the owner of "/".
    trusted = {0, os.geteuid(), os.stat("/").st_uid}
    for path in (folder, *folder.parents):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        except OSError:
            return f"{folder} cannot be written to"
        if status.st_uid not in trusted:
            return f"{path} belongs to another user"
        is_above = path != base and base.is_relative_to(path)
        shared = stat.S_IWOTH if _is_own_group(status.st_gid) else stat.S_IWOTH | stat.S_IWGRP
        if status.st_mode & shared and not (is_above and status.st_mode & stat.S_ISVTX):
            return f"others can write to {path} (chmod go-w {path} helps)"
    return ""


def _is_own_group(gid: int) -> bool:
    """Return whether a group is the user's own: it has the user's name and no other member."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:  # a container's user without a name
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def is_writable(folder: Path) -> bool:
    """Return whether files can be written to ``folder``, which is created if it is missing.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     is_writable(pathlib.Path(folder, "new", "folder"))
    True
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@cache
def keep_private() -> None:
    """Have Triton keep kernels in its folder if that is private, else in a new one, and say so once.

    The new one is removed when the process ends.
    """
    given = os.environ.get("TRITON_CACHE_DIR")
    home = Path(os.path.expanduser(os.environ.get("TRITON_HOME") or "~"))
    folder, why_not = cache_in(Path(given)) if given else cache_in(home, ".triton", "cache")
    if why_not:
        log.warning("Triton compiles in every process, without a cache, as %s.", why_not)
        _own.append(tempfile.TemporaryDirectory(prefix="swiftem-triton-"))
        folder = Path(_own[-1].name)
    # Without links: one that is changed later does not matter.
    os.environ["TRITON_CACHE_DIR"] = str(folder)
