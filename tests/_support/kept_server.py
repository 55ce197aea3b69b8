"""A process that works through changed model files and folders of checkpoints, one for each line it reads.

``python kept_server.py FOLDER``: what is changed is in the folder, and made there by the first such process.
Each line is JSON, ``{"do": "model" or "folder", "seed": 3}``; the answer says how it ended, and what is wrong
with that. The process may take a gigabyte beyond what it has at the start; who asks ends it where it does not
answer.
"""

from __future__ import annotations

import json
import logging
import random
import resource
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import folder_mutations
import model_mutations

import swiftem
from swiftem.kernels.threads import set_threads

MEMORY = 1 << 30


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def fault_of_sentence(error: BaseException, name: str) -> str:
    """Return what is wrong with a refusal: it must be one sentence with the name in it."""
    text = str(error)
    if not isinstance(error, ValueError | OSError) or name not in text:
        return f"refused by {type(error).__name__}: {text[:100]}"
    if "\n" in text or not text.endswith("."):
        return f"refused by no sentence: {text[-80:]!r}"
    return ""


def try_model(bases: Path, here: Path, rng: random.Random) -> tuple[str, str, str]:
    """Change a model file, load it and ask it everything; return what was done, how it ended, and a fault."""
    base = rng.choice(sorted(bases.iterdir()))
    done, content = model_mutations.changed_model(base.read_bytes(), rng)
    here.write_bytes(content)
    kind = base.name.partition("-")[0]
    try:
        model = getattr(swiftem, kind).load(here)
    except Exception as error:
        ended, fault = "refused", fault_of_sentence(error, str(here))
    else:
        ended, fault = "works", model_mutations.ask(model)
    if rng.random() < 0.1:
        fault = fault or ask_info(here)
    return f"{base.name}, {done}", ended, fault


def ask_info(path: Path) -> str:
    """Return what is wrong with ``swiftem info``."""
    from typer.testing import CliRunner

    from swiftem.cli.app import app

    result = CliRunner().invoke(app, ["info", str(path)])
    if result.exit_code not in (0, 1) or (result.exit_code == 1) != (str(path) in result.stderr):
        return f"info: {result.exit_code} {result.exception!r}"[:100]
    return "" if result.stderr.count("\n") <= 1 else "info: more than a line"


def try_folder(bases: Path, here: Path, rng: random.Random) -> tuple[str, str, str]:
    """Change a folder and go on from it; return what was done, how it ended, and a fault."""
    name = rng.choice(sorted(folder_mutations.CASES))
    cases = bases / name.replace(" ", "-")
    outside = here.with_name(f"{here.name}-outside")
    for folder in (here, outside):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cases / folder_mutations.NEW, here)
    done = folder_mutations.changed_folder(here, cases, rng)
    before = folder_mutations.content_of(here)
    not_ours = folder_mutations.content_of(outside) if outside.exists() else {}
    try:
        found = folder_mutations.CASES[name](here)
    except Exception as error:
        ended, fault = "refused", fault_of_sentence(error, str(here))
        fault = fault or ("a refusal changed the folder" if is_changed(here, before) else "")
    else:
        ended, fault = "same", "" if found == (cases / "whole").read_bytes() else "another result"
    if not_ours and folder_mutations.content_of(outside) != not_ours:
        fault = "files outside the folder were changed"
    return f"{name}, {done}", ended, fault


def is_changed(here: Path, before: dict[str, bytes]) -> bool:
    """Tell whether what was there is not as it was: a start that was refused may have begun elsewhere."""
    after = folder_mutations.content_of(here)
    return any(after.get(name) != content for name, content in before.items())


def main() -> None:
    folder = Path(sys.argv[1])
    set_threads(1)
    logging.getLogger("swiftem").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    models, folders = folder / "models", folder / "folders"
    if not folders.exists():
        for path, make in (
            (models, model_mutations.make_models), (folders, folder_mutations.make_folders),
        ):  # fmt: skip
            shutil.rmtree(path, ignore_errors=True)
            aside = path.with_name(f"{path.name}-new")
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            make(aside)
            aside.rename(path)
    for base in sorted(models.iterdir()):  # compiles what the answers need
        fault = model_mutations.ask(getattr(swiftem, base.name.partition("-")[0]).load(base))
        assert not fault, f"{base.name}: {fault}"
    ask_info(base)
    for name, case in folder_mutations.CASES.items():
        here = folder / "here"
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(folders / name.replace(" ", "-") / folder_mutations.NEW, here)
        whole = (folders / name.replace(" ", "-") / "whole").read_bytes()
        assert case(here) == whole, f"{name}: another result without a change"
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    say(ready=True)
    shutil.rmtree(folder / "here", ignore_errors=True)
    for line in sys.stdin:
        order = json.loads(line)
        rng = random.Random(f"{order['do']} {order['seed']}")
        attempt, bases = {"model": (try_model, models), "folder": (try_folder, folders)}[order["do"]]
        done, ended, fault = attempt(bases, folder / f"{order['do']}-here", rng)
        say(done=done, ended=ended, fault=fault)


if __name__ == "__main__":
    main()
