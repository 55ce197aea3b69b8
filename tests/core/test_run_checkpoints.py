"""``swiftem.run`` with checkpoints: exact resuming, refusals, damage, full disks, two runs."""

import errno
import os
import resource
import signal
import sys
import threading
from typing import NamedTuple

import helpers
import numpy as np
import pytest
from helpers import NAMES, assert_identical, assert_same_result, make_method

import swiftem
from swiftem import methods, models, schedules
from swiftem.core import checkpoint as store
from swiftem.core.checkpoint import RunCheckpoint, read_state

N_ITER = 48
every_method = pytest.mark.parametrize("name", NAMES)


class Death(Exception):
    """Stands for what ends a process."""


def dies_at(k):
    def callback(iterate):
        if iterate.k >= k:
            raise Death

    return callback


def example(name, model="mixture"):
    """Large steps: some are rejected, and statistics of pLSA fall below zero."""
    problem = helpers.mixture(20, M=3) if model == "mixture" else helpers.topics(60, D=5, V=8, K=4)
    return problem, make_method(name, step_size=schedules.power(0.9, 0.1), batch_size=2, epoch_length=5)


def die(problem, method, folder, at, **options):
    options = {
        "n_iter": N_ITER,
        "seed": 3,
        "record_every": 4,
        "checkpoint_every": 3,
        "resume": "auto",
    } | options
    with pytest.raises(Death):
        problem.run(method, callback=dies_at(at), checkpoint=folder, **options)


def go_on(problem, method, folder, **options):
    options = {
        "n_iter": N_ITER,
        "seed": 3,
        "record_every": 4,
        "checkpoint_every": 3,
        "resume": True,
    } | options
    return problem.run(method, checkpoint=folder, **options)


def assert_same_path(actual, expected):
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        assert (one.k, one.passes, one.rejected) == (other.k, other.passes, other.rejected)
        assert_identical((one.theta, one.s), (other.theta, other.s))


def content(folder):
    """Return all files but the lock, whose holder it names."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def test_a_run_that_died_before_its_first_checkpoint_begins_with_its_own_seed(tmp_path):
    problem, method = example("fiem")
    die(problem, method, tmp_path, 0, seed=None)
    assert read_state(tmp_path).number == 0
    first = go_on(problem, method, tmp_path, seed=None, n_iter=20)
    seed = first.state.entropy
    again = go_on(problem, method, tmp_path, seed=None)
    np.testing.assert_array_equal(again.state.entropy, seed)
    assert again.n_iter == N_ITER


def test_a_run_without_a_seed_goes_on_with_its_own(tmp_path):
    problem, method = example("fiem")
    die(problem, method, tmp_path, 20, seed=None)
    result = go_on(problem, method, tmp_path, seed=None)
    start = problem.run(method, n_iter=0)
    state = start.state._replace(entropy=result.state.entropy)
    whole = problem.run(method, theta0=start.theta, s0=start.s, state=state, n_iter=N_ITER)
    assert_same_result(result, whole)


def test_a_run_is_not_made_shorter(tmp_path):
    problem, method = example("fiem")
    go_on(problem, method, tmp_path, n_iter=20, resume=False)
    with pytest.raises(ValueError, match=r"^n_iter must be at least 20, the iterations of the checkpoint\.$"):
        go_on(problem, method, tmp_path, n_iter=19)


def test_given_draws_and_random_ends_go_on(tmp_path):
    problem, method = example("fiem")
    draws = helpers.random_draws("fiem", problem.n, N_ITER, b=2)
    whole = problem.run(method, n_iter=N_ITER, draws=draws, seed=0)
    die(problem, method, tmp_path / "draws", 20, draws=draws, seed=0)
    assert_same_result(go_on(problem, method, tmp_path / "draws", draws=draws, seed=0), whole)
    end = swiftem.RandomTermination(200)
    whole = problem.run(method, n_iter=end, seed=0)
    die(problem, method, tmp_path / "end", min(20, whole.n_iter // 4 * 4), n_iter=end, seed=0)
    assert_same_result(go_on(problem, method, tmp_path / "end", n_iter=end, seed=0), whole)


def test_a_resumed_state_can_have_checkpoints(tmp_path):
    problem, method = example("iem")
    first = problem.run(method, n_iter=10, seed=3)
    start = {"theta0": first.theta, "s0": first.s, "state": first.state, "n_iter": 38}
    die(problem, method, tmp_path, 30, **start)
    result = go_on(problem, method, tmp_path, **start)
    assert_same_result(result, problem.run(method, n_iter=N_ITER, seed=3))


def test_ctrl_c_leaves_a_checkpoint_and_no_record_is_lost(tmp_path):
    problem, method = example("fiem")
    whole = problem.run(method, n_iter=N_ITER, seed=3, record_every=4)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:

        def press(iterate):
            if iterate.k == 16:
                signal.raise_signal(signal.SIGINT)

        stopped = problem.run(
            method,
            n_iter=N_ITER,
            seed=3,
            record_every=4,
            callback=press,
            checkpoint=tmp_path,
            checkpoint_every=40,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped.status == "interrupted"
    result = go_on(problem, method, tmp_path)
    assert_same_result(result, whole)
    assert_same_path(result.path, whole.path)


def test_a_run_that_a_callback_stopped_stays_stopped(tmp_path):
    problem, method = example("sem")
    options = {"callback": lambda iterate: iterate.k == 12}
    stopped = go_on(problem, method, tmp_path, resume="auto", **options)
    again = go_on(problem, method, tmp_path, **options)
    assert (stopped.status, stopped.n_iter) == (again.status, again.n_iter) == ("stopped", 12)
    assert_same_result(again, stopped)
    assert_same_path(again.path, stopped.path)


@pytest.mark.parametrize("at", [8, 11])  # the last checkpoint is an odd or an even one
def test_a_run_resumes_from_the_last_of_its_checkpoints(tmp_path, at):
    problem, method = example("sem")
    options = {"record_every": 1, "checkpoint_every": 3}
    die(problem, method, tmp_path, at, **options)
    first = []
    go_on(problem, method, tmp_path, callback=lambda iterate: bool(first.append(iterate.k)), **options)
    assert first[0] == at // 3 * 3 + 1


def test_checkpoints_are_at_multiples_of_their_distance(tmp_path, monkeypatch):
    """Also where a run begins in between, as after a change of ``checkpoint_every``."""
    problem, method = example("sem")
    saved, save = [], RunCheckpoint.save
    monkeypatch.setattr(
        RunCheckpoint, "save", lambda self, at, rows: (saved.append(at.state.k), save(self, at, rows))
    )
    go_on(problem, method, tmp_path / "run", n_iter=10, resume="auto", checkpoint_every=5)
    go_on(problem, method, tmp_path / "run", n_iter=30, checkpoint_every=7)
    assert saved == [5, 10, 14, 21, 28, 30]
    problem.run(method, n_iter=500, seed=0, checkpoint=tmp_path / "default")
    assert saved[6:] == [500]  # by default little time goes into them: in a moment, only the end


def test_what_record_returns_is_kept(tmp_path):
    problem, method = example("sem")
    options = {"record": lambda iterate: {"k": iterate.k, "mean": iterate.theta.means.mean()}}
    whole = problem.run(method, n_iter=N_ITER, seed=3, record_every=4, **options)
    die(problem, method, tmp_path, 20, **options)
    assert go_on(problem, method, tmp_path, **options).path == whole.path
    with pytest.raises(TypeError, match=r"^what record returns must be made of numbers.*, got object\.$"):
        go_on(problem, method, tmp_path / "other", resume="auto", record=lambda iterate: object())


REFUSED = {
    "another model": (
        lambda p, m, f: go_on(p._replace(model=models.GaussianMixtureModel(3, delta=0.5)), m, f),
        "belongs to another run: its model is ",
    ),
    "another method": (
        lambda p, m, f: go_on(p, methods.IncrementalEM(batch_size=2), f),
        "belongs to another run: its method is ",
    ),
    "another step": (
        lambda p, m, f: go_on(p, methods.FastIncrementalEM(step_size=0.5, batch_size=2), f),
        "belongs to another run: its method is ",
    ),
    "other data": (lambda p, m, f: go_on(p._replace(data=p.data + 1e-9), m, f), "another run: its data is "),
    "other weights": (
        lambda p, m, f: go_on(p, m, f, sample_weight=np.arange(1.0, 21.0)), "another run: its data is ",
    ),
    "another seed": (lambda p, m, f: go_on(p, m, f, seed=4), "belongs to another run: its seed is "),
    "another start": (lambda p, m, f: go_on(p, m, f, theta0=None), "belongs to another run: its start is "),
    "draws": (
        lambda p, m, f: go_on(p, m, f, draws=helpers.random_draws("fiem", p.n, N_ITER, b=2)),
        "belongs to another run: its draws is None",
    ),
    "other records": (lambda p, m, f: go_on(p, m, f, record_every=5), "its record_every is 4, here"),
    "other kernels": (lambda p, m, f: go_on(p, m, f, kernels="reference"), "its kernels is auto"),
    "without resume": (
        lambda p, m, f: go_on(p, m, f, resume=False), "already has a run: use resume=True to resume it",
    ),
    "a wrong resume": (lambda p, m, f: go_on(p, m, f, resume="yes"), "resume must be True, False or 'auto'"),
}  # fmt: skip


@helpers.parametrize_cases(REFUSED)
def test_another_run_is_refused_and_nothing_written(tmp_path, case):
    attempt, message = case
    problem, method = example("fiem")
    die(problem, method, tmp_path, 20)
    before = content(tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        attempt(problem, method, tmp_path)
    assert "\n" not in str(error.value)
    assert content(tmp_path) == before
    go_on(problem, method, tmp_path)  # it is not locked, either


def test_bad_arguments():
    problem, method = example("sem")
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
            problem.run(method, n_iter=1, **options)
    assert not os.path.exists("x")


def test_folders_that_cannot_serve(tmp_path):
    problem, method = example("sem")
    with pytest.raises(
        FileNotFoundError, match=r"^resume=True needs a checkpoint in '.*', but there is none"
    ):
        go_on(problem, method, tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"^checkpoint='.*' must be a folder, got a file\.$"):
        go_on(problem, method, tmp_path / "file", resume=False)
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(
            OSError, match=r"checkpoint='.*closed' cannot be written to \(permission denied\)\."
        ):
            go_on(problem, method, tmp_path / "closed", resume=False)


def test_arguments_that_are_refused_leave_no_run_behind(tmp_path):
    problem, method = example("sem")
    with pytest.raises(ValueError, match="n_iter"):
        go_on(problem, method, tmp_path, n_iter=-1, resume=False)
    with pytest.raises(ValueError, match="s0"):
        go_on(problem, method, tmp_path, s0=[1.0], resume=False)
    go_on(problem, method, tmp_path, resume=False)


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
    whole = problem.run(method, n_iter=N_ITER, seed=3)
    die(problem, method, tmp_path, 20)
    result = go_on(problem, method, tmp_path)
    assert_same_result(result, whole)
    assert type(result.theta.rate) is float


def test_a_type_that_is_not_imported_is_named(tmp_path, monkeypatch):
    problem, method = example("sem")
    options = {"record": lambda iterate: LocalTheta(iterate.k)}
    die(problem, method, tmp_path, 20, **options)
    monkeypatch.delattr(sys.modules[__name__], "LocalTheta")
    before = content(tmp_path)
    with pytest.raises(
        ValueError, match=r"cannot be resumed here: it has a '.*:LocalTheta', which no"
    ) as error:
        go_on(problem, method, tmp_path, **options)
    assert str(error.value).endswith("Import that module first.")
    assert content(tmp_path) == before


def harm(path, how):
    whole = bytearray(path.read_bytes())
    if how == "flip":
        whole[len(whole) // 2] ^= 1
        path.write_bytes(whole)
    elif how == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()


@pytest.mark.parametrize("name", ["state", "memory-0-*", "records"])
@pytest.mark.parametrize("how", ["flip", "cut", "empty", "gone"])
def test_a_damaged_checkpoint_is_refused(tmp_path, name, how):
    problem, method = example("iem")
    die(problem, method, tmp_path, 20)
    (path,) = tmp_path.glob(name)
    harm(path, how)
    before = content(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        go_on(problem, method, tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)
    assert content(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read(tmp_path):
    problem, method = example("sem")
    die(problem, method, tmp_path, 20)
    (tmp_path / "state").chmod(0)
    with pytest.raises(OSError, match="cannot be read"):
        go_on(problem, method, tmp_path)


@pytest.mark.parametrize("name", ["sem", "iem"])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_ends_the_run_and_leaves_the_last_checkpoint(tmp_path, monkeypatch, name, call):
    problem, method = example(name)
    real = getattr(os, call)

    def fill(iterate):
        def full(*arguments):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        if iterate.k >= 20:
            monkeypatch.setattr(os, call, full)

    problem.run(method, n_iter=1)  # compiles: files of the cache are replaced, too
    with pytest.raises(
        OSError, match=r"cannot be written to; the last good one is intact \(no space left on device\)"
    ):
        go_on(problem, method, tmp_path, resume="auto", callback=fill)
    monkeypatch.setattr(os, call, real)
    result = go_on(problem, method, tmp_path)
    assert_same_result(result, problem.run(method, n_iter=N_ITER, seed=3))
    assert_same_path(result.path, problem.run(method, n_iter=N_ITER, seed=3, record_every=4).path)


def test_a_limit_on_files(tmp_path):
    """The system's own limit, not a patched call: a memory of 160 kB where 40 kB are allowed."""
    problem, method = helpers.mixture(10_000), methods.IncrementalEM(batch_size=1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
        with pytest.raises(OSError, match=r"cannot be written to; there is none yet \(file too large\)\."):
            problem.run(method, n_iter=20, seed=0, checkpoint=tmp_path, checkpoint_every=5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    problem.run(method, n_iter=20, seed=0, checkpoint=tmp_path, checkpoint_every=5, resume="auto")


def test_two_runs_on_one_folder(tmp_path):
    problem, method = example("sem")
    inside, leave = threading.Event(), threading.Event()

    def wait(iterate):
        inside.set()
        leave.wait(60)

    first = threading.Thread(target=lambda: go_on(problem, method, tmp_path, resume=False, callback=wait))
    first.start()
    try:
        assert inside.wait(60)
        for resume in (True, False, "auto"):
            with pytest.raises(ValueError, match=rf"is in use: another run, process {os.getpid()}, writes"):
                go_on(problem, method, tmp_path, resume=resume)
    finally:
        leave.set()
        first.join()
    go_on(problem, method, tmp_path)


def test_a_run_of_which_few_rows_of_the_memory_change_goes_on(tmp_path, monkeypatch):
    """Files of rows that have not changed are not written again, and the others are removed."""
    problem = helpers.mixture(2000, d=3)
    monkeypatch.setattr(store, "BLOCK_BYTES", 1024)
    for method in (
        methods.IncrementalEM(batch_size=10),
        methods.FastIncrementalEM(batch_size=10, step_size=0.1),
    ):
        folder = tmp_path / method.name
        whole = problem.run(method, n_iter=90, seed=0)
        die(problem, method, folder, 64, n_iter=90, seed=0, checkpoint_every=4)
        blocks, numbers = zip(*(path.name.split("-")[1:] for path in folder.glob("memory-*")), strict=True)
        assert sorted(map(int, blocks)) == list(range(len(blocks)))
        assert len(blocks) > 20
        assert len(set(numbers)) > 1
        assert_same_result(go_on(problem, method, folder, n_iter=90, seed=0, checkpoint_every=4), whole)
