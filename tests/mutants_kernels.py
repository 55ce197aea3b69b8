"""Mutants of the kernels and lanes of mixtures with covariances, for ``python -m tests.mutate``."""

FAR = "tests/engine/test_far_blocks.py"
DOMAIN = "tests/engine/test_domain.py"
PIECES = "tests/engine/test_pieces.py"
GAUSS = "tests/engine/test_gaussian_components.py"

MUTANTS = [
    (
        "passes: product overflows",
        "engine/numba/gaussian_passes.py",
        "if product > 1e250:",
        "if product > math.inf:",
        f"{FAR}::test_the_bound_of_many_components_that_are_alike[full]",
    ),
    (
        "passes: reach of the last block",
        "engine/numba/gaussian_passes.py",
        "found[c] = max(found[c], work.extent[c])",
        "found[c] = work.extent[c]",
        f"{FAR}::test_two_passes[near-full]",
    ),
    (
        "passes: near if the last block is",
        "engine/numba/gaussian_passes.py",
        "all_near &= near",
        "all_near = near",
        f"{FAR}::test_the_bound_of_a_pass[alike-tied]",
    ),
    (
        "blocks: extent without abs",
        "engine/numba/gaussian_blocks.py",
        "size = abs(line[t])",
        "size = line[t]",
        f"{FAR}::test_two_passes[near-full]",
    ),
    (
        "passes: last of equal labels",
        "engine/numba/gaussian_passes.py",
        "if rows[t, m] > rows[t, best]:",
        "if rows[t, m] >= rows[t, best]:",
        f"{FAR}::test_labels_of_components_that_are_alike[full]",
    ),
    (
        "batches: nearness of the anchor is that of theta",
        "engine/numba/gaussian_batches.py",
        "samples, anchor, is_known_there, tools, spare)",
        "samples, anchor, is_known, tools, spare)",
        f"{FAR}::test_an_anchor_that_is_far_and_parameters_that_are_near[1-full]",
    ),
    (
        "m-step: no floor of diag",
        "engine/numba/gaussian_m_step.py",
        "if not (value > ROUNDING * abs(raw) * inverse and",
        "if not (",
        f"{FAR}::test_a_variance_of_rounding_alone_rejects_the_step[fiem-diag]",
    ),
    (
        "m-step: no floor of spherical",
        "engine/numba/gaussian_m_step.py",
        "if not (value > ROUNDING * abs(raw) * inverse / d and",
        "if not (",
        f"{FAR}::test_a_variance_of_rounding_alone_rejects_the_step[sem-spherical]",
    ),
    (
        "m-step: no floor of matrices",
        "engine/numba/gaussian_m_step.py",
        "if not (pivot > floor[j] and",
        "if not (",
        f"{FAR}::test_a_variance_of_rounding_alone_rejects_the_step[iem-full]",
    ),
    (
        "expectation: reach found anew by every pass",
        "engine/block_expectation.py",
        "if np.isinf(self.reach).all():",
        "if True:",
        f"{FAR}::test_rows_that_are_far_only_for_later_parameters[full]",
    ),
    (
        "blocks: nearness of the first component",
        "engine/numba/gaussian_blocks.py",
        "for m in range(max(len(theta.whiten), len(theta.scales))):",
        "for m in range(1):",
        f"{FAR}::test_narrow_components_behind_a_wide_one[None-full]",
    ),
    (
        "blocks: bound without abs",
        "engine/numba/gaussian_blocks.py",
        "reach += abs(theta.whiten[m, i, j]) * extent[j]",
        "reach += theta.whiten[m, i, j] * extent[j]",
        f"{FAR}::test_two_passes[near-full]",
    ),
    (
        "blocks: last logit for the largest",
        "engine/numba/gaussian_blocks.py",
        "largest[t] = value if value > largest[t] else largest[t]",
        "largest[t] = value",
        f"{FAR}::test_narrow_components_behind_a_wide_one[None-full]",
    ),
    (
        "blocks: whitened by the first component",
        "engine/numba/gaussian_blocks.py",
        "theta.whiten[min(m, len(theta.whiten) - 1)]",
        "theta.whiten[0]",
        f"{FAR}::test_narrow_components_behind_a_wide_one[None-full]",
    ),
    (
        "blocks: a part of T(y) for all of it",
        "engine/numba/gaussian_blocks.py",
        "if not (is_raised and size >= p):",
        "if not is_raised:",
        f"'{GAUSS}::test_same_trajectory[sem-several parts-full]'",
    ),
    (
        "blocks: parts begin at a row's first column",
        "engine/numba/gaussian_blocks.py",
        "j = first - d - i * (i + 1) // 2",
        "j = 0",
        f"'{GAUSS}::test_same_trajectory[sem-several parts-full]'",
    ),
    (
        "blocks: expanded however far",
        "engine/numba/gaussian_blocks.py",
        "FARTHEST = 2.5e5",
        "FARTHEST = 2.5e15",
        f"{FAR}::test_two_passes[near-full]",
    ),
    (
        "blocks: products of tied without weights",
        "engine/numba/gaussian_blocks.py",
        "weighted[c, t] = samples[c, t] * work.totals[t]",
        "weighted[c, t] = samples[c, t]",
        f"{GAUSS}::test_full_passes",
    ),
    (
        "passes: weights of the first block for all",
        "engine/numba/gaussian_passes.py",
        "rows[t, m] *= sample_weight[first + t]",
        "rows[t, m] *= sample_weight[t]",
        f"{PIECES}::test_statistics_memory_and_likelihood[pieces-full]",
    ),
    (
        "passes: likelihood with the first block's weights",
        "engine/numba/gaussian_passes.py",
        "                weight = sample_weight[first + t]",
        "                weight = sample_weight[t]",
        f"{FAR}::test_the_bound_of_a_pass[weights-full]",
    ),
    (
        "passes: products with the first block's weights",
        "engine/numba/gaussian_passes.py",
        "work.totals[t] = sample_weight[first + t] if",
        "work.totals[t] = sample_weight[t] if",
        f"{PIECES}::test_statistics_memory_and_likelihood[pieces-tied]",
    ),
    (
        "passes: statistics not of what float32 holds",
        "engine/numba/gaussian_blocks.py",
        "rows[t, m] = memory[first + t, m]",
        "rows[t, m] += 0.0",
        f"{PIECES}::test_statistics_memory_and_likelihood[float32-full]",
    ),
    (
        "passes: half of the square is taken off twice",
        "engine/numba/gaussian_passes.py",
        "if kind == TIED and near:",
        "if kind == TIED:",
        f"{FAR}::test_the_bound_of_a_pass[alike-tied]",
    ),
    (
        "passes: a single row at the end is left out",
        "engine/numba/gaussian_passes.py",
        "remembers = len(memory.double) + len(memory.single) > 0\n"
        "    copy(reach, work.extent)\n"
        "    is_known = is_near(theta, work.extent)\n"
        "    for first in range(0, n, block):",
        "remembers = len(memory.double) + len(memory.single) > 0\n"
        "    copy(reach, work.extent)\n"
        "    is_known = is_near(theta, work.extent)\n"
        "    for first in range(0, n - 1, block):",
        f"'{PIECES}::test_statistics_memory_and_likelihood[one more row-full]'",
    ),
    (
        "passes: rows given with the first block's weights",
        "engine/numba/gaussian_passes.py",
        "given[first + t, m] * weight[first + t]",
        "given[first + t, m] * weight[t]",
        f"{GAUSS}::test_a_start_by_responsibilities[full]",
    ),
    (
        "batches: float32 memory is not what counts",
        "engine/numba/gaussian_batches.py",
        "rows[t, m] = np.float64(memory[i, m]) - old",
        "rows[t, m] -= old",
        f"{GAUSS}::test_the_centre_is_the_mean_of_what_is_stored_also_in_float32[full-auto]",
    ),
    (
        "batches: i renews the memory, too",
        "engine/numba/gaussian_batches.py",
        "correction, anchor, memory, renew, tools,",
        "correction, anchor, memory, renews, tools,",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[6-fiem-full]",
    ),
    (
        "batches: the memory of i is renewed, not that of j",
        "engine/numba/gaussian_batches.py",
        "other[k] if renew else index[k]",
        "index[k]",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[6-fiem-full]",
    ),
    (
        "batches: the centre moves by the mean of a batch",
        "engine/numba/gaussian_batches.py",
        "share if renew else scale / index.shape[1]",
        "scale / index.shape[1]",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[6-fiem-full]",
    ),
    (
        "batches: weights of the first samples",
        "engine/numba/softmax.py",
        "factor * sample_weight[index[t]] if",
        "factor * sample_weight[t] if",
        f"'{GAUSS}::test_same_trajectory[iem-larger than data-full]'",
    ),
    (
        "m-step: means without the prior's",
        "engine/numba/gaussian_m_step.py",
        "(s2[m, c] + kappa * hyper.mean[c])",
        "s2[m, c]",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[1-sem-full]",
    ),
    (
        "m-step: scatter without the prior's mean",
        "engine/numba/gaussian_m_step.py",
        " + from_prior * hyper.mean[i] -",
        " -",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[1-sem-full]",
    ),
    (
        "m-step: scale without correlations",
        "engine/numba/gaussian_m_step.py",
        "hyper.scale[j, i]",
        "(hyper.scale[j, j] if i == j else 0.0)",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[1-sem-full]",
    ),
    (
        "m-step: variances without the prior's mean",
        "engine/numba/gaussian_m_step.py",
        "+ kappa * hyper.mean[c] * hyper.mean[c] -",
        "-",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[1-sem-diag]",
    ),
    (
        "m-step: prior of one component for tied",
        "engine/numba/gaussian_m_step.py",
        "(last - first) * kappa",
        "kappa",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[1-sem-tied]",
    ),
    (
        "m-step: weights without epsilon",
        "engine/numba/gaussian_m_step.py",
        "else (s1[m] + hyper.epsilon) / total",
        "else s1[m] / total",
        f"{DOMAIN}::test_a_prior_with_a_mean_and_correlations[1-sem-full]",
    ),
    (
        "m-step: domain without epsilon",
        "engine/numba/gaussian_m_step.py",
        "s1[m] + hyper.epsilon > 0.0 and ",
        "",
        f"{DOMAIN}::test_each_count_of_a_prior_keeps_the_domain[epsilon-full]",
    ),
    (
        "m-step: domain without the mean's precision",
        "engine/numba/gaussian_m_step.py",
        "s1[m] + kappa > 0.0 and ",
        "",
        f"'{DOMAIN}::test_each_count_of_a_prior_keeps_the_domain[mean precision-full]'",
    ),
    (
        "m-step: domain without degrees",
        "engine/numba/gaussian_m_step.py",
        " and s1[m] + hyper.degrees > 0.0",
        "",
        f"{DOMAIN}::test_each_count_of_a_prior_keeps_the_domain[degrees-tied]",
    ),
    (
        "lane: moved by the last stretch alone",
        "engine/compiled_lane.py",
        "self._moved |= stop",
        "self._moved = stop",
        f"{DOMAIN}::test_what_comes_before_rejected_steps_stays[1-full]",
    ),
    (
        "parts: weights of the first part for all",
        "engine/parts.py",
        "weight[start:stop]",
        "weight[: stop - start]",
        f"{PIECES}::test_statistics_memory_and_likelihood[pieces-unit]",
    ),
    (
        "parts: memory of the first part for all",
        "engine/parts.py",
        "slice(self.first, self.first + len(self.y))",
        "slice(0, len(self.y))",
        f"{PIECES}::test_statistics_memory_and_likelihood[pieces-unit]",
    ),
    (
        "expectation: every part is evaluated into the first",
        "engine/block_expectation.py",
        "there = slice(first + here.start, first + here.stop)",
        "there = here",
        f"{PIECES}::test_statistics_memory_and_likelihood[pieces-full]",
    ),
    (
        "threads: rows that are left over",
        "engine/threads.py",
        "n * place // count",
        "n // count * place",
        f"'{PIECES}::test_statistics_memory_and_likelihood[pieces-full]'",
    ),
    (
        "lane: step sizes one too early",
        "engine/lane.py",
        "np.arange(start + 1, stop + 1)",
        "np.arange(start, stop)",
        f"'{GAUSS}::test_same_trajectory[sem-schedule-full]'",
    ),
]

EQUIVALENT = [
    (
        "blocks: means not in the bound",
        "engine/numba/gaussian_blocks.py",
        "extent[c] = max(extent[c], abs(theta.means[m, c]))",
        "extent[c] = max(extent[c], 0.0)",
        "Expanded logits are those of a mean displaced by the rounding of Uᵀμ, as are those of whitened "
        "differences; and squares of Uᵀμ beyond FARTHEST leave a logit as large, whose rounding is theirs, "
        "or Uᵀμ is within twice the reach of the samples, which is near. Measured against exact arithmetic "
        "for means 1e3 to 3e7 away, with and without correlations, also where means and samples are far "
        "apart along a wide direction and alike across: errors of the responsibilities agree within a "
        "factor of 3, or are smaller with the mutant.",
    ),
    (
        "batches: blocks of other sizes",
        "engine/numba/gaussian_batches.py",
        "block = -(-len(index) // parts)",
        "block = len(index) // parts",
        "A batch is then cut at other places, into one block more; sums differ by rounding.",
    ),
]
