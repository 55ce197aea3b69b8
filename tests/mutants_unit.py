"""Mutants of the kernels and lanes of mixtures with unit variances, for ``python -m tests.mutate``."""

SAMPLES = "tests/engine/test_far_samples.py"
DOMAIN = "tests/engine/test_domain.py"
PIECES = "tests/engine/test_pieces.py"
UNIT = "tests/engine/test_gaussian_mixture.py"

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
        "if _vanished(min(total, total_old), far):",
        "if _vanished(total, far):",
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
        "engine/numba/gaussian_mixture.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):\n        return 1",
        "if not (lowest + epsilon > 0.0):\n        return 1",
        f"{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-three-delta]",
    ),
    (
        "unit: domain of batches without epsilon",
        "engine/numba/gaussian_mixture.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):\n        return 1",
        "if not (lowest + delta > 0.0):\n        return 1",
        f"{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-three-epsilon]",
    ),
    (
        "unit: domain of iem without delta",
        "engine/numba/gaussian_mixture.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):\n            rejected",
        "if not (lowest + epsilon > 0.0):\n            rejected",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[iem-alike-one by one-delta]'",
    ),
    (
        "unit: domain of iem without epsilon",
        "engine/numba/gaussian_mixture.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):\n            rejected",
        "if not (lowest + delta > 0.0):\n            rejected",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[iem-alike-one by one-epsilon]'",
    ),
    (
        "unit: the most that a sample takes is without its weight",
        "engine/numba/gaussian_mixture.py",
        "(low_centre - low - SLACK * factor)",
        "(low_centre - low - SLACK)",
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
        "                    low = lowest\n"
        "                else:\n"
        "                    rejected += 1\n"
        "                low_centre",
        "                    low = low\n"
        "                else:\n"
        "                    rejected += 1\n"
        "                low_centre",
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
        "unit batches: domain without delta",
        "engine/numba/mixture_batches.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):",
        "if not (lowest + epsilon > 0.0):",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-in blocks-delta]'",
    ),
    (
        "unit batches: domain without epsilon",
        "engine/numba/mixture_batches.py",
        "if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):",
        "if not (lowest + delta > 0.0):",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-in blocks-epsilon]'",
    ),
    (
        "unit batches: centre without the offset",
        "engine/numba/mixture_batches.py",
        "centre2[m, c] += work.sums2[m, c] + work.sums1[m] * offset[c]",
        "centre2[m, c] += work.sums2[m, c]",
        f"'{UNIT}::test_same_trajectory[iem-mini-batch, offset]'",
    ),
    (
        "unit batches: memory of j for i",
        "engine/numba/mixture_batches.py",
        "_take_off(work.rows, i, memory)",
        "_take_off(work.rows, j, memory)",
        f"'{DOMAIN}::test_steps_that_leave_the_domain[fiem-alike-in blocks-delta]'",
    ),
    (
        "unit batches: weights of j for i",
        "engine/numba/mixture_batches.py",
        "weigh(work.rows, sample_weight, i,",
        "weigh(work.rows, sample_weight, j,",
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
        "unit lane: moved by the last stretch alone",
        "engine/gaussian_mixture.py",
        "self.moved |= done > rejected",
        "self.moved = done > rejected",
        f"{DOMAIN}::test_what_comes_before_rejected_steps_stays[1-unit]",
    ),
    (
        "unit lane: far samples are forgotten",
        "engine/gaussian_mixture.py",
        "        if isinstance(snapshot, MixtureSnapshot):\n            self.far = 0",
        "        return",
        f"{SAMPLES}::test_a_run_that_met_a_far_sample_goes_on_to_the_same_bits[sem]",
    ),
    (
        "unit blocks: expanded however far",
        "engine/mixture_blocks.py",
        "FARTHEST = 2e4",
        "FARTHEST = 2e14",
        f"{UNIT}::test_full_passes",
    ),
    (
        "unit lane: the anchor is renewed again after a far sample",
        "engine/gaussian_mixture.py",
        "if now.k % length == 0 and self.renewed != now.k:",
        "if now.k % length == 0:",
        f"'{UNIT}::test_same_trajectory[sem-vr-samples far from all means]'",
    ),
    (
        "unit expectation: statistics about the centre",
        "engine/mixture_expectation.py",
        "sums2 + sums1[:, None] * self.geometry.centre",
        "sums2",
        f"{UNIT}::test_full_passes",
    ),
]

EQUIVALENT = [
    (
        "unit: a sample that is repeated in a batch is remembered twice",
        "engine/numba/gaussian_mixture.py",
        "        if index[k, before] == index[k, place]:\n            return False\n",
        "        pass\n",
        "All E-steps of a batch are at the same theta: the second time, what is remembered changes by zero.",
    ),
    (
        "unit: sem looks at every sum",
        "engine/numba/gaussian_mixture.py",
        "means, low, SLACK * factor,",
        "means, low, 0.0,",
        "The look decides as before, only more often: sums that are in the domain are accepted either way.",
    ),
]
