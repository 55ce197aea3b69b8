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
from swiftem.checkpoints.folder import Lock, StateHead, read_state, write_state
from swiftem.checkpoints.tree import encode
from swiftem.files.durable import open_plain

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
    assert {"begun", "state-0", "state-1", "memory-0", "path"} <= set(os.listdir(folder))
    return folder


@pytest.fixture
def folder(kept, tmp_path):
    return Path(shutil.copytree(kept, tmp_path / "run"))


NAMES = (
    "lock", "begun", "state-0", "state-1", "memory-0", "memory-1", "path",
    ".state-0.new", ".begun.new",
)  # fmt: skip
WHAT = {
    "link": "a symbolic link",
    "dangling": "a symbolic link",
    "hard": "a hard link",
    "pipe": "no plain file",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", WHAT)
def test_links_are_refused_and_what_they_point_to_is_left_alone(folder, tmp_path, name, how):
    other, place = tmp_path / "other", folder / name
    content = place.read_bytes() if place.exists() else b"somebody else's"
    place.unlink(missing_ok=True)
    if how == "pipe":
        os.mkfifo(place)
    elif how == "hard":
        other.write_bytes(content)
        os.link(other, place)
    else:
        place.symlink_to(other)
        if how == "link":
            other.write_bytes(content)
    for resume in (True, False, "auto"):
        with pytest.raises((ValueError, FileNotFoundError)) as error:
            go(folder, resume=resume)
        assert str(folder) in str(error.value)
        assert "\n" not in str(error.value)
        if resume == "auto":
            assert WHAT[how] in str(error.value)
            assert repr(name) in str(error.value)
    if how in ("link", "hard"):
        assert other.read_bytes() == content
    assert other.exists() == (how in ("link", "hard"))


def test_links_that_come_later_are_not_followed_either(tmp_path):
    """The folder is looked at when it is opened; every file is opened with care all the same."""
    (tmp_path / "other").write_bytes(b"mine")
    for name in ("lock", "memory-0"):
        (tmp_path / name).symlink_to(tmp_path / "other")
        with pytest.raises(OSError, match=f"{name} is a symbolic link"):
            open_plain(tmp_path / name, os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError, match="lock is a symbolic link"):
        Lock(tmp_path)
    assert (tmp_path / "other").read_bytes() == b"mine"


def test_a_link_to_the_folder_itself_is_the_users_own(folder, tmp_path):
    (tmp_path / "name").symlink_to(folder)
    assert_same_result(go(tmp_path / "name", resume=True), go(None))


def test_the_folder_of_a_start_is_no_link(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([0.0, 9.0], 150)[:, None]
    mixture = swiftem.GaussianMixture(2, random_state=0, checkpoint=tmp_path / "fit", resume="auto")
    mixture.fit(X)
    shutil.move(tmp_path / "fit" / "start-0", tmp_path / "elsewhere")
    (tmp_path / "fit" / "start-0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="'start-0' in it is a symbolic link"):
        mixture.fit(X)


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


@pytest.mark.parametrize("source", ["begun", "memory-0", "path"])
def test_another_file_in_the_place_of_the_states(folder, source):
    for name in ("state-0", "state-1"):
        shutil.copy(folder / source, folder / name)
    refuse(folder, "is damaged .*nothing to resume from")


def test_states_of_another_run_are_refused(folder, tmp_path):
    with pytest.raises(Death):
        go(tmp_path / "other", seed=4, until=30)
    for name in ("state-0", "state-1"):
        shutil.copy(tmp_path / "other" / name, folder / name)
    refuse(folder, "state-0: it belongs to another run; state-1: it belongs to another run")


@pytest.mark.parametrize("kind", ["state", "memory"])
def test_files_that_changed_places(folder, kind):
    """States say their number themselves; a memory says nothing, and its checksum is wrong then."""
    for one, other in ((f"{kind}-0", "aside"), (f"{kind}-1", f"{kind}-0"), ("aside", f"{kind}-1")):
        os.rename(folder / one, folder / other)
    if kind == "state":
        assert_same_result(go(folder), go(None))
    else:
        refuse(folder, "the checksum of memory-. is wrong")


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
def test_states_that_were_made_up_are_refused(folder, case):
    """Their checksum is right, and what they hold would lead compiled code astray."""
    for name in ("state-0", "state-1"):
        head, tree = read_state(folder / name)
        if case is None:
            place = head.memory._replace(shape=(head.memory.shape[0] * 3, 1))
            head = StateHead(head.run, head.number, place, head.path)
        else:
            tree = case(tree)
        write_state(folder / name, head, encode(tree))
    refuse(folder, "is damaged: its content does not match this run")


def test_what_is_written_is_on_the_disk_before_a_state_speaks_of_it(tmp_path, monkeypatch):
    """Each file that was written to is brought to the disk before a state gets its name."""
    pwrite, fsync, replace = os.pwrite, os.fsync, os.replace
    loose, written, named = set(), set(), []

    def name_of(handle):
        return os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))

    def write(handle, *arguments):
        loose.add(name_of(handle))
        written.add(name_of(handle))
        return pwrite(handle, *arguments)

    def sync(handle):
        loose.discard(name_of(handle))
        fsync(handle)

    def rename(source, target):
        if tmp_path in Path(target).parents:  # a kernel that is compiled now is renamed, too, elsewhere
            named.append((os.path.basename(target), sorted(loose - {"lock"})))
        replace(source, target)

    monkeypatch.setattr(os, "pwrite", write)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    monkeypatch.setattr("swiftem.checkpoints.folder.MemoryFile.reserve", lambda self, size: None)
    go(tmp_path)
    assert {"memory-0", "path", ".state-0.new"} <= written
    assert len(named) > 10
    assert {name for name, _ in named} == {"begun", "state-0", "state-1"}
    assert [late for _, late in named] == [[]] * len(named)


def test_starts_that_changed_places_are_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 2))
    mixture = swiftem.GaussianMixture(
        3, method="fiem", n_init=2, init_params="random", random_state=0, max_iter=5,
        checkpoint=tmp_path / "fit", checkpoint_every=1, resume="auto",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(X)
    for one, other in (("start-0", "aside"), ("start-1", "start-0"), ("aside", "start-1")):
        os.rename(tmp_path / "fit" / one, tmp_path / "fit" / other)
    with pytest.raises(ValueError, match="belongs to another run: its number is"):
        mixture.fit(X)


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


@pytest.mark.parametrize("kind", ["begun", "state-?"])
def test_another_format_is_refused_by_its_number(folder, kind):
    for file in folder.glob(kind):
        file.write_bytes(file.read_bytes().replace(b"format 4", b"format 3"))
    refuse(folder, "in format 3, and this version of swiftem reads 4")
