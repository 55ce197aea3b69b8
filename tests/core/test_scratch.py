import gc
import os
import sys

import numpy as np
import pytest
from anonymous_memory import resident

from swiftem.core.files import is_scratch, release, row_blocks, scratch_array


def test_it_holds_what_is_written_and_leaves_nothing(tmp_path):
    array = scratch_array((100, 3), np.float32, tmp_path)
    array[...] = np.arange(300).reshape(100, 3)
    assert array.dtype == np.float32
    assert array.sum() == 300 * 299 / 2
    assert is_scratch(array)
    assert is_scratch(array[5:])
    assert not is_scratch(array.copy())
    assert os.listdir(tmp_path) == []
    free = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    del array
    gc.collect()
    assert not free or len(os.listdir("/proc/self/fd")) <= free


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"scratch must be a folder, but .*nowhere is not"):
        scratch_array((1, 1), float, tmp_path / "nowhere")


def test_a_full_disk_is_refused(tmp_path):
    with pytest.raises(OSError, match=r"must have 800000 GB of free space .* got .*: use another folder"):
        scratch_array((10**7, 10**7), float, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="RssFile is Linux's")
def test_released_rows_are_in_the_file_alone(tmp_path):
    array = scratch_array((8_000, 1_000), np.float64, tmp_path)
    before = resident(os.getpid(), "RssFile")
    array[:] = np.arange(8_000)[:, None]
    assert resident(os.getpid(), "RssFile") - before > 60e6
    release(array[11:7_900])
    assert resident(os.getpid(), "RssFile") - before < 4e6
    np.testing.assert_array_equal(array[:, 7], np.arange(8_000))
    release(np.zeros((3, 3)))  # another array


@pytest.mark.skipif(sys.platform != "linux", reason="RssFile is Linux's")
def test_blocks_of_rows_are_all_rows_and_few_at_a_time(tmp_path):
    array = scratch_array((8_000, 1_000), np.float64, tmp_path)
    before, most, seen = resident(os.getpid(), "RssFile"), 0, 0
    for rows in row_blocks(array, np.zeros(8_000)):
        assert rows.start == seen
        array[rows] = 1.0
        most, seen = max(most, resident(os.getpid(), "RssFile") - before), rows.stop
    assert seen == 8_000
    assert most < 24e6
    assert array.sum() == 8e6
    assert list(row_blocks(np.zeros((0, 3)))) == []
