"""Changed model files and folders of checkpoints, and what a watched process makes of them.

A case is a number; everything is made from it. The models and folders that are changed are in the folder of
``SWIFTEM_KEPT``, made there by the first process that needs them.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import damage
import model_mutations
from dying_fits import Death, dying
from faults.watched import Verdict, complaint
from resumable import CASES

import swiftem
from swiftem.core.checkpoint import FORMAT

RESUMED = (
    "run unit em",
    "run unit iem",
    "run unit sem-vr",
    "run unit fiem",
    "run tokens fiem",
    "GaussianMixture full em",
    "GaussianMixture two starts fiem",
    "GaussianMixture full sem-vr",
    "PLSA auto",
    "PLSA sem-vr",
)
OLD, NEW, OTHER, WHOLE = "old", "new", "other", "whole"
"""Folders of each case, as it was earlier, as it was left, and of another seed; and its result."""


@cache
def made(name: str) -> Path:
    """Return the folder of the models, or of a case; other processes find it complete or not at all."""
    # Not when the module is imported, as pytest does in search of doctests.
    logging.getLogger("swiftem").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    folder = Path(os.environ["SWIFTEM_KEPT"], name.replace(" ", "-"))
    if not folder.exists():
        part = folder.with_name(f"{folder.name}-{os.getpid()}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        if name == "models":
            model_mutations.make_models(part)
            for path in sorted(part.iterdir()):  # compiles what the answers need
                fault = model_mutations.ask(loaded(path, path.name))
                assert not fault, f"{path.name}: {fault}"
        else:
            make_folders(CASES[name], part)
        part.rename(folder)
    return folder


def loaded(path: Path, name: str) -> object:
    return getattr(swiftem, name.partition("-")[0]).load(path)


def make_folders(case: Callable[..., bytes], folder: Path) -> None:
    """Make the folders of a case, and the result that they lead to."""
    for name, saves, seed in ((NEW, 2, 1), (OTHER, 3, 2)):
        die(case, folder / name, saves, seed)
    shutil.copytree(folder / NEW, folder / OLD)
    die(case, folder / NEW, 2, 1)
    (folder / WHOLE).write_bytes(case(None, seed=1))
    shutil.copytree(folder / NEW, folder / "try")
    assert case(folder / "try", seed=1) == (folder / WHOLE).read_bytes(), "another result without a change"


def die(case: Callable[..., bytes], folder: Path, saves: int, seed: int) -> None:
    with suppress(Death), dying(saves):
        case(folder, seed=seed)
        raise AssertionError(f"{folder} should have died")


def try_model(seed: int) -> list[Verdict]:
    """Change a model file, load it and ask it everything."""
    rng = random.Random(f"model {seed}")
    base = rng.choice(sorted(made("models").iterdir()))
    done, content = model_mutations.changed_model(base.read_bytes(), rng)
    here = made("models").with_name("model")
    here.write_bytes(content)
    try:
        model = loaded(here, base.name)
    except Exception as error:
        ended, fault = "refused", complaint(error, {str(here)})
    else:
        ended, fault = "works", model_mutations.ask(model)
    fault = fault or (ask_info(here) if rng.random() < 0.1 else "")
    return [Verdict(ended, fault, f"{base.name}, {done}")]


def ask_info(path: Path) -> str:
    """Return what is wrong with ``swiftem info``."""
    from typer.testing import CliRunner

    from swiftem.cli.app import app

    result = CliRunner().invoke(app, ["info", str(path)])
    if result.exit_code not in (0, 1) or (result.exit_code == 1) != (str(path) in result.stderr):
        return f"info: {result.exit_code} {result.exception!r}"[:100]
    return "" if result.stderr.count("\n") <= 1 else "info: more than a line"


def try_folder(seed: int) -> list[Verdict]:
    """Change a folder and go on from it."""
    rng = random.Random(f"folder {seed}")
    name = rng.choice(RESUMED)
    cases = made(name)
    here, outside = cases.with_name("kept"), cases.with_name("kept-outside")
    for folder in (here, outside):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cases / NEW, here)
    done = changed_folder(here, cases, rng)
    before, not_ours = content_of(here), content_of(outside)
    try:
        found = CASES[name](here, seed=1)
    except Exception as error:
        after = content_of(here)  # a start that was refused may have begun elsewhere
        is_changed = any(after.get(path) != content for path, content in before.items())
        ended, fault = "refused", complaint(error, {str(here)})
        fault = fault or ("a refusal changed the folder" if is_changed else "")
    else:
        ended, fault = "same", "" if found == (cases / WHOLE).read_bytes() else "another result"
    if not_ours and content_of(outside) != not_ours:
        fault = "files outside the folder were changed"
    return [Verdict(ended, fault, f"{name}, {done}")]


def content_of(folder: Path) -> dict[str, bytes]:
    """Return all plain files below a folder but locks."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in files(folder)}


def files(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return [path for path in found if not path.is_symlink()]


# Changes. Each is given the folder, the folders of the case, and a generator.


def some(folder: Path, rng: random.Random) -> list[Path]:
    """Return one file, or all of its kind."""
    first = rng.choice(files(folder))
    kind = first.name.partition("-")[0]
    return [first] if rng.random() < 0.6 else [path for path in files(folder) if path.name.startswith(kind)]


def change_bytes(here: Path, cases: Path, rng: random.Random) -> None:
    change = rng.choice((*damage.ANY, damage.flip_top_bits))
    for path in some(here, rng):
        path.write_bytes(change(path.read_bytes(), rng))


def remove(here: Path, cases: Path, rng: random.Random) -> None:
    for path in some(here, rng):
        path.unlink()


def swap_files(here: Path, cases: Path, rng: random.Random) -> None:
    one, other = rng.sample(files(here), 2)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    if rng.random() < 0.7:
        other.write_bytes(content)


def mix(here: Path, cases: Path, rng: random.Random) -> None:
    """Put files of an earlier time, or of another run, among the others."""
    source = cases / rng.choice((OLD, OTHER))
    for path in some(source, rng):
        target = here / path.relative_to(source)
        target.parent.mkdir(exist_ok=True)
        if target.is_file() or not target.exists():  # whoever writes to a pipe waits
            shutil.copy(path, target)


def mix_folders(here: Path, cases: Path, rng: random.Random) -> None:
    """Exchange the folders of two starts, or put one of an earlier time there."""
    below = sorted(here.glob("start-*"))
    if len(below) > 1 and rng.random() < 0.5:
        below[0].rename(here / "aside")
        below[1].rename(below[0])
        (here / "aside").rename(below[1])
    elif below:
        chosen = rng.choice(below)
        shutil.rmtree(chosen)
        if rng.random() < 0.7 and (cases / OLD / chosen.name).exists():
            shutil.copytree(cases / OLD / chosen.name, chosen)
    else:
        mix(here, cases, rng)


def repeat_records(here: Path, cases: Path, rng: random.Random) -> None:
    """Write a record over another, write two in the other order, or one once more."""
    path = rng.choice([path for path in files(here) if path.name == "records"])
    mark = FORMAT.encode()
    records = [mark + record for record in path.read_bytes().split(mark)[1:]]
    one, other = rng.randrange(len(records)), rng.randrange(len(records))
    if rng.random() < 0.5:
        records[one] = records[other]
    else:
        records[one], records[other] = records[other], records[one]
    path.write_bytes(b"".join([*records, *records[:1]][: len(records) + (rng.random() < 0.2)]))


def link(here: Path, cases: Path, rng: random.Random) -> None:
    """Put a link, a pipe or a folder in the place of a file."""
    aside = here.with_name(f"{here.name}-outside")
    aside.mkdir(exist_ok=True)
    folder = rng.choice([here, *(path for path in here.iterdir() if path.is_dir())])
    name = rng.choice(("lock", "state", "memory-0-5", "memory-0-13", "records", ".state.x"))
    path, outside = folder / name, aside / name
    outside.write_bytes(path.read_bytes() if path.is_file() else b"outside")
    path.unlink(missing_ok=True)
    rng.choice((lambda: path.symlink_to(outside), lambda: os.mkfifo(path), path.mkdir))()


CHANGES = (change_bytes, change_bytes, remove, swap_files, mix, mix, mix_folders, repeat_records, link)


def changed_folder(here: Path, cases: Path, rng: random.Random) -> str:
    """Change a folder, once or twice, and return what was done."""
    chosen = rng.choices(CHANGES, k=rng.choice((1, 1, 1, 2)))
    for change in chosen:
        with suppress(OSError, ValueError, IndexError):  # after another change there may be nothing to change
            change(here, cases, rng)
    return "+".join(change.__name__ for change in chosen)
