"""Mutants of the compiled kernels and lanes of Gaussian mixtures, for ``python -m tests.mutate``."""

FAR = "tests/lanes/test_far_blocks.py"

MUTANTS = [
    (
        "passes: product overflows",
        "kernels/numba/gaussian_passes.py",
        "if product > 1e250:",
        "if product > math.inf:",
        f"{FAR}::test_the_bound_of_many_components_that_are_alike",
    ),
    (
        "passes: reach of the last block",
        "kernels/numba/gaussian_passes.py",
        "found[c] = max(found[c], work.extent[c])",
        "found[c] = work.extent[c]",
        f"{FAR}::test_two_passes",
    ),
    (
        "passes: near if the last block is",
        "kernels/numba/gaussian_passes.py",
        "all_near &= near",
        "all_near = near",
        f"{FAR}::test_the_bound_of_a_pass",
    ),
    (
        "blocks: extent without abs",
        "kernels/numba/gaussian_blocks.py",
        "size = abs(line[t])",
        "size = line[t]",
        f"{FAR}::test_two_passes",
    ),
    (
        "passes: last of equal labels",
        "kernels/numba/gaussian_passes.py",
        "if rows[t, m] > rows[t, best]:",
        "if rows[t, m] >= rows[t, best]:",
        f"{FAR}::test_labels_of_components_that_are_alike",
    ),
    (
        "blocks: means not in the bound",
        "kernels/numba/gaussian_blocks.py",
        "extent[c] = max(extent[c], abs(theta.means[m, c]))",
        "extent[c] = max(extent[c], 0.0)",
        f"{FAR}",
    ),
    (
        "batches: nearness of the anchor is that of theta",
        "kernels/numba/gaussian_batches.py",
        "_responsibilities(samples, anchor, is_known_there, tools, spare)",
        "_responsibilities(samples, anchor, is_known, tools, spare)",
        f"{FAR}::test_an_anchor_that_is_far_and_parameters_that_are_near",
    ),
    (
        "m-step: no floor of diag",
        "kernels/numba/gaussian_m_step.py",
        "if not (value > ROUNDING * abs(raw) * inverse and",
        "if not (",
        f"{FAR}::test_a_variance_of_rounding_alone_rejects_the_step",
    ),
    (
        "m-step: no floor of spherical",
        "kernels/numba/gaussian_m_step.py",
        "if not (value > ROUNDING * abs(raw) * inverse / d and",
        "if not (",
        f"{FAR}::test_a_variance_of_rounding_alone_rejects_the_step",
    ),
    (
        "m-step: no floor of matrices",
        "kernels/numba/gaussian_m_step.py",
        "if not (pivot > floor[j] and",
        "if not (",
        f"{FAR}::test_a_variance_of_rounding_alone_rejects_the_step",
    ),
    (
        "expectation: reach found anew by every pass",
        "lanes/gaussian_expectation.py",
        "if np.isinf(self.reach).all():",
        "if True:",
        f"{FAR}::test_rows_that_are_far_only_for_later_parameters",
    ),
]
