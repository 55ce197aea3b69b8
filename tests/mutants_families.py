"""Mutants of families, mixtures of them, and what all mixtures share."""

MODELS = "tests/models/test_families.py"
MIXTURE = "tests/estimators/test_mixture.py"
MODEL, POISSON, BERNOULLI = (
    "models/bound_mixture.py",
    "models/families/poisson.py",
    "models/families/bernoulli.py",
)
BLOCKS, GAUSSIAN = "models/families/blocks.py", "models/families/gaussian.py"
OF_BLOCKS = "tests/models/test_blocks.py"
MIXED = "tests/estimators/test_mixed_columns.py"
PASS = "engine/block_expectation.py"

MUTANTS = [
    (
        "families: the prior's rows are not counted",
        MODEL,
        "counts = counts + self.kappa\n",
        "counts = counts + 0.0\n",
        f"{MODELS}::test_smoothing_is_the_maximum_a_posteriori",
    ),
    (
        "families: the prior's features are those of no row",
        MODEL,
        "(sums + self.kappa * self.mean) / counts",
        "sums / counts",
        f"{MODELS}::test_smoothing_is_the_maximum_a_posteriori",
    ),
    (
        "families: noise below the bound stays",
        MODEL,
        "((low, np.maximum), (high, np.minimum))",
        "((high, np.minimum),)",
        f"{MODELS}::test_noise_below_the_bound_is_no_reason_to_reject_a_step",
    ),
    (
        "families: the penalty leaves out the constants",
        MODEL,
        "float((phi @ self.mean).sum() + constant.sum())",
        "float((phi @ self.mean).sum())",
        f"{MODELS}::test_smoothing_is_the_maximum_a_posteriori",
    ),
    (
        "families: a row that cannot be is the first of its block",
        "models/families/family.py",
        "said, row = str(one), first + place",
        "said, row = str(one), first",
        f"{MODELS}::test_rows_that_cannot_be",
    ),
    (
        "families: weights are not in the logits",
        MODEL,
        "constant = constant + np.log(theta.weights)",
        "constant = constant + 0.0 * np.log(theta.weights)",
        f"{MODELS}::test_em_by_hand",
    ),
    (
        "families: components without rows stay where they are",
        MODEL,
        "parts.sums[gone] = self._around(rows) / self.n_components",
        "parts.sums[gone] = parts.sums[gone]",
        f"{MIXTURE}::test_components_without_rows_are_set_anew",
    ),
    (
        "families: a little smoothing holds dead components",
        MODEL,
        "return self.model.smoothing >= 1.0 or",
        "return self.model.smoothing > 0.0 or",
        f"{MODELS}::test_a_prior_of_a_row_holds_components_without_rows",
    ),
    (
        "poisson: factorials of one less",
        POISSON,
        "gammaln(np.arange(int(y.max()) + 1.0) + 1.0)",
        "gammaln(np.arange(int(y.max()) + 1.0) + 2.0)",
        f"{MODELS}::test_the_density_is_scipys",
    ),
    (
        "bernoulli: the chance of no is not in the constant",
        BERNOULLI,
        "- of_no, of_no.sum(axis=1)",
        "- of_no, 0.0 * of_no.sum(axis=1)",
        f"{MODELS}::test_the_density_is_scipys",
    ),
    (
        "blocks: the statistics of one block for those of another",
        BLOCKS,
        "found = family.m_step(counts, means[:, place])",
        "found = family.m_step(counts, means[:, : len(place)])",
        f"{OF_BLOCKS}::test_em_by_hand",
    ),
    (
        "blocks: log h(y) of the first block alone",
        BLOCKS,
        "return np.sum(known, axis=0) if known else None",
        "return 0.0 * known[0] if known else None",
        f"{OF_BLOCKS}::test_em_by_hand",
    ),
    (
        "blocks: a column in two blocks",
        BLOCKS,
        "if column in seen:",
        "if False:",
        f"{OF_BLOCKS}::test_blocks_that_cannot_be",
    ),
    (
        "blocks: bounds of the first block for all",
        BLOCKS,
        "ends[0, place], ends[1, place] = low, high",
        "ends[0], ends[1] = low, high",
        f"{OF_BLOCKS}::test_em_by_hand",
    ),
    (
        "blocks: k-means sees columns in their units",
        BLOCKS,
        "found / np.where(spread > 0.0, spread, 1.0).astype(found.dtype)",
        "found",
        f"{MIXED}::test_a_start_does_not_depend_on_units",
    ),
    (
        "gaussian: features are not about the centre",
        GAUSSIAN,
        "centre, scale = standard(columns)",
        "centre, scale = (0.0,) * len(columns.mean), standard(columns)[1]",
        f"{OF_BLOCKS}::test_an_offset_costs_no_digits",
    ),
    (
        "gaussian: a variance without a floor",
        GAUSSIAN,
        "variances = np.maximum(v, self.floor) * np.square(scale)",
        "variances = np.maximum(v, 1e-9) * np.square(scale)",
        f"{OF_BLOCKS}::test_a_variance_has_a_floor",
    ),
    (
        "mixture: a warm start with other columns",
        "estimators/mixture/mixture.py",
        "or _numbers(now) not in (None, _numbers(self.family_))",
        "",
        f"{MIXED}::test_warm_starts_keep_the_family",
    ),
    (
        "mixture: what a family has learnt is not in its file",
        "estimators/mixture/file.py",
        'header["family_"] = _family_header(estimator.family_)',
        "pass",
        f"{MIXED}::test_files_of_models",
    ),
    (
        "mixture: log h(y) is not in the objective",
        PASS,
        "self._last[1] - self._mean_base()",
        "self._last[1]",
        f"{MODELS}::test_compiled_runs_are_the_references",
    ),
    (
        "mixture: log h(y) is not in the score",
        PASS,
        "found.log_likelihood[there] += base",
        "found.log_likelihood[there] += 0.0 * base",
        f"{MIXTURE}::test_weights_count_as_repetitions {MODELS}::test_compiled_runs_are_the_references",
    ),
    (
        "sums: likelihoods of parts are not added",
        PASS,
        "self.log_likelihood += other.log_likelihood",
        "self.log_likelihood = other.log_likelihood",
        "tests/engine/test_gaussian_components.py::test_a_pass_is_a_sum_of_parts_that_can_be_sent_away",
    ),
    (
        "mixture: ICL without the entropy",
        "estimators/mixture/scores.py",
        '"icl": bic + 2.0 * entropy',
        '"icl": bic',
        f"{MIXTURE}::test_queries",
    ),
    (
        "mixture: a family's choices are not kept in its file",
        "estimators/mixture/file.py",
        "return find_family(name)(**given)",
        "return find_family(name)()",
        f"{MIXTURE}::test_a_family_of_ones_own_in_a_file",
    ),
    (
        "plan: a method object with a batch of the estimator's",
        "estimators/mixture/plan.py",
        'if not (isinstance(value, str) and value == "auto"):',
        "if False:",
        "tests/estimators/test_plan.py",
    ),
    (
        "select: a doubled component has all of its weight twice",
        "estimators/mixture/candidate_fits.py",
        "np.where(index == largest, 2.0, 1.0)",
        "np.where(index == largest, 1.0, 1.0)",
        f"{MIXTURE}::test_select_finds_the_number_of_components",
    ),
]
