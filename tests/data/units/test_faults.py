"""Workers, schedulers and clients that die, hang or come late: the same bits, or one sentence."""

import os
import pickle
import random
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
from cluster_processes import METHODS, NOISE, SCHEDULER, WORKER, X, assert_same, planned, process, run

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
da = pytest.importorskip("dask.array")

from swiftem.data.units import tasks as module  # noqa: E402  (needs distributed)

pytestmark = NOISE
KILLS = int(os.environ.get("SWIFTEM_KILLS", "100"))
"""Kills of workers in the campaign; a tenth of clients, a twentieth of schedulers."""


def deadly(rows, folder, deaths):
    """Return rows; the first tasks that do so kill their workers."""
    for number in range(deaths):
        try:
            (Path(folder) / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        os._exit(1)
    return rows


@pytest.fixture
def cluster():
    """Two workers of one thread, with nannies; ten deaths at a task are no error.

    A LocalCluster removes a worker that is missing some seconds after a loss, even if it is just starting
    again after another one.
    """
    settings = {"distributed.scheduler.allowed-failures": 10, "distributed.deploy.lost-worker-timeout": "1h"}
    with dask.config.set(settings):
        made = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
        )
        try:
            yield made
        finally:
            with suppress(TimeoutError):  # of a nanny that is just starting its worker again
                made.close()


def test_a_unit_whose_workers_die_is_started_again(cluster, tmp_path):
    def units(folder, deaths):
        parts = [dask.delayed(part) for part in np.array_split(X, 8)]
        return [dask.delayed(deadly)(parts[0], str(folder), deaths), *parts[1:]]

    here = run("em", [dask.delayed(part) for part in np.array_split(X, 8)])
    with distributed.Client(cluster):
        assert_same(run("em", units(tmp_path, 2)), here)
        assert len(list(tmp_path.iterdir())) == 2
        cluster.scheduler.allowed_failures = 1
        (tmp_path / "again").mkdir()
        with pytest.raises(
            module.ClusterError, match=r"Workers died repeatedly at unit \d of data: their memory"
        ):
            run("em", units(tmp_path / "again", 50))


def test_a_run_waits_for_a_worker_and_uses_it(monkeypatch):
    monkeypatch.setattr(module, "NO_WORKER", 0.5)
    here = run("em", planned(), record_every=1)
    with ExitStack() as stack:
        _, address = stack.enter_context(process(SCHEDULER, 0))
        first, _ = stack.enter_context(process(WORKER, address))
        client = stack.enter_context(distributed.Client(address))
        client.wait_for_workers(1)
        threads = []
        # A lambda: workers cannot import this file.
        threads_of = lambda: (  # noqa: E731
            __import__("swiftem.kernels.threads", fromlist=["get_threads"]).get_threads()
        )

        def join():
            time.sleep(1.5)
            with process(WORKER, address) as (_, name):
                told.wait(60)
                threads.append(client.run(threads_of, workers=[name])[name])

        joins, told = threading.Thread(target=join), threading.Event()

        def kill(now):
            if now.k == 3:
                first.kill()
                joins.start()

        try:
            with pytest.warns(UserWarning, match="No worker is left: the run waits until one joins"):
                there = run("em", planned(), callback=kill, record_every=1)
        finally:
            told.set()
            joins.join()
    assert_same(there, here)
    assert threads == [len(os.sched_getaffinity(0))]


def test_units_that_are_too_large_are_not_kept(cluster):
    with distributed.Client(cluster) as client:
        units = module.DaskUnits(client, _first, [(np.ones((3, 1)), None, "unit 0")])
        limit = sum(one["memory_limit"] for one in client.scheduler_info()["workers"].values())
        units.hold(0.51 * limit)
        assert isinstance(units.items[0][0], np.ndarray)
        units.hold(0.49 * limit)
        assert np.array_equal(units.items[0][0].result(), np.ones((3, 1)))


def _first(unit, weight, where):
    return unit


def lose_scheduler(folder, at, pause=0.0):
    """Kill the scheduler of a checkpointed run at an iteration; return the seconds until it says so.

    After a pause the client knows that its connection is lost, and tries to open another.
    """
    with ExitStack() as stack:
        scheduler, address = stack.enter_context(process(SCHEDULER, 0))
        stack.enter_context(process(WORKER, address))
        began = []

        def kill(now):
            if now.k == at:
                scheduler.kill()
                began.append(time.monotonic())
                time.sleep(pause)

        client = distributed.Client(address)
        try:
            with pytest.raises(module.ClusterError, match="is lost: start a cluster, and resume"):
                run("em", planned(), callback=kill, record_every=1, checkpoint=folder, checkpoint_every=1)
        finally:
            client.close(timeout=1)
    return time.monotonic() - began[0]


def resumed(folder, cluster):
    with distributed.Client(cluster):
        return run("em", planned(), record_every=1, checkpoint=folder, checkpoint_every=1, resume=True)


def test_a_lost_scheduler_is_a_sentence_and_the_run_resumes_on_another_cluster(cluster, tmp_path):
    assert lose_scheduler(tmp_path / "kept", 3) < 30
    assert_same(resumed(tmp_path / "kept", cluster), run("em", planned()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No worker is left")
@pytest.mark.filterwarnings("ignore:The cluster has no worker")
def test_campaign_of_killed_workers(cluster):
    here = {name: run(name, planned()) for name in METHODS}
    chance, killed = random.Random(0), 0
    over = threading.Event()

    def kill():
        nonlocal killed
        while killed < KILLS and not over.wait(chance.uniform(0.1, 2.0)):
            victim = chance.choice(list(cluster.workers.values())).pid
            if victim:
                os.kill(victim, signal.SIGKILL)
                killed += 1

    killer = threading.Thread(target=kill)
    with distributed.Client(cluster):
        killer.start()
        try:
            while killer.is_alive():
                name = chance.choice(list(METHODS))
                assert_same(run(name, planned()), here[name])
        finally:
            over.set()
            killer.join()
    assert killed == KILLS


CLIENT = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from cluster_processes import X, run
import dask.array as da, distributed

if __name__ == "__main__":
    with distributed.Client(sys.argv[2]):
        print("here", flush=True)
        found = run(sys.argv[3], da.from_array(X, chunks=(1000, 3)), record_every=1, checkpoint=sys.argv[4],
                    checkpoint_every=1, resume="auto")
        with open(sys.argv[5], "wb") as file:
            pickle.dump(found, file)
"""


@pytest.mark.slow
def test_campaign_of_killed_clients(cluster, tmp_path):
    chance, killed = random.Random(0), 0
    for number in range(1000):
        name, folder, out = chance.choice(list(METHODS)), tmp_path / f"run-{number}", tmp_path / f"{number}"
        while not out.exists():
            given = (Path(__file__).parents[2] / "_support", cluster.scheduler_address, name, folder, out)
            with process(CLIENT, *given) as (client, _):
                try:
                    client.wait(chance.uniform(0.2, 3.0) if killed < max(1, KILLS // 10) else 100)
                except subprocess.TimeoutExpired:
                    killed += 1
        assert out.stat().st_size
        assert_same(pickle.loads(out.read_bytes()), run(name, planned()))
        if killed >= max(1, KILLS // 10):
            return


@pytest.mark.slow
def test_campaign_of_killed_schedulers(cluster, tmp_path):
    here = run("em", planned())
    for number in range(max(1, KILLS // 20)):
        folder = tmp_path / f"run-{number}"
        assert lose_scheduler(folder, 1 + number % 10, pause=number % 2) < 30
        assert_same(resumed(folder, cluster), here)
