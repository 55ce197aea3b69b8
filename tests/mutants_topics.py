"""Mutants of pLSA, of users' functions and of the theory, for ``python -m tests.mutate``."""

DOMAIN = "tests/engine/test_plsa_domain.py"
TOKENS = "tests/engine/test_plsa.py"
DOCUMENTS = "tests/engine/numba/test_plsa_documents.py"
EPOCH = "tests/estimators/test_batches_of_documents.py"
LANE = "tests/engine/test_document_lane.py"

MUTANTS = [
    (
        "tokens: low centre of fiem is not lowered",
        "engine/numba/plsa.py",
        "        low_centre -= share * (1.0 + SLACK)\n",
        "",
        f"{DOMAIN}::test_fiem_while_its_centre_falls[False-1]",
    ),
    (
        "tokens: low of iem is not lowered",
        "engine/numba/plsa.py",
        "        low = bound\n        for k in range(n_topics):\n            before",
        "        for k in range(n_topics):\n            before",
        f"{DOMAIN}::test_iem_until_a_topic_is_empty[False-1]",
    ),
    (
        "tokens: low of sem-vr is not lowered",
        "engine/numba/plsa.py",
        "row_anchor, factor_anchor, prior)\n"
        "            if not bound > 0.0:\n"
        "                rejected += 1\n"
        "                continue\n"
        "        low = bound\n",
        "row_anchor, factor_anchor, prior)\n"
        "            if not bound > 0.0:\n"
        "                rejected += 1\n"
        "                continue\n",
        f"{DOMAIN}::test_sem_vr_whose_anchor_had_another_topic[free-1]",
    ),
    (
        "tokens: sem does not look at totals",
        "engine/numba/plsa.py",
        "bound = keep * low\n        if not bound > SMALLEST:",
        "bound = keep * low\n        if not bound > -1.0:",
        f"{DOMAIN}::test_a_step_of_one_to_tokens_that_lack_a_topic[1]",
    ),
    (
        "tokens: a rejected step of fiem takes the memory off",
        "engine/numba/plsa.py",
        "keep, gamma, factor, weight = 1.0, 0.0, 0.0, 0.0",
        "keep, gamma, factor = 1.0, 0.0, 0.0",
        f"{DOMAIN}::test_fiem_while_its_centre_falls[False-1]",
    ),
    (
        "tokens: scale underflows",
        "engine/numba/plsa.py",
        "if scale < LEAST_SCALE:",
        "if scale < 0.0:",
        f"{TOKENS}::test_the_scale_goes_into_u_before_it_underflows",
    ),
    (
        "tokens: scale goes into documents alone",
        "engine/numba/plsa.py",
        "        fold(words, scale)\n",
        "",
        f"{TOKENS}::test_the_scale_goes_into_u_before_it_underflows",
    ),
    (
        "tokens: a document without statistics has no topics",
        "engine/numba/plsa.py",
        "/ largest if largest > 0.0 else 1.0",
        "/ largest if largest > 0.0 else 0.0",
        f"{TOKENS}::test_a_document_without_statistics_has_uniform_topics",
    ),
    (
        "tokens: float32 memory of iem is not what counts",
        "engine/numba/plsa.py",
        "change = share * (memory[i, k] - before)",
        "change = share * (factor * row[k] - before)",
        f"{TOKENS}::test_float32_memory_is_what_the_centre_is_the_mean_of",
    ),
    (
        "tokens: float32 memory of fiem is not what counts",
        "engine/numba/plsa.py",
        "drift = share * (memory[j, k] - before)",
        "drift = share * (factor_j * row_j[k] - before)",
        f"{TOKENS}::test_float32_memory_is_what_the_centre_is_the_mean_of",
    ),
    (
        "tokens: the centre of j moves the statistics of i",
        "engine/numba/plsa.py",
        "documents[d_j, 1, k] -= drift",
        "documents[d, 1, k] -= drift",
        f"'{TOKENS}::test_same_trajectory[fiem-plain]'",
    ),
    (
        "tokens: weight of i for j",
        "engine/numba/plsa.py",
        "weighted(sample_weight, j, share_scale)",
        "weighted(sample_weight, i, share_scale)",
        f"{DOMAIN}::test_topics_that_come_and_go",
    ),
    (
        "tokens: least of totals without the prior",
        "engine/numba/plsa.py",
        "(totals[1, k] - totals[0, k]) + change) + prior)",
        "(totals[1, k] - totals[0, k]) + change))",
        f"{DOMAIN}::test_sem_vr_whose_anchor_had_another_topic[penalty-1]",
    ),
    (
        "tokens: less than nothing counts",
        "engine/numba/plsa.py",
        "return (s if s > 0.0 else 0.0) + prior",
        "return s + prior",
        f"'{TOKENS}::test_same_trajectory[fiem-rejected steps]'",
    ),
    (
        "documents: leaps to nothing",
        "engine/numba/plsa_documents.py",
        "a[k] = max(new, 0.1 * two[k])",
        "a[k] = max(new, 0.0)",
        f"{DOCUMENTS}::test_folding_in_is_that_of_the_reference",
    ),
    (
        "documents: topics without the centre",
        "engine/numba/plsa_documents.py",
        "n += centre[v, k]",
        "n += 0.0",
        EPOCH,
    ),
    (
        "batches of tokens: memory is put back in the wrong order",
        "engine/numba/plsa_batch.py",
        "for p in range(batch - 1, -1, -1):",
        "for p in range(batch):",
        f"{TOKENS}::test_the_compiled_iem_leaves_no_trace_of_a_step_that_it_refuses",
    ),
    (
        "batches of tokens: the centre's totals stay",
        "engine/numba/plsa_batch.py",
        "                totals[1, k] += change\n",
        "",
        f"'{TOKENS}::test_same_trajectory[fiem-three in a batch]'",
    ),
    (
        "documents: a row too many is copied",
        "engine/numba/plsa_documents.py",
        "if stop - start <= COPIED:",
        "if stop - start <= COPIED + 1:",
        "tests/engine/numba/test_bounds.py",
    ),
    (
        "documents: product underflows",
        "engine/numba/plsa_documents.py",
        "if product < SMALLEST:",
        "if product < 0.0:",
        f"{DOCUMENTS}::test_a_pass_is_that_of_the_reference",
    ),
    (
        "documents: words of an earlier batch are kept",
        "engine/numba/plsa_documents.py",
        "    for i in range(found):\n        place[words[i]] = -1\n",
        "",
        EPOCH,
    ),
    (
        "documents: sums without weights",
        "engine/numba/plsa_documents.py",
        "ratio = weight[d] * count[e] / (",
        "ratio = count[e] / (",
        EPOCH,
    ),
    (
        "documents: sums of a batch stand for themselves",
        "engine/document_lane.py",
        "                change *= scale\n",
        "",
        f"{EPOCH} {LANE}",
    ),
    (
        "documents: scale by tokens, not by documents",
        "engine/document_lane.py",
        "scale = n / (self.source.total_weight * method.batch_size)",
        "scale = 1.0 / method.batch_size",
        f"{EPOCH} {LANE}",
    ),
    (
        "documents: E-steps of sem-vr begin where the full pass ended",
        "engine/document_lane.py",
        "begin = self._source.doc_topic if self._begin is None else self._begin",
        "begin = self._source.doc_topic",
        f"{LANE}::test_the_correction_of_sem_vr_has_the_right_mean",
    ),
    (
        "documents: a full pass begins where the one before began",
        "engine/document_lane.py",
        "        after[:] = before\n",
        "        after[:] = before if self._begin is None else self._begin\n",
        f"{LANE}::test_ctrl_c_in_a_full_pass_leaves_places_as_they_were",
    ),
    (
        "documents: a given theta counts for ever",
        "engine/document_lane.py",
        "self._given, self._changed = None, True",
        "self._changed = True",
        f"{LANE}::test_theta_that_is_no_m_step_counts_until_the_first_step",
    ),
    (
        "documents: statistics of another run are taken for one's own",
        "engine/document_lane.py",
        "if same_centre and np.array_equal(running.counts().ravel(), now.s):",
        "if same_centre:",
        f"{LANE}::test_statistics_of_another_run_are_not_gone_on_from",
    ),
    (
        "documents: partial_fit weighs beta against its first tokens",
        "estimators/topics/stream.py",
        "                running.tokens = seen\n",
        "",
        EPOCH,
    ),
    (
        "documents: beta is as strong in short batches as in long ones",
        "engine/document_lane.py",
        "strength = float(of_counts.sum()) / self.tokens",
        "strength = min(1.0, float(of_counts.sum()))",
        f"{LANE}::test_the_lane_goes_where_the_reference_goes",
    ),
    (
        "lane of tokens: totals of no centre",
        "engine/plsa.py",
        "self.words[:, 0].sum(axis=0) if self.parts > 1 else 0.0",
        "0.0",
        f"'{TOKENS}::test_same_trajectory[fiem-plain]'",
    ),
    (
        "lane of tokens: another centre is taken for its own",
        "engine/plsa.py",
        "return super().belongs(now) and np.array_equal(centre, now.state.centre)",
        "return super().belongs(now)",
        f"{DOMAIN}::test_a_state_that_was_put_together",
    ),
    (
        "lane of tokens: another anchor is taken for its own",
        "engine/plsa.py",
        "return super().belongs(now) and np.array_equal(self.documents[:, 2], now.state.anchor.doc_topic)",
        "return super().belongs(now)",
        f"{DOMAIN}::test_a_state_that_was_put_together",
    ),
    (
        "passes of tokens: a document's last piece for all",
        "engine/plsa_expectation.py",
        "by_document[first : first + len(of_documents)] += of_documents",
        "by_document[first : first + len(of_documents)] = of_documents",
        "tests/engine/test_plsa_expectation.py::test_threads_do_not_change_a_bit",
    ),
    (
        "functions lane: memory of another dtype",
        "engine/functions.py",
        "memory.dtype != kind or ",
        "",
        "tests/engine/test_functions_choice.py::test_memory_of_another_dtype_is_not_taken_for_ones_own",
    ),
    (
        "functions lane: memory of another shape",
        "engine/functions.py",
        "memory.shape != shape or ",
        "",
        "tests/engine/test_functions_choice.py::test_memory_of_another_shape_is_not_read",
    ),
    (
        "functions: float32 memory is not what counts",
        "engine/numba/functions.py",
        "(np.float64(memory[index[a], c]) - old)",
        "(rows[a, c] - old)",
        "tests/engine/test_functions.py::test_memory_of_float32",
    ),
    (
        "functions: memory of j for i",
        "engine/numba/functions.py",
        "np.float64(memory[i[k, a], c])",
        "np.float64(memory[j[k, a], c])",
        "'tests/engine/test_functions.py::test_batches[3-fiem]'",
    ),
    (
        "theory: C_S with one end only",
        "theory/mixture_bounds.py",
        "diameter.mean() + 2.0 * around",
        "diameter.mean() + around",
        "tests/theory/test_constants.py::test_how_far_apart_statistics_of_a_mixture_are",
    ),
]

EQUIVALENT = [
    (
        "tokens: low after a rejected step",
        "engine/numba/plsa.py",
        "                bound = low\n                keep",
        "                keep",
        "The bound is then lower than it could be: totals are looked at more often, and decide.",
    ),
]
