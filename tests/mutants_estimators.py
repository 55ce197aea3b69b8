"""Mutants of the estimators that tests must notice, as ``tests/mutate.py`` reads them."""

ONLINE = "estimators/mixture/online.py"
RESERVOIR = "estimators/mixture/online.py"
LOOK = "estimators/mixture/look.py"
PLAN = "estimators/mixture/plan.py"
FIT = "estimators/mixture/fit.py"
RESEED = "estimators/mixture/initial.py"
SPLIT = "estimators/mixture/split.py"
TOPICS = "estimators/topics/first_topics.py"
RELATIONS = "estimators/topics/relations.py"
INPUT = "estimators/mixture/base.py"
MIXTURE = "estimators/mixture/gaussian_mixture.py"
PROCESS = "process.py"
RACE = "estimators/mixture/optima/race.py"
SAMPLE = "estimators/mixture/optima/sample.py"
FEW = "estimators/mixture/optima/few.py"
KINDS = "estimators/mixture/optima/kinds.py"
TOGETHER = "estimators/mixture/optima/together.py"
NOISE = "data/rows/noisy_source.py"

STREAM_TESTS = "tests/estimators/test_partial_fit.py"
LOOK_TESTS = "tests/estimators/test_look.py"
RELATIONS_TESTS = "tests/estimators/test_topic_relations.py"
DEGENERATE_TESTS = "tests/estimators/test_degenerate.py"
RESTORED = "        self._last, self._last_passes, self._calm, self._last_of_all, self.objective = state\n"

MUTANTS = [
    (
        "race: moves from a given start are ignored",
        SAMPLE,
        'asked = moves != "auto" and moves > 0',
        'asked = moves == "never"',
        "tests/estimators/test_race.py::test_moves_that_are_asked_for_improve_a_start_that_is_given",
    ),
    (
        "race: after Ctrl-C the last candidate is the start",
        RACE,
        "if self.best is None or one.value > self.best.value:",
        "if True:",
        "tests/estimators/test_interrupted_starts.py::test_it_is_the_best_candidate_so_far",
    ),
    (
        "race: Ctrl-C after the last check is lost",
        RACE,
        "lost\n                interrupt.check()\n",
        "lost\n                pass\n",
        "tests/estimators/test_interrupted_starts.py::test_after_the_last_check_it_is_not_lost",
    ),
    (
        "race: after Ctrl-C all starts are made",
        RACE,
        "            if self.best is not None:\n                self._check()\n",
        "",
        "tests/estimators/test_interrupted_starts.py::test_before_the_first_candidate_it_is_still_made",
    ),
    (
        "few rows: Ctrl-C after the last check is lost",
        FEW,
        "            interrupt.check()\n        except",
        "        except",
        "tests/estimators/test_interrupted_starts.py::test_after_the_last_check_it_is_not_lost",
    ),
    (
        "fit: after Ctrl-C in a race, passes follow",
        "estimators/mixture/estimator.py",
        "[pressed.start], [0], True",
        "[pressed.start], [0], False",
        "tests/estimators/test_interrupted_starts.py::test_a_model_wherever_it_is_pressed[race]",
    ),
    (
        "starts: after Ctrl-C those before it are lost",
        RESEED,
        "        raise StartInterrupted(found[0]) from None\n",
        "        raise\n",
        "tests/estimators/test_interrupted_starts.py::test_of_several_k_means_the_first_is_kept",
    ),
    (
        "fit: no look ahead",
        FIT,
        "if shared.looks_ahead:",
        "if False:",
        "tests/estimators/test_remaining.py::test_few_rows_have_no_plateau_on_which_a_fit_ends[em]",
    ),
    (
        "fit: a plateau without passes left is called converged",
        FIT,
        "                    fit.converged = False\n                    passes = min(",
        "                    passes = min(",
        "tests/estimators/test_remaining.py::test_a_plateau_without_passes_left_is_no_convergence",
    ),
    (
        "online: a prior counts anew in every batch",
        ONLINE,
        "return bound.with_share(source.total_weight / seen)",
        "return bound.with_share(1.0)",
        f"{STREAM_TESTS}::test_a_prior_counts_once_in_a_stream",
    ),
    (
        "online: the sample is fitted without its weights",
        ONLINE,
        "rows = ArraySource(self.sample.rows, weight, allow_missing=True)",
        "rows = ArraySource(self.sample.rows, allow_missing=True)",
        f"{STREAM_TESTS}::test_a_better_place_is_looked_for_by_the_weights_of_the_rows",
    ),
    (
        "online: a refused batch changes the statistics",
        ONLINE,
        "        if bound.in_domain(s):\n            now, theta = replace(now, s=s), bound.m_step(s)\n",
        "        now = replace(now, s=s)\n        if bound.in_domain(s): theta = bound.m_step(s)\n",
        f"{STREAM_TESTS}::test_a_batch_without_an_m_step_leaves_the_statistics_as_they_were",
    ),
    (
        "online: a move by noise",
        ONLINE,
        "elif if_near < by_parameters:",
        "elif if_near < now_is:",
        f"{STREAM_TESTS}::test_a_look_at_the_sample_does_not_move_by_noise",
    ),
    (
        "reservoir: the largest rank that is kept as threshold",
        RESERVOIR,
        "threshold = min(threshold, float(all_rank[order[self.size]]))",
        "threshold = min(threshold, float(all_rank[order[: self.size]].max()))",
        f"{STREAM_TESTS}::test_the_sample_of_a_stream_stands_for_all_rows",
    ),
    (
        "reservoir: the threshold of the last rows alone",
        RESERVOIR,
        "threshold = min(threshold, float(all_rank[order[self.size]]))",
        "threshold = float(all_rank[order[self.size :]].max())",
        f"{STREAM_TESTS}::test_the_sample_of_a_stream_stands_for_all_rows",
    ),
    (
        "reservoir: rows with their own weights",
        RESERVOIR,
        "return self.weight / -np.expm1(-self.weight * self.threshold)",
        "return self.weight",
        f"{STREAM_TESTS}::test_the_sample_of_a_stream_stands_for_all_rows",
    ),
    (
        "reservoir: all rows alike, also those that are sure to be kept",
        RESERVOIR,
        "return self.weight / -np.expm1(-self.weight * self.threshold)",
        "return np.full(len(self.weight), 1.0 / self.threshold)",
        f"{STREAM_TESTS}::test_the_sample_of_a_stream_stands_for_all_rows",
    ),
    (
        "look: the error of a gain without weights",
        LOOK,
        "sqrt(float(self._weight**2 @ (change - mean) ** 2)) / total",
        "sqrt(float(((change - mean) ** 2).sum())) / total",
        f"{LOOK_TESTS}::test_the_unit_of_weights_does_not_matter_to_looks_at_some_rows",
    ),
    (
        "look: the error of a gain by weights that are not squared",
        LOOK,
        "sqrt(float(self._weight**2 @ (change - mean) ** 2)) / total",
        "sqrt(float(self._weight @ (change - mean) ** 2)) / total",
        f"{LOOK_TESTS}::test_the_unit_of_weights_does_not_matter_to_looks_at_some_rows",
    ),
    *(
        (
            f"look: restored without {name}",
            LOOK,
            RESTORED,
            f"{RESTORED}        self.{name} = {begin}\n",
            f"{LOOK_TESTS}::test_a_look_goes_on_where_it_was_left",
        )
        for name, begin in (
            ("_last", "None"),
            ("_last_passes", "0.0"),
            ("_calm", "0"),
            ("_last_of_all", "None"),
            ("objective", "inf"),
        )
    ),
    (
        "look: all rows at every look",
        LOOK,
        "passes < APART * self._last_of_all[0]",
        "passes < self._last_of_all[0]",
        f"{LOOK_TESTS}::test_looks_at_all_rows_are_seldom",
    ),
    (
        "plan: auto above its boundary only",
        PLAN,
        "n / needed >= WORTH",
        "n / needed > WORTH",
        "tests/estimators/test_plan.py::test_the_boundary_of_auto_for_many_components",
    ),
    (
        "fit_mixture: no em where all steps are rejected",
        FIT,
        "elif iterate.rejected - last[1] == iterate.k - last[0]:",
        "elif False:",
        f"{DEGENERATE_TESTS}::test_em_takes_over_where_every_step_is_rejected",
    ),
    (
        "fit_mixture: rejected steps of the last run only",
        FIT,
        "fit.rejected = rejected + iterate.rejected",
        "fit.rejected = iterate.rejected",
        f"{DEGENERATE_TESTS}::test_a_method_goes_on_after_a_repair_and_counts_on",
    ),
    (
        "fit_mixture: no second run of a method after a repair",
        FIT,
        'status = "stopped" if self.em(passes, is_last=left <= passes, steps=steps) else "at the end"',
        "self.em(passes, is_last=left <= passes, steps=steps)",
        f"{DEGENERATE_TESTS}::test_a_method_goes_on_after_a_repair_and_counts_on",
    ),
    (
        "fit_mixture: a stop during a repair is ignored",
        FIT,
        'status = "stopped" if self.em(passes, is_last=left <= passes, steps=steps) else "at the end"',
        'status = "at the end" if self.em(passes, is_last=left <= passes, steps=steps) else "at the end"',
        "tests/estimators/test_watch.py::test_a_callback_that_stops_a_repair_stops_the_fit",
    ),
    (
        "fit_mixture: components are re-initialised in the last pass",
        FIT,
        "if not is_last:  # after the last pass",
        "if True:  # after the last pass",
        f"{DEGENERATE_TESTS}::test_the_last_pass_leaves_parameters_that_are_a_fit",
    ),
    (
        "reseed: components that a prior holds are dead",
        "models/components.py",
        "if self.is_held:",
        "if False:",
        f"{DEGENERATE_TESTS}::test_a_component_without_rows_stays_where_the_prior_holds_it",
    ),
    (
        "split: tails above only",
        SPLIT,
        "side = np.where(rows.weight @ z**3 >= 0, 1.0, -1.0)",
        "side = np.ones(axes.shape[1])",
        "tests/estimators/test_split.py::test_a_tail_is_split_off_on_either_side",
    ),
    (
        "split: the gain of round components by one column",
        SPLIT,
        "parts.label - 0.5 * d * (parts.share * np.log(spread / whole))",
        "parts.label - 0.5 * (parts.share * np.log(spread / whole))",
        "tests/estimators/test_split.py::test_round_components_count_all_columns",
    ),
    (
        "first_topics: clusters without weights",
        TOPICS,
        ", sample_weight=taken.weight).labels_",
        ").labels_",
        "tests/estimators/test_first_topics.py::test_documents_are_clustered_by_their_weights",
    ),
    (
        "first_topics: words without weights",
        TOPICS,
        "weighted = counts.multiply(taken.weight[:, None]).tocsr()",
        "weighted = counts",
        "tests/estimators/test_first_topics.py::test_the_words_of_a_cluster_count_by_the_weights_of_its_documents",
    ),
    (
        "relations: merged topics without the weights of their members",
        RELATIONS,
        "weights=self.topic_counts_[group] if n > 0 else None",
        "weights=None",
        f"{RELATIONS_TESTS}::test_merged_topics_predict_what_their_members_predict",
    ),
    (
        "relations: alpha of merged topics is not summed",
        RELATIONS,
        "made.alpha = np.array([self._alpha()[group].sum() for group in members])",
        "made.alpha = np.array([self._alpha()[group].mean() for group in members])",
        f"{RELATIONS_TESTS}::test_merged_topics_predict_what_their_members_predict",
    ),
    (
        "relations: groups without the lengths of documents",
        RELATIONS,
        "np.add.at(sums, group, shares * tokens[:, None])",
        "np.add.at(sums, group, shares * tokens.mean())",
        f"{RELATIONS_TESTS}::test_topics_over_labels",
    ),
    (
        "exchange: counts of scikit-learn with the prior",
        "estimators/topics/exchange.py",
        "np.maximum(np.asarray(model.components_, dtype=np.float64) - beta, 0.0)",
        "np.asarray(model.components_, dtype=np.float64)",
        f"{RELATIONS_TESTS}::test_from_and_to_sklearn",
    ),
    (
        "explorer: a text can end the script",
        "report/explorer/content.py",
        'for sign in "<>&',
        'for sign in "&',
        "tests/report/test_explorer.py::test_nothing_ends_the_script",
    ),
    (
        "mixture_input: equal weights of a batch do not count",
        INPUT,
        "unit_counts = in_batches or self._model().in_counts",
        "unit_counts = self._model().in_counts",
        f"{STREAM_TESTS}::test_the_weight_of_a_batch_counts",
    ),
    (
        "gaussian_mixture: equal weights of a fit do not count in what follows",
        "estimators/mixture/estimator.py",
        "self._past = Past(fit.s, fitting.problem.bound.about, read.total_weight)",
        "self._past = Past(fit.s, fitting.problem.bound.about, fitting.problem.source.total_weight)",
        f"{STREAM_TESTS}::test_the_weight_of_a_batch_counts",
    ),
    (
        "few rows: a start that collapses counts",
        FEW,
        "np.where(collapsed > usual, -np.inf, -rows.objectives(thetas))",
        "-rows.objectives(thetas)",
        "tests/estimators/test_starts_of_few_rows.py::test_no_more_components_collapse_than_from_the_first_start",
    ),
    (
        "few rows: only the first start tells how many components may collapse",
        FEW,
        "max(collapsed[0], np.median(collapsed))",
        "collapsed[0]",
        "tests/estimators/test_starts_of_few_rows.py::test_as_many_components_may_collapse_as_in_half_of_the_candidates",
    ),
    (
        "few rows: k-means++ keeps the last draw, not the best one",
        KINDS,
        "best = (near @ w).argmin(axis=1)",
        "best = np.full(count, near.shape[1] - 1)",
        "tests/estimators/test_starts_of_few_rows.py::test_k_means_of_all_are_those_one_by_one",
    ),
    (
        "mixtures at once: leaps are as long as the square of what they should be",
        TOGETHER,
        "alpha = np.minimum(np.sqrt(alpha), longest)",
        "alpha = np.minimum(alpha, longest)",
        "tests/estimators/test_starts_of_few_rows.py::test_several_mixtures_at_once_are_those_one_by_one",
    ),
    (
        "race: a move that loses on the rows seen is accepted",
        RACE,
        "if on.e_step.objective(one.theta) < most]",
        "if on.e_step.objective(one.theta) < np.inf]",
        "tests/estimators/test_race.py::test_a_move_that_loses_on_the_rows_seen_is_not_accepted",
    ),
    (
        "race: a runner-up is moved however bad it is",
        RACE,
        "if runner_up.value > ends[0].value - NEAR:",
        "if runner_up.value > -inf:",
        "tests/estimators/test_heats.py::test_a_second_heat_follows_if_candidates_differ_and_no_move_gains",
    ),
    (
        "Ctrl-C: an import is interrupted",
        PROCESS,
        'if found.f_code.co_filename.startswith("<frozen importlib"):',
        'if found.f_code.co_filename.startswith("<frozen nothing"):',
        "'tests/test_interrupt.py::test_an_import_is_complete_before_the_key_counts[outside]'",
    ),
    (
        "Ctrl-C: a program that is imported is never interrupted",
        PROCESS,
        "while found is not None and found is not self._caller:",
        "while found is not None:",
        "'tests/test_interrupt.py::test_an_import_is_complete_before_the_key_counts[the_program_is_imported]'",
    ),
    (
        "Ctrl-C: runs do not defer the handler of the command line",
        PROCESS,
        "handler is signal.default_int_handler or isinstance(handler, AfterImports)",
        "handler is signal.default_int_handler",
        "tests/test_interrupt.py::test_runs_defer_the_handler_of_the_command_line",
    ),
    (
        "Ctrl-C: the file of a model is left out",
        "cli/table_rows.py",
        "            with uninterrupted():\n                _save",
        "            if True:\n                _save",
        "tests/cli/test_fit_interrupted.py::test_while_the_model_is_written",
    ),
    (
        "race: the second of two heats decides nothing",
        RACE,
        "for one in first + self._heat(self._plan.again) if",
        "for one in first + 0 * self._heat(self._plan.again) if",
        "tests/estimators/test_heats.py::test_a_second_heat_follows_if_candidates_differ_and_no_move_gains",
    ),
    (
        "race: two candidates are left before em has converged",
        SAMPLE,
        "FULL_FINALISTS, FULL_LAST, FULL_SHARE = 4, 50, 3",
        "FULL_FINALISTS, FULL_LAST, FULL_SHARE = 2, 15, 3",
        "tests/estimators/test_heats.py::test_the_last_round_has_more_candidates_and_passes",
    ),
    (
        "race: no further moves after the first that fail",
        RACE,
        "            while best is before and waiting and self._left >= cost:\n",
        "            if best is before and waiting and self._left >= cost:\n",
        "tests/estimators/test_race.py::test_moves_after_those_that_fail_are_tried",
    ),
    (
        "dither: the noise of a block is that of the first rows",
        NOISE,
        "self._noisy(self._source.block(number), int(self.layout.edges[number]))",
        "self._noisy(self._source.block(number), 0)",
        "tests/estimators/test_spurious.py::test_a_noisy_source_is_a_source",
    ),
]
