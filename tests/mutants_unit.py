"""Mutants of the kernels and lanes of mixtures with unit variances, for ``python -m tests.mutate``."""

SAMPLES = "tests/engine/test_far_samples.py"
DOMAIN = "tests/engine/test_domain.py"
PIECES = "tests/engine/test_pieces.py"
UNIT = "tests/engine/test_gaussian_mixture.py"
SPIDER = "tests/methods/test_spider_em.py"

MUTANTS = [
    (
        "unit: weight zero is nearest",
        "engine/numba/gaussian_mixture.py",
        "        if weights[m] > 0.0:\n            nearest = min(nearest, square)",
        "        nearest = min(nearest, square)",
        f"{SAMPLES}::test_a_component_of_weight_zero_is_nearest_to_a_far_sample[1-sem]",
    ),
    (
        "softmax: log of weight zero",
        "engine/numba/softmax.py",
        "if weights[m] > 0.0 else -math.inf",
        "if weights[m] > 0.0 else LOWEST",
        f"{SAMPLES}::test_a_component_of_weight_zero_has_no_part_in_a_pass",
    ),
    (
        "unit: vanishing at the anchor is not seen",
        "engine/numba/gaussian_mixture.py",
        "                    )\n                    least = min(total, total_new)",
        "                    )\n                    least = total",
        f"{SAMPLES}::test_samples_that_are_far_from_the_anchor_alone[1]",
    ),
    (
        "unit: domain without delta",
        "engine/numba/gaussian_mixture.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):\n            return -math.inf",
        "if not (lowest + epsilon > 0.0):\n            return -math.inf",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-one by one-delta]'",
    ),
    (
        "unit: domain without epsilon",
        "engine/numba/gaussian_mixture.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):\n            return -math.inf",
        "if not (lowest + delta > 0.0):\n            return -math.inf",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-one by one-epsilon]'",
    ),
    (
        "unit: domain of batches without delta",
        "engine/numba/mixture_batches.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):\n        return 1",
        "if not (lowest + epsilon > 0.0):\n        return 1",
        f"{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-three-delta]",
    ),
    (
        "unit: domain of batches without epsilon",
        "engine/numba/mixture_batches.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):\n        return 1",
        "if not (lowest + delta > 0.0):\n        return 1",
        f"{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-three-epsilon]",
    ),
    (
        "unit: centre renewed by the drawn samples, step as if it were 1",
        "engine/numba/gaussian_mixture.py",
        "if index is None and steps[k] < 1.0:",
        "if index is None and steps[k] < 0.0:",
        f"'{SPIDER}::test_a_centre_that_is_the_proxy_and_smaller_steps[unit-1]'",
    ),
    (
        "unit: an anchor that follows is not restated",
        "engine/gaussian_mixture.py",
        "self._restate(self.anchor, self.before)",
        "pass",
        f"'{SPIDER}::test_a_run_in_parts_is_the_same_to_the_last_bit[3-unit-6]'",
    ),
    (
        "unit: the most that a sample takes is without its weight",
        "engine/numba/gaussian_mixture.py",
        "most = SLACK * factor",
        "most = SLACK",
        f"{DOMAIN}::test_a_heavy_sample_takes_away_more_than_one[fiem]",
    ),
    (
        "unit: low centre of fiem is not lowered",
        "engine/numba/gaussian_mixture.py",
        "low_centre = _remember(",
        "_remember(",
        f"{DOMAIN}::test_fiem_while_its_centre_falls",
    ),
    (
        "unit: low of fiem is not lowered",
        "engine/numba/gaussian_mixture.py",
        "                low = lowest",
        "                low = low",
        f"{DOMAIN}::test_statistics_that_fall_step_by_step[fiem]",
    ),
    (
        "unit: float32 memory is not what counts",
        "engine/numba/gaussian_mixture.py",
        "r = factor * (np.float64(memory[i, m]) - old)",
        "r = factor * (new[m] / total - old)",
        f"{UNIT}::test_the_centre_is_the_mean_of_what_is_stored_also_in_float32",
    ),
    (
        "unit: densities without digits",
        "engine/numba/gaussian_mixture.py",
        "VANISHED = 1e-200",
        "VANISHED = 0.0",
        f"{SAMPLES}::test_densities_with_few_digits[fiem]",
    ),
    (
        "unit: weight of i for j",
        "engine/numba/gaussian_mixture.py",
        "y, j, new, total_new, share * _weight(sample_weight, j)",
        "y, j, new, total_new, share * _weight(sample_weight, i)",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[fiem-weights-one by one-delta]'",
    ),
    (
        "unit batches: the whole centre counts",
        "engine/numba/mixture_batches.py",
        "add_centre(correction, centre1, centre2, proxy1, proxy2)",
        "add_centre(1.0, centre1, centre2, proxy1, proxy2)",
        f"'{SPIDER}::test_a_declared_method_of_ones_own_is_compiled[unit-1100]'",
    ),
    (
        "unit batches: the anchor follows, and its logits stay",
        "engine/numba/mixture_batches.py",
        "(follows or k == 0)",
        "k == 0",
        f"'{SPIDER}::test_compiled_stretches_do_the_same[unit-fixed-1100]'",
    ),
    (
        "unit batches: centre without the offset",
        "engine/numba/mixture_batches.py",
        "sums2[m, c] += sums1[m] * offset[c]",
        "sums2[m, c] += 0.0",
        f"'{UNIT}::test_same_trajectory[iem-mini-batch, offset]'",
    ),
    (
        "unit batches: memory of j for i",
        "engine/numba/mixture_batches.py",
        "here = other[k] if renew else index[k]",
        "here = other[k]",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-in blocks-delta]'",
    ),
    (
        "unit batches: weights of the first samples",
        "engine/numba/mixture_batches.py",
        "factor * sample_weight[i]",
        "factor * sample_weight[t]",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[fiem-weights-in blocks-delta]'",
    ),
    (
        "unit batches: float32 memory is not what counts",
        "engine/numba/mixture_batches.py",
        "rows[t, m] = np.float64(memory[i, m]) - old",
        "rows[t, m] -= old",
        f"{UNIT}::test_the_centre_is_the_mean_of_what_is_stored_also_in_float32",
    ),
    (
        "softmax: weights of the first block for all",
        "engine/numba/softmax.py",
        "rows[t, m] *= sample_weight[first + t]",
        "rows[t, m] *= sample_weight[t]",
        f"{PIECES}::test_statistics_memory_and_likelihood[pieces-unit]",
    ),
    (
        "softmax: likelihood with the first block's weights",
        "engine/numba/softmax.py",
        "value * sample_weight[first + t] if",
        "value * sample_weight[t] if",
        f"{PIECES}::test_statistics_memory_and_likelihood[pieces-unit]",
    ),
    (
        "softmax: a single row at the end is left out",
        "engine/numba/softmax.py",
        "    begin(weights, means, centre, expanded, work)\n"
        "    block = len(work.rows)\n"
        "    for first in range(0, len(y), block):",
        "    begin(weights, means, centre, expanded, work)\n"
        "    block = len(work.rows)\n"
        "    for first in range(0, len(y) - 1, block):",
        f"'{PIECES}::test_statistics_memory_and_likelihood[one more row-unit]'",
    ),
    (
        "softmax: last logit for the largest",
        "engine/numba/softmax.py",
        "top = max(top, value)",
        "top = value",
        f"{SAMPLES}::test_a_component_of_weight_zero_has_no_part_in_a_pass",
    ),
    (
        "softmax: statistics not of what float32 holds",
        "engine/numba/softmax.py",
        "rows[t, m] = memory[first + t, m]",
        "rows[t, m] += 0.0",
        f"{PIECES}::test_statistics_memory_and_likelihood[float32-unit]",
    ),
    (
        "unit lane: far samples are forgotten",
        "engine/gaussian_mixture.py",
        "self.far, snapshot = 0, snapshot.followed",
        "snapshot = snapshot.followed",
        f"{SAMPLES}::test_a_run_that_met_a_far_sample_goes_on_to_the_same_bits[sem]",
    ),
    (
        "unit blocks: expanded however far",
        "engine/gaussian_mixture.py",
        "FARTHEST = 2e4",
        "FARTHEST = 2e14",
        f"{UNIT}::test_full_passes",
    ),
    (
        "unit lane: what was done before a far sample is done again",
        "engine/gaussian_mixture.py",
        "self.far, begin, rejected = 0, done, more",
        "self.far, rejected = 0, more",
        f"'{UNIT}::test_same_trajectory[sem-vr-samples far from all means]'",
    ),
    (
        "unit expectation: statistics about the centre",
        "engine/gaussian_mixture.py",
        "sums2 + sums1[:, None] * self.geometry.centre",
        "sums2",
        f"{UNIT}::test_full_passes",
    ),
]

EQUIVALENT = [
    (
        "unit: sem looks at every sum",
        "engine/numba/gaussian_mixture.py",
        "most = 0.0",
        "most = SLACK * factor",
        "The look decides as before, only more often: sums that are in the domain are accepted either way.",
    ),
]
