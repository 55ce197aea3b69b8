"""Units of rows on a local cluster: time of a pass, bytes, memory of the client, and passes of fiem.

``python -m benchmarks.units ADDRESS UNITS`` is the client whose memory is measured: it prints the bytes by
which its peak exceeds what it had when it was connected.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from statistics import median
from threading import Thread
from typing import Any

import numpy as np

import swiftem
from benchmarks.memory import STATUS, bytes_of
from benchmarks.mixture_fit import overlapping
from benchmarks.row import Row
from benchmarks.runs import agree
from benchmarks.timing import Laps, least, threads
from swiftem import methods, models
from swiftem.mixture.resolve import Facts, resolve

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Units on a cluster of two workers of one thread"
LEAD = ("method", "setting")
NOTE = """em pass: time on the workers divided by that of two threads in this process; results agree to
rounding (checked first). Bytes: all that goes between client and scheduler in a pass, by a counting relay;
the goal is 1.2·8Pq + 4 kB per task. Memory: peak of a client that runs fiem, minus that when it is
connected; the goal is 3·8Pq + 200 MB. Passes: of fiem until it reaches em's objective after 40 passes,
P = 64, with an estimator's batch and step sizes; its first pass of sem is
counted; the median of five seeds."""
D, M = 16, 32
Q = M * (1 + D + D * (D + 1) // 2)
EM_PASSES, UNITS_OF_FIEM, SEEDS = 40, 64, 5


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    if not (find_spec("dask") and find_spec("distributed")):
        return
    from distributed import Client, LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    ) as cluster:  # fmt: skip
        with Client(cluster):
            for n, units, goal in ((10**6, 8, 1.25), (10**7, 32, 1.1)):
                yield _pass(
                    n // 1000 if quick else n, units, goal, repeats if n == 10**6 else min(repeats, 2)
                )
        for n in (10**5, 10**6):
            yield _bytes(cluster.scheduler_address, n // 100 if quick else n, 32)
        if STATUS.exists():
            yield _memory(cluster.scheduler_address, 16 if quick else 256)
    for kind in ("shuffled", "sorted"):
        yield _fiem(3_000 if quick else 20_000, kind)


def _problem(n: int, units: int) -> tuple[Any, Any, Any, Any]:
    """Return rows in memory and in chunks, a model and a start."""
    import dask.array as da
    from dask import delayed

    part = -(-n // units)
    X = np.concatenate([overlapping(part, number, D, M) for number in range(units)])
    made = [delayed(overlapping)(part, number, D, M) for number in range(units)]
    planned = da.concatenate([da.from_delayed(one, (part, D), float) for one in made])
    model = models.GaussianMixtureModel(M, covariance="full", reg_covar=1e-6)
    theta = model.theta(means=X[:M], covariances=np.tile(np.eye(D), (M, 1, 1)))
    return X, planned, model, theta


def _laps(model: Any, data: Any, theta: Any, n_iter: int = 6) -> tuple[float, Any]:
    """Return the shortest iteration of em in nanoseconds, and the result."""
    laps = Laps()
    found = swiftem.run(
        model, data, methods.EM(), theta0=theta, n_iter=n_iter, record_every=1, callback=laps
    )  # fmt: skip
    return 1e9 * laps.least(), found.theta.means


def _pass(n: int, units: int, goal: float, repeats: int) -> Row:
    X, planned, model, theta = _problem(n, units)
    there, here = (lambda: _laps(model, planned, theta)), (lambda: _laps(model, X, theta))
    with threads(2):
        agree(TITLE, there()[1], here()[1], tolerance=1e-9)
        value, peer_value = least([lambda: there()[0], lambda: here()[0]], repeats)
    return Row(
        figure="units", model="full covariance", method="em", setting=f"pass, P = {units}, n = {n:.0e}", n=n,
        d=str(D), components=M, b=n, threads=2, iterations=5, repeats=repeats, value=value,
        unit="ns/iteration", peer="here or goal", peer_value=peer_value, compared="ratio", goal=goal,
    )  # fmt: skip


class Relay:
    """Passes a TCP connection on to an address, and counts its bytes in both directions."""

    def __init__(self, address: str) -> None:
        import socket

        host, _, port = address.rpartition("//")[2].rpartition(":")
        self.count, self._to = 0, (host, int(port))
        self._connect = socket.create_connection
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            server = self._connect(self._to)
            for one, other in ((client, server), (server, client)):
                Thread(target=self._copy, args=(one, other), daemon=True).start()

    def _copy(self, one: Any, other: Any) -> None:
        while data := one.recv(1 << 16):
            self.count += len(data)
            other.sendall(data)


@contextmanager
def _counted(address: str) -> Iterator[Relay]:
    from distributed import Client

    relay = Relay(address)
    with Client(relay.address):
        yield relay


def _bytes(address: str, n: int, units: int) -> Row:
    _, planned, model, theta = _problem(n, units)
    seen: list[int] = []
    with _counted(address) as relay:
        swiftem.run(
            model, planned, methods.EM(), theta0=theta, n_iter=6, record_every=1,
            callback=lambda iterate: seen.append(relay.count),
        )  # fmt: skip
    value = float(min(np.diff(seen)[1:]))
    return Row(
        figure="units", model="full covariance", method="em", setting=f"bytes, P = {units}, n = {n:.0e}", n=n,
        d=str(D), components=M, b=n, iterations=1, repeats=1, value=value, unit="bytes", peer="here or goal",
        peer_value=1.2 * 8 * units * Q + 4096 * units, compared="ratio", goal=1.0,
    )  # fmt: skip


def _memory(address: str, units: int) -> Row:
    from benchmarks.start_up import fresh

    return Row(
        figure="units", model="full covariance", method="fiem", setting=f"client memory, P = {units}",
        n=100 * units, d=str(D), components=M, b=1, iterations=units, repeats=1, unit="bytes",
        value=float(fresh("-W", "ignore", "-m", "benchmarks.units", address, str(units))),
        peer="here or goal", peer_value=3.0 * 8 * units * Q + 2e8, compared="ratio", goal=1.0,
    )  # fmt: skip


def of_client(address: str, units: int) -> int:
    """Return the bytes that a run of fiem adds to the resident memory of its client."""
    from dask import delayed
    from distributed import Client

    with Client(address):
        before = bytes_of("VmRSS")
        data = [delayed(overlapping)(100, number, D, M) for number in range(units)]
        model = models.GaussianMixtureModel(M, covariance="full", reg_covar=1e-6)
        method = methods.FastIncrementalEM(step_size=0.05)
        swiftem.run(model, data, method, n_iter=units, seed=0)
        return bytes_of("VmHWM") - before


def _fiem(n: int, kind: str) -> Row:
    """Passes of fiem until em's objective after 40 passes; in this process, as the number is the same."""
    y = overlapping(n, 0, 4, 6)
    if kind == "sorted":
        y = y[np.argsort(y[:, 0])]
    model = models.GaussianMixtureModel(6, covariance="full", reg_covar=1e-6)
    units = swiftem.data.UnitSource(np.array_split(y, UNITS_OF_FIEM))
    theta = model.theta(means=overlapping(6, 1, 4, 6), covariances=np.tile(np.eye(4), (6, 1, 1)))
    em = swiftem.run(model, units, methods.EM(), theta0=theta, n_iter=EM_PASSES)
    goal = swiftem.objective(model, units, em.theta)
    # Batch size and step size of an estimator with method="fiem", whose first pass is sem's.
    mixture = swiftem.GaussianMixture(6, method="fiem")
    spec = resolve(mixture.get_params(), Facts(UNITS_OF_FIEM, n, model.size(4), "given"))
    assert spec.first is not None
    assert spec.method is not None

    def passes(seed: int) -> float:
        found = [float("inf")]

        def stop(iterate: Any) -> bool:
            if swiftem.objective(model, units, iterate.theta) <= goal:
                found.append(1.0 + iterate.passes)
            return len(found) > 1

        n_iter = UNITS_OF_FIEM // spec.first.batch_size
        first = swiftem.run(model, units, spec.first, theta0=theta, n_iter=n_iter, seed=seed)
        swiftem.run(
            model, units, spec.method, theta0=first.theta, n_iter=EM_PASSES * UNITS_OF_FIEM // 4,
            record_every=4, seed=seed, callback=stop,
        )  # fmt: skip
        return min(found)

    value = median(passes(seed) for seed in range(SEEDS))
    return Row(
        figure="units", model="overlapping", method="fiem", setting=f"passes, {kind} rows", n=n, d="4",
        components=6, b=1, e_steps=2, iterations=1, repeats=SEEDS, value=value, unit="passes",
        peer="here or goal", peer_value=float(EM_PASSES), compared="ratio",
        goal=0.5 if kind == "shuffled" else None,
    )  # fmt: skip


if __name__ == "__main__":
    print(of_client(sys.argv[1], int(sys.argv[2])))
