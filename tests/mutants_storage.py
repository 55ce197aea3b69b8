"""Mutants of files, checkpoints and tables that are written, for ``python -m tests.mutate``."""

DURABLE = "files/durable.py"
STORE = "checkpoints/store.py"
FOLDER = "checkpoints/folder.py"
RUN = "checkpoints/run_checkpoint.py"
TREE = "checkpoints/tree.py"
OUT = "cli/out_file.py"

FILES = "tests/checkpoints/test_files.py"
FOLDERS = "tests/checkpoints/test_folders.py"
RUNS = "tests/checkpoints/test_run.py"
TABLES = "tests/data/test_write_table.py"
HASHES = "tests/test_hashes.py"

MUTANTS = [
    (
        "durable: the second piece is written over the first",
        DURABLE,
        "os.pwrite(handle, view[done : done + (1 << 24)], position + done)",
        "os.pwrite(handle, view[done : done + (1 << 24)], position)",
        f"{FILES}::test_a_system_that_writes_and_reads_few_bytes_at_a_time",
    ),
    (
        "durable: a write is taken for whole",
        DURABLE,
        "    while done < len(view):\n",
        "    if done < len(view):\n",
        f"{FILES}::test_a_system_that_writes_and_reads_few_bytes_at_a_time",
    ),
    (
        "durable: the second piece is read from the place of the first",
        DURABLE,
        "os.preadv(handle, [view[got : got + (1 << 24)]], position + got)",
        "os.preadv(handle, [view[got : got + (1 << 24)]], position)",
        f"{FILES}::test_a_system_that_writes_and_reads_few_bytes_at_a_time",
    ),
    (
        "durable: a replaced file is as open as a new one",
        DURABLE,
        "path.stat().st_mode & 0o777 if is_file else 0o666 & ~_umask()",
        "0o666 & ~_umask()",
        f"{TABLES}::test_a_file_that_is_replaced_keeps_its_permissions",
    ),
    (
        "durable: a new file is open to all",
        DURABLE,
        "0o666 & ~_umask()",
        "0o666",
        f"{TABLES}::test_a_file_that_is_replaced_keeps_its_permissions",
    ),
    (
        "durable: the process keeps the mask of a moment",
        DURABLE,
        "    os.umask(mask)\n",
        "",
        f"{TABLES}::test_a_file_that_is_replaced_keeps_its_permissions",
    ),
    (
        "durable: a file with a second name is a plain one",
        DURABLE,
        "found.st_nlink > 1",
        "found.st_nlink > 2",
        f"'{FOLDERS}::test_links_are_refused_and_what_they_point_to_is_left_alone[hard-state-0]'",
    ),
    (
        "durable: bytes that move to the next file are not noticed",
        DURABLE,
        "        digest.update(str(file.stat().st_size).encode())\n",
        "",
        f"{HASHES}::test_where_a_file_ends_is_hashed",
    ),
    (
        "durable: the shape of an array is not hashed",
        DURABLE,
        'digest.update(f"{array.dtype.str}{array.shape}".encode())',
        "digest.update(array.dtype.str.encode())",
        f"{HASHES}::test_types_and_shapes_are_hashed",
    ),
    (
        "durable: the type of an array is not hashed",
        DURABLE,
        'digest.update(f"{array.dtype.str}{array.shape}".encode())',
        "digest.update(str(array.shape).encode())",
        f"{HASHES}::test_types_and_shapes_are_hashed",
    ),
    (
        "tree: the shape of an array is not in a digest",
        TREE,
        'hashed.update(f"{value.dtype.str}{value.shape}".encode())',
        "hashed.update(value.dtype.str.encode())",
        f"{HASHES}::test_types_and_shapes_are_hashed",
    ),
    (
        "tree: how nested tuples are cut is not in a digest",
        TREE,
        'hashed.update(f"{type(value).__name__}{len(value)}".encode())',
        "pass",
        f"{HASHES}::test_types_and_shapes_are_hashed",
    ),
    (
        "store: every checkpoint replaces the last one",
        STORE,
        "STATES[head.number % 2]",
        "STATES[0]",
        f"{RUNS}::test_where_the_last_checkpoint_is_damaged_the_one_before_is_taken",
    ),
    (
        "store: the older of two states is taken",
        STORE,
        "key=lambda one: one[1].number, reverse=True)",
        "key=lambda one: one[1].number)",
        f"{RUNS}::test_a_run_resumes_from_the_last_of_its_checkpoints",
    ),
    (
        "store: states of another run are taken",
        STORE,
        'if head.run != self.identity["run"]:',
        "if False:",
        f"{FOLDERS}::test_states_of_another_run_are_refused",
    ),
    (
        "store: a resumed run writes over the state that it has",
        STORE,
        "self._number, self._memory, self._path_end = head.number, memory, head.path",
        "self._number, self._memory, self._path_end = head.number + 1, memory, head.path",
        f"{RUNS}::test_the_state_that_a_run_resumes_from_stays_until_the_next_is_there",
    ),
    (
        "memory file: the last memory is written over",
        FOLDER,
        "1 - self._place.slot",
        "self._place.slot",
        f"{FILES}::test_memories_are_written_in_turns",
    ),
    (
        "memory file: what an earlier run left behind stays at the end",
        FOLDER,
        "            os.ftruncate(handle, memory.nbytes)\n",
        "",
        f"{FILES}::test_a_memory_is_read_where_a_larger_one_was",
    ),
    (
        "memory file: the checksum is that of the last block",
        FOLDER,
        "checksum = zlib.crc32(buffer[:got], checksum)",
        "checksum = zlib.crc32(buffer[:got])",
        f"{FILES}::test_a_memory_of_several_blocks_is_read",
    ),
    (
        "records: the checksum is that of the last record",
        FOLDER,
        "self.checksum = zlib.crc32(record, self.checksum)",
        "self.checksum = zlib.crc32(record)",
        f"{FILES}::test_records_behind_the_length_do_not_count",
    ),
    (
        "run checkpoint: all records are written again",
        RUN,
        "path=position.path[self._in_file :]",
        "path=position.path",
        f"{RUNS}::test_what_record_returns_is_kept",
    ),
    (
        "run checkpoint: the next one is counted from here",
        RUN,
        "(k // self._every + 1) * self._every",
        "k + self._every",
        f"{RUNS}::test_checkpoints_are_at_multiples_of_their_distance",
    ),
    (
        "run checkpoint: that a callback stopped is not written",
        RUN,
        '"stopped": position.stopped, "extra"',
        '"stopped": False, "extra"',
        f"{RUNS}::test_a_run_that_a_callback_stopped_stays_stopped",
    ),
    (
        "out file: a last row that is alone is not written",
        OUT,
        "for start in range(0, n, ROWS):",
        "for start in range(0, n - 1, ROWS):",
        f"{TABLES}::test_one_row_more_than_a_block",
    ),
    (
        "out file: a row between two blocks is not written",
        OUT,
        "column[start : start + ROWS].tolist()",
        "column[start : start + ROWS - 1].tolist()",
        f"'{TABLES}::test_round_trip[.csv]'",
    ),
    (
        "out file: every block has the names of the columns",
        OUT,
        "header=number == 0",
        "header=True",
        f"{TABLES}::test_blocks_are_one_table",
    ),
    (
        "out file: the last block alone is written to Parquet",
        OUT,
        "                if writer is None:\n",
        "                if True:\n",
        f"{TABLES}::test_blocks_are_one_table",
    ),
    (
        "out file: another name of the same file is another file",
        OUT,
        "out.resolve() == other.resolve()",
        "out == other",
        f"{TABLES}::test_another_name_of_what_is_read_is_refused",
    ),
    (
        "out file: folders that were made for a check stay",
        OUT,
        "                path.rmdir()\n",
        "                pass\n",
        f"{TABLES}::test_a_look_at_a_folder_leaves_nothing_behind",
    ),
]
