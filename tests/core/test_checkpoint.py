"""``swiftem.run`` with checkpoints: exact resuming, refusals, damage, links, full disks, two runs.

Runs that died and were made longer, of all methods, are in ``tests/methods/test_going_on.py``; random changes
of folders are in ``tests/faults``.
"""

import contextlib
import itertools
import os
import random
import resource
import shutil
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import NamedTuple

import damage
import helpers
import numpy as np
import pytest
from helpers import assert_same_path, assert_same_result, make_method

import swiftem
from swiftem import methods, models, schedules
from swiftem.core import checkpoint
from swiftem.core.checkpoint import FORMAT, read_state
from swiftem.core.state_file import write_tree

N_ITER = 48
PROBLEM = helpers.mixture(40, M=3)


class Death(Exception):
    """Stands for what ends a process."""


def method_of(name):
    """Return a method with large steps: some are rejected."""
    return make_method(name, step_size=schedules.power(0.9, 0.1), batch_size=2, epoch_length=5)


def go(folder, method="iem", until=None, problem=PROBLEM, **options):
    """Begin a run or go on with it; it dies at iteration ``until``."""

    def callback(iterate):
        if until is not None and iterate.k >= until:
            raise Death

    given = {"n_iter": N_ITER, "seed": 3, "record_every": 4, "callback": callback}
    if folder is not None:
        given |= {"checkpoint": folder, "checkpoint_every": 3, "resume": "auto"}
    with pytest.raises(Death) if until is not None else contextlib.nullcontext():
        return problem.run(method_of(method) if isinstance(method, str) else method, **given | options)


def goes_on(folder, *arguments, **options):
    """Check that a run ends as one that was never interrupted, with the same records; return its result."""
    result, whole = go(folder, *arguments, **options), go(None, *arguments, **options)
    assert_same_result(result, whole)
    assert_same_path(result.path, whole.path)
    return result


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a folder of a run that died, with a memory and a path."""
    folder = tmp_path_factory.mktemp("kept") / "run"
    go(folder, until=30)
    assert {name.partition("-")[0] for name in os.listdir(folder)} == {"lock", "state", "memory", "records"}
    return folder


@pytest.fixture
def folder(kept, tmp_path):
    return Path(shutil.copytree(kept, tmp_path / "run"))


def content(folder):
    """Return all files but the lock, whose holder it names."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def refuse(folder, match, *arguments, error=ValueError, **options):
    """Check that a run is refused by one sentence with the folder's name, and nothing written."""
    before = content(folder)
    with pytest.raises(error, match=match) as raised:
        go(folder, *arguments, **options)
    assert str(folder) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert content(folder) == before


def forge(folder, **parts):
    """Replace parts of the state; its hash is right."""
    with (folder / "state").open("r+b") as file:
        state = read_state(folder)._replace(**parts)
        file.truncate()
        write_tree(file, FORMAT, tuple(state))


# Resuming


def test_a_run_without_a_seed_goes_on_with_its_own(tmp_path):
    go(tmp_path, until=0, seed=None)  # before the first checkpoint
    assert read_state(tmp_path).number == 0
    go(tmp_path, until=20, seed=None)
    result = go(tmp_path, seed=None)
    start = go(None, n_iter=0)
    state = start.state._replace(entropy=result.state.entropy)
    whole = go(None, theta0=start.theta, s0=start.s, state=state, seed=None)
    assert_same_result(result, whole)


def test_a_run_is_not_made_shorter(folder):
    with pytest.raises(ValueError, match=r"^n_iter must be at least 30, the iterations of the checkpoint\.$"):
        go(folder, n_iter=20)


def test_given_draws_and_random_ends_go_on(tmp_path):
    draws = helpers.random_draws("fiem", 40, N_ITER, b=2)
    go(tmp_path / "draws", "fiem", until=20, draws=draws)
    goes_on(tmp_path / "draws", "fiem", draws=draws)
    end = swiftem.RandomTermination(200)
    whole = go(None, "fiem", n_iter=end)
    go(tmp_path / "end", "fiem", until=min(20, whole.n_iter // 4 * 4), n_iter=end)
    assert_same_result(go(tmp_path / "end", "fiem", n_iter=end), whole)


def test_a_resumed_state_can_have_checkpoints(tmp_path):
    first = go(None, n_iter=10)
    start = {"theta0": first.theta, "s0": first.s, "state": first.state, "n_iter": 38}
    go(tmp_path, until=30, **start)
    assert_same_result(go(tmp_path, **start), go(None))


def test_ctrl_c_leaves_a_checkpoint_and_no_record_is_lost(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        stopped = go(
            tmp_path,
            callback=lambda iterate: iterate.k == 16 and signal.raise_signal(signal.SIGINT),
            checkpoint_every=40,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped.status == "interrupted"
    goes_on(tmp_path)


def test_a_run_that_a_callback_stopped_stays_stopped(tmp_path):
    stopped, again = (go(tmp_path, callback=lambda iterate: iterate.k == 12) for _ in range(2))
    assert (stopped.status, stopped.n_iter) == (again.status, again.n_iter) == ("stopped", 12)
    assert_same_result(again, stopped)
    assert [it.k for it in again.path] == [it.k for it in stopped.path]


@pytest.mark.parametrize("at", [8, 11])  # the last checkpoint is an odd or an even one
def test_a_run_resumes_from_the_last_of_its_checkpoints(tmp_path, at):
    go(tmp_path, until=at, record_every=1)
    first = []
    go(tmp_path, record_every=1, callback=lambda iterate: bool(first.append(iterate.k)))
    assert first[0] == at // 3 * 3 + 1


def test_checkpoints_are_at_multiples_of_their_distance(tmp_path):
    """Also where a run begins in between, as after a change of ``checkpoint_every``."""
    saved = set()

    def look(iterate=None):
        state = read_state(tmp_path)
        saved.update({state.tree["state"].k} if state.number else set())

    for n_iter, every in ((10, 5), (30, 7)):
        go(tmp_path, n_iter=n_iter, checkpoint_every=every, record_every=1, callback=look)
        look()
    assert sorted(saved) == [5, 10, 14, 21, 28, 30]


def test_by_default_little_time_goes_into_checkpoints(tmp_path):
    go(tmp_path, n_iter=500, checkpoint_every=None)
    assert read_state(tmp_path).number == 1  # in a moment, only the end


def test_what_record_returns_is_kept(tmp_path):
    options = {"record": lambda iterate: {"k": iterate.k, "mean": iterate.theta.means.mean()}}
    go(tmp_path, until=20, **options)
    assert go(tmp_path, **options).path == go(None, **options).path
    with pytest.raises(TypeError, match=r"^what record returns must be made of numbers.*, got object\.$"):
        go(tmp_path / "other", record=lambda iterate: object())


class LocalTheta(NamedTuple):
    rate: float


def test_a_model_of_ones_own(tmp_path):
    """θ is a Python number in a named tuple of the user's, and stays one."""
    model = models.FunctionModel(
        lambda y, rng: LocalTheta(1.0),
        lambda y, theta: (y[:, None] * 1.0, np.log(theta.rate) - theta.rate * y),
        lambda s: LocalTheta(1.0 / float(s[0])),
        lambda theta: 0.0,
    )
    problem = helpers.Problem(model, np.arange(1.0, 30.0), None, 29, None)
    method = methods.OnlineEM(batch_size=2)
    go(tmp_path, method, until=20, problem=problem)
    assert type(goes_on(tmp_path, method, problem=problem).theta.rate) is float


def test_a_type_that_is_not_imported_is_named(tmp_path, monkeypatch):
    options = {"record": lambda iterate: LocalTheta(iterate.k)}
    go(tmp_path, until=20, **options)
    monkeypatch.delattr(sys.modules[__name__], "LocalTheta")
    match = r"cannot be resumed here: it has a '.*:LocalTheta', which no.* Import that module first\.$"
    refuse(tmp_path, match, **options)


def test_a_run_of_which_few_rows_of_the_memory_change_goes_on(tmp_path, monkeypatch):
    """Files of rows that have not changed are not written again, and the others are removed."""
    problem = helpers.mixture(2000, d=3)
    monkeypatch.setattr(checkpoint, "BLOCK_BYTES", 1024)
    for name in ("iem", "fiem"):
        method, folder = make_method(name, batch_size=10, step_size=0.1), tmp_path / name
        go(folder, method, until=64, problem=problem, n_iter=90)
        blocks, numbers = zip(*(path.name.split("-")[1:] for path in folder.glob("memory-*")), strict=True)
        assert sorted(map(int, blocks)) == list(range(len(blocks)))
        assert len(blocks) > 20
        assert len(set(numbers)) > 1
        goes_on(folder, method, problem=problem, n_iter=90)


# Other runs and folders

OTHER_DATA = PROBLEM._replace(data=PROBLEM.data + 1e-9)
OTHER_MODEL = PROBLEM._replace(model=models.GaussianMixtureModel(3, delta=0.5))
REFUSED = {
    "another model": ({"problem": OTHER_MODEL}, "belongs to another run: its model is "),
    "another method": ({"method": methods.FastIncrementalEM()}, "belongs to another run: its method is "),
    "another batch": ({"method": methods.IncrementalEM()}, "belongs to another run: its method is "),
    "other data": ({"problem": OTHER_DATA}, "another run: its data is "),
    "other weights": ({"sample_weight": np.arange(1.0, 41.0)}, "another run: its data is "),
    "another seed": ({"seed": 4}, "belongs to another run: its seed is "),
    "another start": ({"theta0": None}, "belongs to another run: its start is "),
    "draws": ({"draws": np.zeros((N_ITER, 2), int)}, "belongs to another run: its draws is None"),
    "other records": ({"record_every": 5}, "its record_every is 4, here"),
    "other kernels": ({"kernels": "reference"}, "its kernels is auto"),
    "without resume": ({"resume": False}, "already has a run: use resume=True to resume it"),
}


@helpers.parametrize_cases(REFUSED)
def test_another_run_is_refused_and_nothing_written(folder, case):
    options, message = case
    refuse(folder, message, **options)
    goes_on(folder)  # it is not locked, either


def test_bad_arguments():
    attempts = {
        "checkpoint_every needs checkpoint": {"checkpoint_every": 3},
        "resume needs checkpoint": {"resume": True},
        "checkpoint must be a folder, got 3": {"checkpoint": 3},
        "checkpoint_every must be an integer": {"checkpoint": "x", "checkpoint_every": 1.5},
        "checkpoint_every must be at least 1": {"checkpoint": "x", "checkpoint_every": 0},
        "resume must be True, False or 'auto'": {"checkpoint": "x", "resume": "never"},
    }
    for message, options in attempts.items():
        with pytest.raises((TypeError, ValueError), match=f"^{message}"):
            go(None, **options)
    assert not os.path.exists("x")


def test_folders_that_cannot_serve(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"^resume=True needs a checkpoint in '.*', but there is none"
    ):
        go(tmp_path / "nothing", resume=True)
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"^checkpoint='.*' must be a folder, got a file\.$"):
        go(tmp_path / "file")
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(OSError, match=r"closed' cannot be written to \(permission denied\)\."):
            go(tmp_path / "closed")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read(folder):
    (folder / "state").chmod(0)
    with pytest.raises(OSError, match="cannot be read"):
        go(folder)


def test_arguments_that_are_refused_leave_no_run_behind(tmp_path):
    for name, value in (("n_iter", -1), ("s0", [1.0])):
        with pytest.raises(ValueError, match=name):
            go(tmp_path, resume=False, **{name: value})
    go(tmp_path, resume=False)


def test_two_runs_on_one_folder(tmp_path):
    inside, leave = threading.Event(), threading.Event()
    first = threading.Thread(
        target=lambda: go(tmp_path, callback=lambda iterate: inside.set() or not leave.wait(60))
    )
    first.start()
    try:
        assert inside.wait(60)
        for resume in (True, False, "auto"):
            with pytest.raises(ValueError, match=rf"is in use: another run, process {os.getpid()}, writes"):
                go(tmp_path, resume=resume)
    finally:
        leave.set()
        first.join()
    goes_on(tmp_path)


# Damage

HARM = {
    "flip": lambda whole: damage.flip(whole, random.Random(0)),
    "cut": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: b"",
}


@pytest.mark.parametrize("name", ["state", "memory-0-*", "records"])
@helpers.parametrize_cases(HARM)
def test_a_damaged_checkpoint_is_refused(folder, name, case):
    (path,) = folder.glob(name)
    path.write_bytes(case(path.read_bytes()))
    refuse(folder, "is damaged|wrong length|another version")


@pytest.mark.parametrize("name", ["memory-0-*", "records"])
def test_a_checkpoint_without_one_of_its_files_is_refused(folder, name):
    (path,) = folder.glob(name)
    path.unlink()
    refuse(folder, r"cannot be read \(no such file", error=FileNotFoundError)


@pytest.mark.parametrize("name", ["lock", "state", "memory-0-*", "records"])
@pytest.mark.parametrize("how", ["a symbolic link", "not a regular file"])
def test_links_are_refused_and_their_targets_are_left_alone(folder, tmp_path, name, how):
    (place,) = folder.glob(name)
    other = tmp_path / "other"
    whole = place.read_bytes()
    place.unlink()
    if how == "a symbolic link":
        other.write_bytes(whole)
        place.symlink_to(other)
    else:
        os.mkfifo(place)
    for resume in (True, "auto"):
        with pytest.raises((OSError, ValueError), match=rf"{place.name} is {how}|wrong length") as error:
            go(folder, resume=resume)
        assert str(folder) in str(error.value)
    assert not other.exists() or other.read_bytes() == whole


def test_links_of_new_files_are_replaced(tmp_path):
    """A file of the next checkpoint may be a link already: its target is not written to."""
    (tmp_path / "other").write_bytes(b"mine")
    (tmp_path / "run").mkdir()
    for name, target in (("state", "nothing"), ("memory-0-1", "other")):
        (tmp_path / "run" / name).symlink_to(tmp_path / target)
    goes_on(tmp_path / "run")
    assert (tmp_path / "other").read_bytes() == b"mine"
    assert not (tmp_path / "nothing").exists()


def test_a_link_to_the_folder_itself_is_the_users_own(folder, tmp_path):
    (tmp_path / "name").symlink_to(folder)
    assert_same_result(go(tmp_path / "name", resume=True), go(None))


@pytest.mark.parametrize("source", ["lock", "memory-0-*", "records"])
def test_another_file_in_the_place_of_the_state(folder, source):
    (file,) = folder.glob(source)
    shutil.copy(file, folder / "state")
    refuse(folder, r"is damaged, or of another version or run \(state")


@pytest.mark.parametrize(("name", "reason"), [("state", "its seed is"), ("records", "records")])
def test_files_of_another_run_are_refused(folder, tmp_path, name, reason):
    go(tmp_path / "other", seed=4, until=30)
    shutil.copy(tmp_path / "other" / name, folder / name)
    refuse(folder, reason)


def test_an_older_state_whose_memory_is_gone_is_refused(folder):
    before = (folder / "state").read_bytes()
    go(folder, until=36)
    (folder / "state").write_bytes(before)
    refuse(folder, r"cannot be read \(no such file", error=FileNotFoundError)


def test_records_of_another_order_are_refused(folder):
    first, *records = (folder / "records").read_bytes().split(FORMAT.encode())
    records[1], records[2] = records[2], records[1]
    (folder / "records").write_bytes(FORMAT.encode().join([first, *records]))
    refuse(folder, "records: its hash is wrong")


def test_the_remains_of_a_killed_process_are_removed(folder, tmp_path):
    with (folder / "records").open("ab") as file:
        file.write(b"half a record")
    for name in ("memory-0-99", "memory-7-1", ".state.x7a", ".memory-0-9.abc"):
        (folder / name).write_bytes(b"half a file")
    (tmp_path / "notes").write_bytes(b"mine")
    (folder / "notes").symlink_to(tmp_path / "notes")  # files of another name do no harm
    goes_on(folder)
    names = {path.name.rpartition("-")[0] or path.name for path in folder.iterdir()}
    assert names == {"lock", "state", "records", "memory-0", "notes"}
    assert (tmp_path / "notes").read_bytes() == b"mine"


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
}


@helpers.parametrize_cases(FORGED)
def test_forged_states_are_refused(folder, case):
    """Their hash is right, and compiled code would trust what they hold."""
    forge(folder, tree=case(read_state(folder).tree))
    refuse(folder, "is damaged, or of another version or run")


def test_a_forged_memory_is_refused(folder):
    (n, columns), dtype, files = read_state(folder).memory
    forge(folder, memory=((n * columns, 1), dtype, files))
    refuse(folder, "is damaged, or of another version or run")


@pytest.mark.parametrize("n_iter", [20, 0])
def test_a_full_disk_ends_the_run_and_leaves_the_last_checkpoint(tmp_path, n_iter):
    """Here it is the system's limit on the size of a file, which ends at the next checkpoint."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    go(None)  # compiles

    def fill(iterate):
        if iterate.k >= n_iter:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))

    which = "the last good one is intact" if n_iter else "there is none yet"
    try:
        with pytest.raises(OSError, match=rf"cannot be written to; {which} \(file too large\)\."):
            go(tmp_path, callback=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    goes_on(tmp_path)


def test_files_are_on_disk_before_the_state_that_names_them(tmp_path, monkeypatch):
    fsync, replace, done = os.fsync, os.replace, []

    def sync(handle):
        done.append(("sync", os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))))
        fsync(handle)

    def rename(source, target):
        if tmp_path in Path(target).parents:  # kernels are compiled now, and replaced elsewhere
            assert done[-1] == ("sync", os.path.basename(source))
            done.append(("name", os.path.basename(target).partition("-")[0]))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    go(tmp_path)
    events = [event for event in done if event[0] == "name" or event[1] in ("records", tmp_path.name)]
    for one, two in itertools.pairwise(events):
        assert one[0] == "sync" or two == ("sync", tmp_path.name), "a new name is synced"
    states = [place for place, event in enumerate(events) if event == ("name", "state")]
    assert len(states) == 1 + N_ITER // 3
    written = [("sync", "records") in events[one:two] for one, two in itertools.pairwise([0, *states])]
    assert N_ITER // 4 - 1 <= sum(written) <= N_ITER // 4 + 1


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


VERSIONS = {
    "numba": {"numba": "99.0.1"},
    "swiftem": {"swiftem": "99.0.1"},
    "numpy": {"numpy": "99.0.1"},
    "python": {"python": "3.99.0"},
    "python, patch": {"python": f"{sys.version_info[0]}.{sys.version_info[1]}.99"},
}


@helpers.parametrize_cases(VERSIONS)
def test_other_versions_are_told_and_gone_on_from(tmp_path, caplog, case):
    method = methods.OnlineEM(step_size=lambda k: 0.9 / (k + 1), batch_size=2)  # its code is compared
    go(tmp_path, method, until=20)
    forge(tmp_path, identity=read_state(tmp_path).identity | case)
    goes_on(tmp_path, method)
    assert "results may differ in the last bit" in caplog.text
    assert "was written by" in caplog.text


def test_another_python_does_not_hide_another_run(folder):
    forge(folder, identity=read_state(folder).identity | VERSIONS["python"])
    refuse(folder, "belongs to another run: its method is", methods.IncrementalEM(batch_size=5))


def test_another_format_is_refused_by_its_number(folder):
    file = folder / "state"
    file.write_bytes(file.read_bytes().replace(b"format 6", b"format 7"))
    refuse(folder, r"another version or run \(state: its first line is not 'swiftem checkpoint, format 6'\)")
