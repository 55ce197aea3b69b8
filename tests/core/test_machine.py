"""What depends on the machine or the moment: memory, the time between checkpoints; damaged texts."""

import io
import pathlib
from hashlib import blake2b

import numpy as np
import pytest

from swiftem import methods, models
from swiftem.core import checkpoint
from swiftem.core.checks import MemoryLimitError
from swiftem.core.compute import Compute
from swiftem.core.problem import Budget, available_memory, order_bytes, relative_change
from swiftem.core.state_file import DIGEST_SIZE, read_tree, write_tree
from swiftem.data import ArraySource, BlockSource

ROWS = np.arange(24.0).reshape(12, 2)
BLOCKS = BlockSource([ROWS])
SHUFFLED = methods.OnlineEM(order="shuffled")


@pytest.mark.parametrize(
    ("source", "method", "is_hinted"),
    [(BLOCKS, methods.OnlineEM(), True), (BLOCKS, methods.EM(), False), (ArraySource(ROWS), SHUFFLED, False)],
    ids=["drawn in windows", "not drawn", "an array"],
)
def test_a_smaller_window_is_the_advice_if_samples_are_drawn_in_windows(source, method, is_hinted):
    with pytest.raises(MemoryLimitError, match=r"memory_limit must be at least \d+ MB") as refused:
        Budget(1).reserve(source, method)
    assert ("windows for draws have 12 rows" in str(refused.value)) == is_hinted


def test_only_arrays_are_drawn_in_an_order_that_takes_memory():
    assert order_bytes(BLOCKS, SHUFFLED) == 0
    assert order_bytes(ArraySource(ROWS), SHUFFLED) == 16 * 12


@pytest.mark.parametrize(("container", "expected"), [("max", 1024_000.0), ("500000", 500_000.0)])
def test_available_memory_is_what_the_system_and_its_container_tell(container, expected, monkeypatch):
    def tell(path):
        return "MemTotal: 9999 kB\nMemAvailable: 1000 kB\n" if path.name == "meminfo" else container

    monkeypatch.setattr(pathlib.Path, "read_text", tell)
    assert available_memory() == pytest.approx(0.9 * expected)


def test_a_relative_change_is_of_scaled_numbers():
    before, after, scale = np.array([3.0, 4.0]), np.array([3.0, 3.5]), np.array([2.0, 1.0])
    assert relative_change(before, after, scale) == pytest.approx(0.5 / np.hypot(6.0, 4.0))


def test_checkpoints_are_a_second_and_twenty_times_their_own_duration_apart(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoint, "perf_counter", lambda: now[0])
    store = checkpoint.Store(tmp_path / "run", {"model": "a"}, resume=False)
    for seconds, may_save in ((0.9, False), (1.0, True)):
        now[0] = 100.0 + seconds
        assert store.may_save == may_save
    times = iter([200.0, 200.5, 209.9, 210.5])
    monkeypatch.setattr(checkpoint, "perf_counter", lambda: next(times))
    store.save({"k": 1})
    assert [store.may_save, store.may_save] == [False, True]
    store.close()


def test_means_of_e_steps_outside_of_a_run_have_weights():
    source = ArraySource(ROWS, np.arange(1.0, 13.0))
    bound = models.GaussianMixtureModel(1).bind(source)
    compute = Compute(bound, source)
    batch = compute.take(np.array([0, 5]))
    rows = compute.rows(batch, bound.initial_theta(np.random.default_rng(0)))
    expected = bound.statistics(batch, rows, batch.weight * 12 / (2 * source.total_weight))
    np.testing.assert_allclose(compute.mean(batch, rows), expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"<f8", b"|O8"), (b"<f8", b"f8,f8"), (b"[2, 3]", b"[-2, 3]"), (b"[2, 3]", b"[2.0, 3]")],
    ids=["objects", "a structure", "a negative length", "a length with a point"],
)
def test_arrays_that_are_none_are_refused(old, new):
    stream = io.BytesIO()
    write_tree(stream, "toy", {"a": np.ones((2, 3))})
    content = stream.getvalue()[:-DIGEST_SIZE].replace(old, new, 1)
    whole = content + blake2b(content, digest_size=DIGEST_SIZE).digest()
    with pytest.raises(ValueError, match=r"^an array in it is not of numbers$"):
        read_tree(io.BytesIO(whole), "toy")


def test_empty_arrays_come_back():
    stream = io.BytesIO()
    write_tree(stream, "toy", (np.empty((0, 3)), np.empty(0)))
    stream.seek(0)
    assert [part.shape for part in read_tree(stream, "toy")[0]] == [(0, 3), (0,)]
