"""Files that a command is to write: refused before anything is computed if they cannot be written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import typer

__all__ = ["model_file", "not_the_same", "picture_file", "table_file", "writable_folder"]

PICTURES = (".png", ".svg", ".pdf")


def model_file(path: Path) -> Path:
    """Return where a model is to be written, or refuse it."""
    from swiftem.data.rows.tables import is_table

    if is_table(path):
        raise typer.BadParameter(
            f"{path} has the ending of a table: use {path.with_suffix('.model').name}, for example."
        )
    return _writable(path)


def table_file(path: Path | None) -> Path | None:
    """Return where predictions are to be written, or refuse it."""
    from importlib.util import find_spec

    from swiftem.data.rows.parquet_source import NEEDS_PYARROW
    from swiftem.data.rows.write_table import WRITTEN

    if path is None:
        return None
    ending = path.suffix.lower()
    if ending not in WRITTEN:
        raise typer.BadParameter(
            f"{path} must end in {', '.join(WRITTEN[:-1])} or {WRITTEN[-1]}, got {ending or 'no ending'}."
        )
    if ending == ".parquet" and find_spec("pyarrow") is None:
        raise typer.BadParameter(NEEDS_PYARROW)
    return _writable(path)


def writable_folder(folder: Path) -> Path:
    """Refuse a folder that cannot be written to now: after the computation would be too late.

    What had to be made to try it is removed: a command that is refused leaves nothing behind.
    """
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"{folder} is a file: name a folder for the results.")
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        _try(folder, f"{folder} cannot be written to", "name another folder")
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()
    return folder


def picture_file(path: Path | None) -> Path | None:
    """Return where a picture is to be drawn to, or refuse it."""
    from importlib.util import find_spec

    if path is None:
        return None
    ending = path.suffix.lower()
    if ending not in PICTURES:
        raise typer.BadParameter(f"{path} must end in .png, .svg or .pdf, got {ending or 'no ending'}.")
    if find_spec("matplotlib") is None:
        raise typer.BadParameter("pictures need matplotlib: install it with pip install 'swiftem[plot]'.")
    return _writable(path)


def not_the_same(out: Path | None, *others: Path, option: str = "--out") -> None:
    """Refuse to write over what is read."""
    for other in others:
        if out is not None and out.resolve() == other.resolve():
            raise typer.BadParameter(
                f"{other} is what is read: name another file for the results.", param_hint=f"'{option}'"
            )


def _writable(path: Path) -> Path:
    target = path.resolve()
    if target.is_dir():
        raise typer.BadParameter(f"{path} is a folder: name a file.")
    if target.exists() and not target.is_file():
        raise typer.BadParameter(f"{path} is not an ordinary file: name another one.")
    _try(target.parent, f"{path} cannot be written", "name another file")
    return path


def _try(folder: Path, what: str, instead: str) -> None:
    """Write a file without a name to a folder, which is made, or refuse it."""
    import tempfile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise typer.BadParameter(f"{what} ({reason}): {instead}.") from None
