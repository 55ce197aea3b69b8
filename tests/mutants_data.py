"""Mutants of sources and draws that tests must notice, as ``tests/mutate.py`` reads them."""

DRAWS = "data/draws.py"
FINGERPRINT = "files/durable.py"
PARQUET = "data/rows/parquet_source.py"
AHEAD = "data/rows/row_reader.py"

DRAWS_TESTS = "tests/data/test_block_draws.py"
EVERY_ROW = "tests/data/test_array_source.py::test_a_fingerprint_has_every_row"
PARQUET_TESTS = "tests/data/test_hostile_parquet.py"
RIGHT_ROW = f"{PARQUET_TESTS}::TestTheRightRow::test_row_90000"
FEW_PAGES = (
    "tests/estimators/test_streamed_documents.py::test_a_pass_has_few_pages_of_the_scratch_file_in_memory"
)
CLOSED = "tests/data/test_read_ahead.py::test_what_is_read_is_closed_at_return"

MUTANTS = [
    (
        "draws: every epoch shuffles a window alike",
        DRAWS,
        "INDICES, self._stream, number, window).shuffle(self._order)",
        "INDICES, self._stream, window).shuffle(self._order)",
        f"{DRAWS_TESTS}::test_no_epoch_is_like_another",
    ),
    (
        "draws: every window of an epoch is shuffled alike",
        DRAWS,
        "INDICES, self._stream, number, window).shuffle(self._order)",
        "INDICES, self._stream, number, 0).shuffle(self._order)",
        f"{DRAWS_TESTS}::test_windows_of_an_epoch_are_shuffled_each_in_its_own_way",
    ),
    (
        "draws: a window of the epoch before stays",
        DRAWS,
        "            self._number, self._window = number, -1\n        window = int(",
        "            self._number = number\n        window = int(",
        f"{DRAWS_TESTS}::test_any_place_is_what_the_whole_has",
    ),
    (
        "draws: blocks come in the same order in every epoch",
        DRAWS,
        "generator(self._entropy, INDICES, self._stream, number).shuffle(self._blocks)",
        "generator(self._entropy, INDICES, self._stream).shuffle(self._blocks)",
        f"{DRAWS_TESTS}::test_windows_are_blocks_in_random_order_shuffled",
    ),
    (
        "fingerprint: without a last piece that is short",
        FINGERPRINT,
        "range(0, len(array), ROWS)",
        "range(0, len(array) // ROWS * ROWS, ROWS)",
        EVERY_ROW,
    ),
    (
        "fingerprint: without a last piece of one row",
        FINGERPRINT,
        "range(0, len(array), ROWS)",
        "range(0, len(array) - 1, ROWS)",
        EVERY_ROW,
    ),
    (
        "fingerprint: without the last piece",
        FINGERPRINT,
        "range(0, len(array), ROWS)",
        "range(0, max(1, len(array) - ROWS), ROWS)",
        EVERY_ROW,
    ),
    (
        "fingerprint: the first row of each piece",
        FINGERPRINT,
        "array[start : start + ROWS]",
        "array[start : start + 1]",
        EVERY_ROW,
    ),
    (
        "parquet: rows are counted from the batch",
        PARQUET,
        "        yield start, batch\n",
        "        yield 0, batch\n",
        RIGHT_ROW,
    ),
    (
        "parquet: rows are counted from the first row group that is read",
        PARQUET,
        "        yield from _numbered(groups[0].file, read, groups[0].start, end)\n",
        "        for _, batch in _numbered(groups[0].file, read, groups[0].start, end):\n"
        "            yield groups[0].start, batch\n",
        RIGHT_ROW,
    ),
    (
        "parquet: rows are counted within the row groups that are read",
        PARQUET,
        "        yield from _numbered(groups[0].file, read, groups[0].start, end)\n",
        "        for at, batch in _numbered(groups[0].file, read, groups[0].start, end):\n"
        "            yield at - groups[0].start, batch\n",
        RIGHT_ROW,
    ),
    (
        "files: notes of the last file for all",
        "data/rows/stored_source.py",
        "left_out_of(self._files, self._choices)",
        "left_out_of(self._files, self._choices[-1:] * len(self._choices))",
        f"{PARQUET_TESTS}::test_each_files_own_notes",
    ),
    (
        "read_ahead: what is read stays open",
        AHEAD,
        "            if close is not None:\n",
        "            if False:\n",
        CLOSED,
    ),
    (
        "read_ahead: closed at the end only",
        AHEAD,
        "            if close is not None:\n",
        "            if close is not None and not unwanted.is_set():\n",
        CLOSED,
    ),
    (
        "scratch: released rows stay in memory",
        "files/scratch.py",
        "mapped.madvise(mmap.MADV_DONTNEED,",
        "mapped.madvise(mmap.MADV_NORMAL,",
        "tests/data/test_scratch.py::test_released_rows_are_in_the_file_alone",
    ),
    (
        "scratch: blocks of rows are not released",
        "files/scratch.py",
        "            release(array[rows])\n",
        "            pass\n",
        "tests/data/test_scratch.py::test_blocks_of_rows_are_all_rows_and_few_at_a_time",
    ),
    (
        "streamed documents: places of a block stay in memory",
        "engine/streamed_documents.py",
        "            release(doc_topic[part])\n",
        "",
        FEW_PAGES,
    ),
    (
        "streamed documents: places of a batch stay in memory",
        "engine/streamed_documents.py",
        "            release(self.doc_topic[number * BLOCK : (number + 1) * BLOCK])\n",
        "            pass\n",
        FEW_PAGES,
    ),
    (
        "uci: a number is its last digit",
        "data/documents/formats/entry_lines.py",
        "10.0 * found[here] + ",
        "",
        "tests/data/test_document_sources.py::test_many_digits_are_read_as_numbers",
    ),
]
