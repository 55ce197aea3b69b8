"""Folders of checkpoints with links, with files of other runs, and what is on the disk when."""

import os
import platform
import shutil
import warnings
from importlib import metadata
from pathlib import Path

import helpers
import numpy as np
import pytest
from helpers import assert_same_result, make_method

import swiftem
from swiftem import methods, schedules
from swiftem.core.checkpoint import FORMAT, read_state
from swiftem.core.state_file import write_tree

N_ITER = 48


class Death(Exception):
    """Stands for what ends a process."""


def go(folder, name="iem", until=None, method=None, **options):
    """Go on with a run, which dies at iteration ``until``."""
    problem = helpers.mixture(200, M=3)
    method = method or make_method(name, step_size=schedules.power(0.9, 0.1), batch_size=4, epoch_length=5)

    def callback(iterate):
        if until is not None and iterate.k >= until:
            raise Death

    if folder is not None:
        options = {"checkpoint": folder, "checkpoint_every": 3, "resume": "auto"} | options
    return problem.run(method, n_iter=N_ITER, record_every=4, callback=callback, **{"seed": 3} | options)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a folder of a run that died, with a memory and a path."""
    folder = tmp_path_factory.mktemp("kept") / "run"
    with pytest.raises(Death):
        go(folder, until=30)
    names = {name.partition("-")[0] for name in os.listdir(folder)}
    assert names == {"lock", "state", "memory", "records"}
    return folder


@pytest.fixture
def folder(kept, tmp_path):
    return Path(shutil.copytree(kept, tmp_path / "run"))


@pytest.mark.parametrize("name", ["lock", "state", "memory-0-*", "records"])
@pytest.mark.parametrize("how", ["a symbolic link", "not a regular file"])
def test_links_are_refused_and_their_targets_are_left_alone(folder, tmp_path, name, how):
    (place,) = folder.glob(name)
    other = tmp_path / "other"
    content = place.read_bytes()
    place.unlink()
    if how == "a symbolic link":
        other.write_bytes(content)
        place.symlink_to(other)
    else:
        os.mkfifo(place)
    for resume in (True, "auto"):
        with pytest.raises((OSError, ValueError), match=rf"{place.name} is {how}|wrong length") as error:
            go(folder, resume=resume)
        assert str(folder) in str(error.value)
        assert "\n" not in str(error.value)
    assert not other.exists() or other.read_bytes() == content


def test_links_of_new_files_are_replaced(tmp_path):
    """A file of the next checkpoint may be a link already: its target is not written to."""
    (tmp_path / "other").write_bytes(b"mine")
    (tmp_path / "run").mkdir()
    for name in ("state", "memory-0-1"):
        (tmp_path / "run" / name).symlink_to(tmp_path / ("other" if name != "state" else "nothing"))
    assert_same_result(go(tmp_path / "run"), go(None))
    assert (tmp_path / "other").read_bytes() == b"mine"
    assert not (tmp_path / "nothing").exists()


def test_a_link_to_the_folder_itself_is_the_users_own(folder, tmp_path):
    (tmp_path / "name").symlink_to(folder)
    assert_same_result(go(tmp_path / "name", resume=True), go(None))


def test_files_of_another_name_do_no_harm(folder, tmp_path):
    (tmp_path / "notes").write_text("mine")
    (folder / "notes").symlink_to(tmp_path / "notes")
    assert_same_result(go(folder), go(None))
    assert (tmp_path / "notes").read_text() == "mine"


def refuse(folder, match, **options):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}
    with pytest.raises(ValueError, match=match) as error:
        go(folder, **options)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"} == before


@pytest.mark.parametrize("source", ["lock", "memory-0-*", "records"])
def test_another_file_in_the_place_of_the_state(folder, source):
    (file,) = folder.glob(source)
    shutil.copy(file, folder / "state")
    refuse(folder, r"is damaged, or of another version or run \(state")


@pytest.mark.parametrize(("name", "reason"), [("state", "its seed is"), ("records", "records")])
def test_files_of_another_run_are_refused(folder, tmp_path, name, reason):
    with pytest.raises(Death):
        go(tmp_path / "other", seed=4, until=30)
    shutil.copy(tmp_path / "other" / name, folder / name)
    refuse(folder, reason)


def test_an_older_state_whose_memory_is_gone_is_refused(folder):
    before = (folder / "state").read_bytes()
    with pytest.raises(Death):
        go(folder, until=36)
    (folder / "state").write_bytes(before)
    with pytest.raises(FileNotFoundError, match=r"cannot be read \(no such file") as error:
        go(folder)
    assert str(folder) in str(error.value)


def test_records_of_another_order_are_refused(folder):
    first, *records = (folder / "records").read_bytes().split(FORMAT.encode())
    records[1], records[2] = records[2], records[1]
    (folder / "records").write_bytes(FORMAT.encode().join([first, *records]))
    refuse(folder, "records: its hash is wrong")


def test_the_remains_of_a_killed_process_are_removed(folder):
    with (folder / "records").open("ab") as file:
        file.write(b"half a record")
    for name in ("memory-0-99", "memory-7-1", ".state.x7a", ".memory-0-9.abc"):
        (folder / name).write_bytes(b"half a file")
    (folder / "notes").write_bytes(b"mine")
    assert_same_result(go(folder), go(None))
    names = {path.name.rpartition("-")[0] or path.name for path in folder.iterdir()}
    assert names == {"lock", "state", "records", "memory-0", "notes"}


FORGED = {
    "no structure": lambda tree: [1, 2],
    "no state": lambda tree: tree | {"state": None},
    "another state": lambda tree: tree | {"state": (1, 2)},
    "a number": lambda tree: tree | {"s": 1.0},
    "short statistics": lambda tree: tree | {"s": tree["s"][:-1]},
    "another θ": lambda tree: tree | {"theta": tree["theta"]._replace(means=np.zeros((2, 1)))},
    "another centre": lambda tree: (
        tree | {"state": tree["state"]._replace(method=tree["state"].method._replace(centre=np.zeros(1)))}
    ),
    "another seed": lambda tree: (
        tree | {"state": tree["state"]._replace(entropy=tree["state"].entropy + np.uint32(1))}
    ),
    "a count": lambda tree: tree | {"state": tree["state"]._replace(k="7")},
    "another memory": None,
}


@helpers.parametrize_cases(FORGED)
def test_forged_states_are_refused(folder, case):
    """Their hash is right, and compiled code would trust what they hold."""
    state = read_state(folder)
    if case is None:
        (n, columns), dtype, files = state.memory
        state = state._replace(memory=((n * columns, 1), dtype, files))
    else:
        state = state._replace(tree=case(state.tree))
    with (folder / "state").open("wb") as file:
        write_tree(file, FORMAT, tuple(state))
    refuse(folder, "is damaged, or of another version or run")


def test_files_are_on_disk_before_the_state_that_names_them(tmp_path, monkeypatch):
    fsync, replace = os.fsync, os.replace
    synced, named = set(), []

    def sync(handle):
        synced.add(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def rename(source, target):
        if tmp_path in Path(target).parents:  # kernels are compiled now, and replaced elsewhere
            assert os.path.basename(source) in synced
            if os.path.basename(target) == "state":
                named.append("records" in synced)
                synced.clear()
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    go(tmp_path)
    records = 1 + N_ITER // 4
    assert len(named) == 1 + N_ITER // 3
    assert records - 2 <= sum(named) <= records


def test_starts_that_changed_places_are_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 2))
    mixture = swiftem.GaussianMixture(
        3, method="fiem", n_init=2, init_params="random", random_state=0, max_iter=5
    )

    def fit():
        with swiftem.checkpoint(tmp_path / "fit", every=1, resume="auto"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mixture.fit(X)

    fit()
    for one, other in (("start-0", "aside"), ("start-1", "start-0"), ("aside", "start-1")):
        os.rename(tmp_path / "fit" / one, tmp_path / "fit" / other)
    with pytest.raises(ValueError, match="belongs to another run: its number is"):
        fit()


PATCH = f"{platform.python_version()}9"
VERSIONS = {
    "numba": (metadata, "version", lambda of: "99.0.1" if of == "numba" else version(of)),
    "swiftem": (metadata, "version", lambda of: "99.0.1" if of == "swiftem" else version(of)),
    "numpy": (metadata, "version", lambda of: "99.0.1" if of == "numpy" else version(of)),
    "python": (platform, "python_version", lambda: "3.99.0"),
    "python, patch": (platform, "python_version", lambda: PATCH),
}
version = metadata.version


@helpers.parametrize_cases(VERSIONS)
def test_other_versions_are_told_and_gone_on_from(tmp_path, monkeypatch, caplog, case):
    method = methods.OnlineEM(step_size=lambda k: 0.9 / (k + 1), batch_size=2)  # its code is compared
    with monkeypatch.context() as patch:
        patch.setattr(*case)
        with pytest.raises(Death):
            go(tmp_path, method=method, until=20)
    assert_same_result(go(tmp_path, method=method, resume=True), go(None, method=method))
    assert "results may differ in the last bit" in caplog.text
    assert "was written by" in caplog.text


def test_another_python_does_not_hide_another_run(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(*VERSIONS["python"])
        with pytest.raises(Death):
            go(tmp_path, until=20)
    other = methods.IncrementalEM(batch_size=5)
    with pytest.raises(ValueError, match="belongs to another run: its method is"):
        go(tmp_path, method=other)


def test_another_format_is_refused_by_its_number(folder):
    file = folder / "state"
    file.write_bytes(file.read_bytes().replace(b"format 6", b"format 7"))
    refuse(folder, r"another version or run \(state: its first line is not 'swiftem checkpoint, format 6'\)")
