"""Mutants of E-steps of few rows, of what kernels share, of leaps and moves: see ``tests/mutate.py``."""

SMALL = "engine/small_expectation.py"
PLSA = "engine/numba/plsa_pass.py"
MEMORY = "engine/numba/memory.py"
COEFFICIENT = "engine/numba/coefficient.py"
LEAPS = "methods/acceleration.py"
HALVES = "estimators/mixture/optima/halves.py"
MOVES = "estimators/mixture/optima/moves.py"
REMAINING = "estimators/mixture/optima/accelerated.py"

FITS = "tests/estimators/test_small_fits.py"
TOKENS = "tests/engine/test_plsa_expectation.py"
BY_HAND = (
    "tests/methods/test_accelerated.py::test_the_trajectory_is_that_of_an_independent_implementation"
    "[reference-squarem-squarem]"
)
HALVES_TESTS = "tests/estimators/test_halves.py"
REST = "tests/estimators/test_remaining.py"

MUTANTS = [
    (
        "few rows: weights are not in the statistics",
        SMALL,
        "                    rows *= weight[here]\n",
        "",
        f"'{FITS}::test_the_fit_is_that_of_compiled_code[True-full]'",
    ),
    (
        "few rows: the weights of the first block for all",
        SMALL,
        "                    rows *= weight[here]\n",
        "                    rows *= weight[: rows.shape[1]]\n",
        f"{FITS}::test_blocks_of_rows_are_all_rows",
    ),
    (
        "few rows: the objective is that of an earlier θ",
        SMALL,
        "if self._last is None or self._last[0] is not theta:",
        "if self._last is None:",
        f"{FITS}::test_the_objective_is_that_of_the_parameters_that_are_given",
    ),
    (
        "few rows: the log-likelihood of tied covariances lacks the common part",
        SMALL,
        "if near and self.bound.code == TIED:",
        "if False:",
        f"'{FITS}::test_the_fit_is_that_of_compiled_code[False-tied]'",
    ),
    (
        "few rows: two components are exchanged",
        SMALL,
        "is_swapped = one < 0.0",
        "is_swapped = one > 0.0",
        f"{FITS}::test_passes_of_families",
    ),
    (
        "few rows: logarithms of whole groups alone",
        SMALL,
        "np.log(products).sum() + np.log(totals[whole:]).sum()",
        "np.log(products).sum()",
        f"'{FITS}::test_the_fit_is_that_of_compiled_code[False-full]'",
    ),
    (
        "tokens: memory of an entry's first token alone",
        PLSA,
        "for i in range(head, end):",
        "for i in range(head, head + 1):",
        f"{TOKENS}::test_equals_the_plain_pass",
    ),
    (
        "tokens: statistics not of what float32 holds",
        PLSA,
        "change = factor[e] * memory[head, k]",
        "change = factor[e] * row[k]",
        f"{TOKENS}::test_float32_memory_is_what_counts",
    ),
    (
        "tokens: tiny responsibilities are kept",
        PLSA,
        "row[k] / total if row[k] > least else 0.0",
        "row[k] / total",
        f"{TOKENS}::test_tiny_responsibilities_are_zero",
    ),
    (
        "shared sums: what was added to the total is added again",
        MEMORY,
        "            part[:] = 0.0\n",
        "",
        "tests/engine/test_documents.py::test_sums_of_blocks_are_added_once",
    ),
    (
        "shared sums: parts are never added while blocks come",
        MEMORY,
        "if self._entries > most:",
        "if self._entries < 0:",
        "tests/engine/test_documents.py::test_sums_of_blocks_are_added_once",
    ),
    (
        "spare arrays: one of another precision is taken",
        MEMORY,
        "array.shape == (rows, width(columns, dtype)) and array.dtype == dtype:",
        "array.shape == (rows, width(columns, dtype)):",
        "tests/engine/test_documents.py::test_spare_arrays_are_of_the_size_and_type_that_is_asked_for",
    ),
    (
        "products of buffers: a row times a transposed matrix",
        MEMORY,
        'by_columns = kinds[1].layout != "C"',
        'by_columns = kinds[1].layout == "C"',
        "'tests/engine/numba/test_memory.py::test_products_are_those_of_numpy[known Numba]'",
    ),
    (
        "coefficient: negative ones are allowed",
        COEFFICIENT,
        "min(max(moments[0] / moments[1], 0.0), LARGEST)",
        "min(moments[0] / moments[1], LARGEST)",
        "tests/methods/test_opt_fiem.py::test_the_compiled_rule",
    ),
    (
        "coefficient: the deviation of the statistics is about zero",
        COEFFICIENT,
        "covariance += (r * y[i, c] - centre2[m, c]) * deviation",
        "covariance += r * y[i, c] * deviation",
        "'tests/methods/test_opt_fiem.py::test_compiled_stretches_do_the_same[unit-optimal-float64-1]'",
    ),
    (
        "squarem: a leap once as far",
        LEAPS,
        "far = first + 2.0 * alpha * r + alpha**2 * v",
        "far = first + alpha * r + alpha**2 * v",
        f"'{BY_HAND}'",
    ),
    (
        "squarem: a leap that was worse is kept",
        LEAPS,
        "return not objective <= most or not space.in_domain(s)",
        "return not space.in_domain(s)",
        f"{REST}::test_a_step_that_is_worse_is_taken_back",
    ),
    (
        "squarem: the rate of the last pass, whatever was before",
        LEAPS,
        "return max(rate, min(slowest, MOST_RATE))",
        "return rate",
        "tests/methods/test_accelerated.py::test_the_rate_is_the_slowest_of_all_passes",
    ),
    (
        "halves: parts are placed about zero",
        HALVES,
        "return mean + parts.means @ back, back.T @ parts.covariances @ back",
        "return parts.means @ back, back.T @ parts.covariances @ back",
        f"'{HALVES_TESTS}::test_a_component_of_two_groups_is_split_and_the_gain_is_a_bound[full]'",
    ),
    (
        "moves: merges in the order of the moves",
        MOVES,
        "for move in sorted(moves, key=lambda one: -one.pair[1]):",
        "for move in moves:",
        f"{HALVES_TESTS}::test_several_moves_are_done_at_once",
    ),
    (
        "remaining: the gain of all passes that are left is one pass's",
        REMAINING,
        "gain * rate / (1.0 - rate) < self.small",
        "gain * rate < self.small",
        f"{REST}::test_linear_convergence_ends_where_the_rest_is_small",
    ),
    (
        "remaining: a rate that rises is not expected to rise again",
        REMAINING,
        "rate = self.last_rate + max(rise, 0.0)",
        "rate = self.last_rate",
        f"{REST}::test_a_rate_that_rises_is_expected_to_rise_again",
    ),
    (
        "look ahead: what leads to a collapse is a gain",
        REMAINING,
        "return None if collapses else (found, done)",
        "return found, done",
        f"{REST}::test_a_gain_by_a_collapse_is_none",
    ),
]
