"""Sealed files, records, the memory's files and the lock."""

import errno
import os

import numpy as np
import pytest

from swiftem.checkpoints.folder import Lock, MemoryFile, Records
from swiftem.files.durable import read_into, read_sealed, write_all, write_sealed


def test_a_sealed_file_with_any_byte_changed_is_refused(tmp_path):
    file = tmp_path / "file"
    write_sealed(file, b"some content")
    content = file.read_bytes()
    assert read_sealed(file) == b"some content"
    for place in range(len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(ValueError, match=r"checksum is wrong|not a file of a|in format|wrong length"):
            read_sealed(file)
        file.write_bytes(content[:place])
        with pytest.raises(ValueError, match=r"checksum is wrong|not a file of a|in format|wrong length"):
            read_sealed(file)


def test_a_later_format_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"swiftem checkpoint, format 5\nwhatever")
    with pytest.raises(ValueError, match="it is in format 5, and this version of swiftem reads 4"):
        read_sealed(tmp_path / "file")


def test_a_sealed_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace

    def sync(handle):
        done.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        fsync(handle)

    def rename(source, target):
        done.append("name")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write_sealed(tmp_path / "file", b"content")
    assert done == ["file", "name", "folder"]


@pytest.mark.parametrize("call", ["pwrite", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    write_sealed(tmp_path / "file", b"before")

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space left"):
            write_sealed(tmp_path / "file", b"after")
    assert read_sealed(tmp_path / "file") == b"before"
    assert os.listdir(tmp_path) == ["file"]


def test_a_system_that_writes_and_reads_few_bytes_at_a_time(tmp_path, monkeypatch):
    """A call may write or read less than it was asked to: the next one goes on after it."""
    pwrite, preadv = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda file, view, place: pwrite(file, view[:5], place))
    monkeypatch.setattr(os, "preadv", lambda file, views, place: preadv(file, [views[0][:5]], place))
    content = bytes(range(100))
    write_sealed(tmp_path / "sealed", content)
    assert read_sealed(tmp_path / "sealed") == content
    with (tmp_path / "plain").open("wb+") as file:
        assert write_all(file.fileno(), content, 3) == 103
        found = bytearray(120)
        assert read_into(file.fileno(), memoryview(found), 2) == 101
    assert bytes(found[1:101]) == content


def test_records_behind_the_length_do_not_count(tmp_path):
    file = tmp_path / "file"
    first = Records(file)
    first.append(b"one")
    counted = first.length, first.checksum
    first.append(b"a longer record that nobody knows of")
    first.close()
    second = Records(file, *counted)
    assert second.read() == [b"one"]
    second.append(b"two")
    assert second.read() == [b"one", b"two"]
    second.close()


def written(file, *contents, begins=0):
    """Write records, and return what counts of the file."""
    made = Records(file, 0, begins)
    for content in contents:
        made.append(content)
    made.close()
    return made.length, made.checksum


def read(file, counted, begins=0):
    found = Records(file, *counted)
    try:
        return found.read(begins)
    finally:
        found.close()


def test_a_damaged_or_short_record_is_refused(tmp_path):
    file = tmp_path / "file"
    counted = written(file, b"one", b"two")
    content = file.read_bytes()
    for place in range(counted[0]):
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(ValueError, match=r"damaged|shorter"):
            read(file, counted)
        file.write_bytes(content[:place])
        with pytest.raises(ValueError, match=r"damaged|shorter"):
            read(file, counted)


def test_records_of_another_time_or_place_are_refused(tmp_path):
    """Of the same lengths: repeated, exchanged, of another file, or of another branch of the same one."""
    file = tmp_path / "file"
    counted = written(file, b"one", b"two", begins=7)
    assert read(file, counted, begins=7) == [b"one", b"two"]
    for other in ((b"one", b"one"), (b"two", b"one"), (b"one", b"2wo")):
        written(file, *other, begins=7)
        with pytest.raises(ValueError, match="not where it belongs"):
            read(file, counted, begins=7)
    written(file, b"one", b"two", begins=8)
    with pytest.raises(ValueError, match="not where it belongs"):
        read(file, counted, begins=8)


def keep(folder, memory, place=None):
    file = MemoryFile(folder, place)
    file.write(memory)
    return file.sync()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memories_are_written_in_turns(tmp_path, dtype):
    rng = np.random.default_rng(0)
    memory = rng.random((1000, 3)).astype(dtype)
    places, wholes = [keep(tmp_path, memory)], [memory.copy()]
    for _ in range(4):
        memory[rng.integers(1000, size=100)] += 1.0
        places.append(keep(tmp_path, memory, places[-1]))
        wholes.append(memory.copy())
        for now, whole in zip(places[-2:], wholes[-2:], strict=True):  # the last two can be read
            np.testing.assert_array_equal(MemoryFile(tmp_path, now).read(), whole, strict=True)
    assert [place.slot for place in places] == [0, 1, 0, 1, 0]


def test_a_memory_is_read_where_a_larger_one_was(tmp_path):
    """A run that was killed before its first state may leave a larger memory behind."""
    keep(tmp_path, np.ones((50, 3)))
    memory = np.random.default_rng(0).random((20, 3))
    np.testing.assert_array_equal(MemoryFile(tmp_path, keep(tmp_path, memory)).read(), memory)


def test_a_memory_of_several_blocks_is_read(tmp_path):
    memory = np.random.default_rng(0).random((50_000, 3))  # five blocks of 256 KiB, the last one short
    np.testing.assert_array_equal(MemoryFile(tmp_path, keep(tmp_path, memory)).read(), memory)


@pytest.mark.parametrize("how", ["flip", "cut", "gone"])
def test_a_damaged_memory_is_refused(tmp_path, how):
    place = keep(tmp_path, np.random.default_rng(0).random((100, 2)))
    file = tmp_path / "memory-0"
    content = bytearray(file.read_bytes())
    if how == "flip":
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    elif how == "cut":
        file.write_bytes(content[:-1])
    else:
        file.unlink()
    with pytest.raises((ValueError, OSError), match="memory-0" if how != "gone" else None):
        MemoryFile(tmp_path, place).read()


def test_room_is_made_in_the_file_that_comes_next(tmp_path):
    MemoryFile(tmp_path).reserve(48)
    assert (tmp_path / "memory-0").read_bytes() == bytes(48)
    memory = np.ones((3, 2))
    place = keep(tmp_path, memory)
    MemoryFile(tmp_path, place).reserve(48)
    assert (tmp_path / "memory-1").read_bytes() == bytes(48)
    np.testing.assert_array_equal(MemoryFile(tmp_path, place).read(), memory)
    (tmp_path / "memory-1").write_bytes(b"x" * 48)
    MemoryFile(tmp_path, place).reserve(48)  # it is there: nothing to do
    assert (tmp_path / "memory-1").read_bytes() == b"x" * 48


def swap_blocks(whole):
    third = len(whole) // 3
    return whole[third : 2 * third] + whole[:third] + whole[2 * third :]


def swap_sectors(whole):
    """Exchange two sectors of 512 bytes, as a disk may that mixes up its writes."""
    return whole[:512] + whole[1024:1536] + whole[512:1024] + whole[1536:]


def flip_top_bits(whole):
    """Flip the top bit of two numbers: the sum of all is the same then."""
    changed = bytearray(whole)
    changed[7] ^= 0x80
    changed[8 * 100 + 7] ^= 0x80
    return bytes(changed)


@pytest.mark.parametrize("harm", [swap_blocks, swap_sectors, flip_top_bits])
def test_a_memory_that_changed_is_refused(tmp_path, harm):
    memory = np.random.default_rng(0).random((1 << 15, 3))  # three blocks of 256 KiB
    place = keep(tmp_path, memory)
    file = tmp_path / "memory-0"
    file.write_bytes(harm(file.read_bytes()))
    with pytest.raises(ValueError, match="checksum of memory-0 is wrong"):
        MemoryFile(tmp_path, place).read()


def test_a_lock_is_for_one(tmp_path):
    lock = Lock(tmp_path)
    with pytest.raises(ValueError, match=rf"is in use: another run, process {os.getpid()}, writes to it"):
        Lock(tmp_path)
    lock.release()
    lock.release()
    Lock(tmp_path).release()
