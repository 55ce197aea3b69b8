"""Mutants of data in units and of documents in blocks, for ``python -m tests.mutate``."""

ROWS = "engine/units/rows.py"
DOCUMENTS = "engine/units/documents.py"
SOURCE = "data/units/unit_source.py"
COUNTS = "data/units/count_units.py"
UNIT = "data/units/unit.py"
STREAMED = "engine/streamed_documents.py"
LINES = "data/documents/formats/lines.py"
UCI = "data/documents/formats/uci_documents.py"
SPOOL = "data/documents/spool.py"
COUNT_SOURCE = "data/documents/count_source.py"
CORPUS = "data/documents/corpus_counts.py"
WORDS = "data/documents/word_counts.py"

UNITS = "tests/units/test_units.py"
OF_DOCUMENTS = "tests/units/test_documents.py"
SOURCES = "tests/data/test_document_sources.py"
TEXT = "tests/data/test_text.py"

MUTANTS = [
    (
        "units: the last of an odd number of sums is left out",
        ROWS,
        "odd = parts[-1:] if len(parts) % 2 else parts[:0]",
        "odd = parts[:0]",
        f"{UNITS}::test_sums_are_pairwise",
    ),
    (
        "units: the objective is the mean of units, not of rows",
        ROWS,
        "(self._last[1] * self._units.weight)[:, None]",
        "(self._last[1] * self._units.weight.mean())[:, None]",
        f"'{UNITS}::test_em_of_units_is_em_of_rows[False-full]'",
    ),
    (
        "units: the objective is that of an earlier θ",
        ROWS,
        "if self._last is None or self._last[0] is not theta:",
        "if self._last is None:",
        f"{UNITS}::test_the_objective_is_that_of_the_parameters_that_are_given",
    ),
    (
        "units: statistics come in the order of the units, not of the draws",
        ROWS,
        "np.array([one.s for one in found])[place]",
        "np.array([one.s for one in found])[np.sort(place)]",
        f"{UNITS}::test_a_batch_of_units_is_in_the_order_of_the_draws",
    ),
    (
        "units: the sample counts as few rows against a prior",
        ROWS,
        "    weight = weight * (source.total_weight / weight.sum())\n",
        "",
        f"{UNITS}::test_a_prior_counts_as_for_all_rows",
    ),
    (
        "units: how far rows are is that of one unit",
        ROWS,
        "np.max([item[0] for item in known], axis=0)",
        "known[0][0]",
        f"{UNITS}::test_a_unit_whose_rows_are_far_away_from_the_others",
    ),
    (
        "unit source: the mean of units weights them alike",
        SOURCE,
        "self.mean: Array = self.weight @ means / self.total_weight",
        "self.mean: Array = means.mean(axis=0)",
        f"{UNITS}::test_the_mean_is_that_of_the_rows",
    ),
    (
        "unit source: another cut has the same fingerprint",
        SOURCE,
        "for part in (self.lengths, self.weight, np.array(",
        "for part in (self.mean, np.array(",
        f"{UNITS}::test_other_lengths_and_weights_are_other_data",
    ),
    (
        "unit source: all units draw the same places",
        SOURCE,
        "return sample((seed, number), unit, weight, where, count)",
        "return sample((seed, 0), unit, weight, where, count)",
        f"{UNITS}::test_units_are_sampled_each_in_its_own_way",
    ),
    (
        "unit: a file that was written again is read as it was",
        UNIT,
        "source = _opened(*unit[:3], where.allow_missing, unit.version)",
        'source = _opened(*unit[:3], where.allow_missing, "")',
        f"{UNITS}::test_a_file_that_was_written_again_is_read_again",
    ),
    (
        "unit: rows of weight zero are kept with the weights of others",
        UNIT,
        "rows, of_rows = rows[of_rows > 0.0], of_rows[of_rows > 0.0]",
        "rows, of_rows = rows[: (of_rows > 0.0).sum()], of_rows[of_rows > 0.0]",
        f"'{UNITS}::test_em_of_units_is_em_of_rows[True-diag]'",
    ),
    (
        "unit documents: tokens are counted without weights",
        COUNTS,
        "float((by_document * found.data).sum())",
        "float(found.data.sum())",
        f"{OF_DOCUMENTS}::test_what_is_known_of_units",
    ),
    (
        "unit documents: a sample has the weights of the first documents",
        COUNTS,
        "some.shape, found.weight[index], found.names",
        "some.shape, found.weight[: len(index)], found.names",
        f"{OF_DOCUMENTS}::test_a_sample_has_its_own_weights",
    ),
    (
        "unit documents: every group has the weights of the first",
        DOCUMENTS,
        "* weight[group][:, None]",
        "* weight[: len(group)][:, None]",
        f"{OF_DOCUMENTS}::test_sums_in_groups_are_the_sums",
    ),
    (
        "unit documents: a last unit that is alone in its group is left out",
        DOCUMENTS,
        "for first in range(0, len(numbers), most)]",
        "for first in range(0, len(numbers) - 1, most)]",
        f"{OF_DOCUMENTS}::test_sums_in_groups_are_the_sums",
    ),
    (
        "unit documents: the log-likelihood is without weights",
        DOCUMENTS,
        "float((documents.weight * found).sum())",
        "float(found.sum())",
        f"{OF_DOCUMENTS}::test_a_score_is_weighted",
    ),
    (
        "unit documents: a document's E-step ends after a round",
        DOCUMENTS,
        "max_iter=given.rounds, tol=given.tolerance)\n    if given.left_out is None:",
        "max_iter=1, tol=given.tolerance)\n    if given.left_out is None:",
        f"{OF_DOCUMENTS}::test_sums_in_groups_are_the_sums",
    ),
    (
        "streamed documents: documents of two blocks come by block",
        STREAMED,
        '[np.argsort(order, kind="stable")]',
        "[np.arange(len(order))]",
        "tests/estimators/test_streamed_documents.py::test_batches_are_the_documents_that_were_drawn",
    ),
    (
        "streamed documents: a block has the first block's weights",
        STREAMED,
        "weight = self.weight[following[0] : following[0] + following[1].shape[0]]",
        "weight = self.weight[: following[1].shape[0]]",
        "tests/estimators/test_streamed_documents.py::test_documents_of_a_batch_have_their_own_weights",
    ),
    (
        "lines: a long line loses its beginning",
        LINES,
        'yield b"".join([*rest, whole, end])',
        'yield b"".join([whole, end])',
        f"{TEXT}::test_pieces_of_a_file_are_the_file",
    ),
    (
        "lines: the rest of a piece is read twice",
        LINES,
        "rest = [after]",
        "rest.append(after)",
        f"{TEXT}::test_pieces_of_a_file_are_the_file",
    ),
    (
        "lines: lines are counted anew in every piece",
        LINES,
        "        yield number, lines\n        number += len(lines)",
        "        yield number, lines\n        number = 1 + len(lines)",
        f"{TEXT}::test_lines_are_counted_from_piece_to_piece",
    ),
    (
        "lines: a file that fills the memory is stopped by its pieces",
        LINES,
        "self._done += len(found)",
        "self._done = len(found)",
        f"{TEXT}::test_a_file_that_would_fill_the_memory_is_stopped",
    ),
    (
        "uci: a document at the end of a block is in the next one",
        UCI,
        "found[-1, 0] >= first + rows):",
        "found[-1, 0] > first + rows):",
        f"{SOURCES}::test_blocks_are_the_documents_in_order",
    ),
    (
        "spool: counts of a large number are cut to two bytes",
        SPOOL,
        "(counts.data <= SMALL).all()",
        "(counts.data >= 0).all()",
        "tests/estimators/test_streamed_documents.py::test_counts_are_spooled_exactly",
    ),
    (
        "spool: fractions are cut to whole numbers",
        SPOOL,
        " and (counts.data == np.floor(counts.data)).all()",
        "",
        "tests/estimators/test_streamed_documents.py::test_counts_are_spooled_exactly",
    ),
    (
        "count source: the last token of an entry is the next one's",
        COUNT_SOURCE,
        'side="right"',
        'side="left"',
        "tests/data/test_count_source.py::test_blocks_hold_every_token_in_order",
    ),
    (
        "count source: a document's weight counts once for each entry",
        COUNT_SOURCE,
        "return float((self._weight * repeats).sum())",
        "return float(self._weight.sum())",
        "tests/data/test_count_source.py::test_weights_of_documents",
    ),
    (
        "corpus: names are those of the first documents",
        CORPUS,
        "(kept if numbers is None else numbers[kept])",
        "(kept if numbers is None else kept)",
        "tests/data/test_bag_of_words.py tests/data/test_count_matrix.py",
    ),
    (
        "words: a word in just as many documents is left out",
        WORDS,
        "document_shares(every) > drop_common",
        "document_shares(every) >= drop_common",
        "tests/data/test_word_counts.py::test_words_in_most_documents_are_left_out_on_request",
    ),
    (
        "words: texts of a block are those that have words",
        "data/documents/formats/line_documents.py",
        "lengths[kept] = np.diff(counts.indptr)",
        "lengths[: len(kept)] = np.diff(counts.indptr)",
        f"{SOURCES}::test_blocks_are_the_documents_in_order",
    ),
]
