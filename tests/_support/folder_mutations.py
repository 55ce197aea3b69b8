"""Folders of checkpoints that something happened to, and the runs and fits that they are of."""

from __future__ import annotations

import os
import random
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import helpers
import model_mutations
import numpy as np
import scipy.sparse as sp
from forks import encode
from surroundings import within

import swiftem
from swiftem.core.checkpoint import FORMAT
from swiftem.fit.watch import StartWatch

N_ITER = 60


class Death(Exception):
    """Stands for what ends a process."""


def run_case(name: str, model: str = "mixture") -> Callable[..., bytes]:
    """Return a run as a function of a folder and of the iteration at which it dies."""
    problem = helpers.mixture(300, d=2, M=3) if model == "mixture" else helpers.topics(300, D=12, V=15, K=3)
    method = helpers.make_method(name, step_size=0.1, batch_size=5)

    def run(folder: Path | None, until: float = np.inf, seed: int = 1) -> bytes:
        def callback(iterate: Any) -> None:
            if iterate.k >= until:
                raise Death

        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 3, "resume": "auto"}
        found = problem.run(method, n_iter=N_ITER, seed=seed, record_every=5, callback=callback, **kept)
        return encode((found.theta, found.s, found.state, found.path, found.passes, found.status))

    return run


def fit_case(kind: str, X: Any, attributes: tuple[str, ...], **parameters: Any) -> Callable[..., bytes]:
    """Return a fit as a function of a folder and of the look at which it dies."""

    def fit(folder: Path | None, until: float = np.inf, seed: int = 1) -> bytes:
        kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 1, "resume": "auto"}
        model = getattr(swiftem, kind)(3, random_state=seed, tol=0.0, **{"max_iter": 20} | parameters)
        left = [until]
        look = StartWatch.__call__

        def deadly(self: Any, moment: Any, theta: Any) -> bool:
            left[0] -= 1
            if left[0] < 0:
                raise Death
            return look(self, moment, theta)

        StartWatch.__call__ = deadly  # type: ignore[method-assign]
        try:
            with warnings.catch_warnings(), within(**kept):
                warnings.simplefilter("ignore")
                model.fit(X)
        finally:
            StartWatch.__call__ = look  # type: ignore[method-assign]
        history = model.history_.table()
        del history["seconds"]
        return encode((*(getattr(model, name) for name in attributes), history))

    return fit


MIXTURE, TOPICS = (
    ("weights_", "means_", "covariances_", "lower_bounds_"),
    ("components_", "doc_topic_", "n_iter_"),
)
COUNTS = sp.csr_array(np.random.default_rng(0).poisson(0.3, size=(60, 30)).astype(float))
MANY = sp.csr_array(np.random.default_rng(1).poisson(0.1, size=(520, 30)).astype(float))
ROWS = model_mutations.ROWS
CASES: dict[str, Callable[..., bytes]] = {
    **{f"run {name}": run_case(name) for name in ("em", "iem", "sem-vr", "fiem")},
    "run topics fiem": run_case("fiem", "topics"),
    "fit em": fit_case("GaussianMixture", ROWS, MIXTURE, method="em"),
    "fit fiem": fit_case("GaussianMixture", ROWS, MIXTURE, method="fiem", n_init=2, init_params="random"),
    "fit sem-vr": fit_case(
        "GaussianMixture", ROWS, MIXTURE, method=helpers.make_method("sem-vr", batch_size=5)
    ),
    "PLSA auto": fit_case("PLSA", MANY, TOPICS, n_init=1),
    "PLSA sem-vr": fit_case("PLSA", COUNTS, TOPICS, method="sem-vr", max_iter=80),
    "PLSA fiem": fit_case("PLSA", COUNTS, TOPICS, method="fiem"),
}
OLD, NEW, OTHER = "old", "new", "other"
"""Folders of each case: as it was earlier, as it was left, and of another seed."""


def make_folders(folder: Path) -> None:
    """Make the folders that are changed, and the results that they lead to."""
    for name, case in CASES.items():
        here = folder / name.replace(" ", "-")
        early, late = (20, 40) if name.startswith("run") else (2, 3)
        for which, until, seed in ((NEW, early, 1), (OTHER, late, 2)):
            leave(case, here / which, until, seed)
        shutil.copytree(here / NEW, here / OLD)
        leave(case, here / NEW, late - early if not name.startswith("run") else late, 1)
        (here / "whole").write_bytes(case(None))


def leave(case: Callable[..., bytes], folder: Path, until: int, seed: int) -> None:
    try:
        case(folder, until, seed)
    except Death:
        return
    raise AssertionError(f"{folder} should have died")


# Changes. Each is given the folder, the folders of the case, and a generator.


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock")


def some(folder: Path, rng: random.Random) -> list[Path]:
    """Return one file, or all of its kind."""
    first = rng.choice(files(folder))
    kind = first.name.partition("-")[0]
    return [first] if rng.random() < 0.6 else [path for path in files(folder) if path.name.startswith(kind)]


def change_bytes(here: Path, cases: Path, rng: random.Random) -> None:
    change = rng.choice((*model_mutations.PLAIN, flip_top_bits))
    for path in some(here, rng):
        content = path.read_bytes()
        if content:
            path.write_bytes(change(content, rng))


def flip_top_bits(content: bytes, rng: random.Random) -> bytes:
    """Flip the top bit of two numbers of eight bytes."""
    changed = bytearray(content)
    if len(changed) >= 16:
        for place in rng.sample(range(len(changed) // 8), 2):
            changed[8 * place + 7] ^= 0x80
    return bytes(changed)


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
    """Exchange the folders of starts, or put one of an earlier time there."""
    below = sorted(here.glob("start-*"))
    if not below:
        return mix(here, cases, rng)
    if len(below) > 1 and rng.random() < 0.5:
        below[0].rename(here / "aside")
        below[1].rename(below[0])
        (here / "aside").rename(below[1])
    else:
        chosen = rng.choice(below)
        shutil.rmtree(chosen)
        if rng.random() < 0.7 and (cases / OLD / chosen.name).exists():
            shutil.copytree(cases / OLD / chosen.name, chosen)
    return None


def repeat_records(here: Path, cases: Path, rng: random.Random) -> None:
    """Write a record over another, write two in the other order, or one once more."""
    chosen = [path for path in files(here) if path.name == "records"]
    if not chosen:
        return change_bytes(here, cases, rng)
    path = rng.choice(chosen)
    mark = FORMAT.encode()
    records = [mark + record for record in path.read_bytes().split(mark)[1:]]
    if records:
        one, other = rng.randrange(len(records)), rng.randrange(len(records))
        if rng.random() < 0.5:
            records[one] = records[other]
        else:
            records[one], records[other] = records[other], records[one]
        if rng.random() < 0.2:
            records.append(records[one])
    path.write_bytes(b"".join(records))
    return None


def link(here: Path, cases: Path, rng: random.Random) -> None:
    """Put a link, a pipe or a folder in the place of a file."""
    aside = here.with_name(f"{here.name}-outside")
    aside.mkdir(exist_ok=True)
    folder = rng.choice([here, *(path for path in here.iterdir() if path.is_dir())])
    name = rng.choice(("lock", "state", "memory-0-5", "memory-0-13", "records", ".state.x"))
    path, outside = folder / name, aside / name
    outside.write_bytes(path.read_bytes() if path.is_file() else b"outside")
    path.unlink(missing_ok=True)
    how = rng.randrange(3)
    if how == 0:
        path.symlink_to(outside)
    elif how == 1:
        os.mkfifo(path)
    else:
        path.mkdir()


CHANGES = (change_bytes, change_bytes, remove, swap_files, mix, mix, mix_folders, repeat_records, link)


def changed_folder(here: Path, cases: Path, rng: random.Random) -> str:
    """Change a folder, once or twice, and return what was done."""
    chosen = [rng.choice(CHANGES) for _ in range(rng.choice((1, 1, 1, 2)))]
    for change in chosen:
        with suppress(OSError, ValueError, IndexError):  # after another change there may be nothing to change
            change(here, cases, rng)
    return "+".join(change.__name__ for change in chosen)


def content_of(folder: Path) -> dict[str, bytes]:
    """Return all plain files below a folder but locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock" and not path.is_symlink()
    }
