"""Mutants of checkpoints that tests must notice, as ``tests/mutate.py`` reads them."""

STORE = "checkpoints/store.py"
MEMORY = "checkpoints/folder.py"
DURABLE = "files/durable.py"
DESCRIBE = "checkpoints/tree.py"
FIT = "estimators/mixture/fit.py"

ON_DISK = "tests/checkpoints/test_folders.py::test_what_is_written_is_on_the_disk_before_a_state_speaks_of_it"
SEALED = "tests/checkpoints/test_files.py::test_a_sealed_file_is_on_the_disk_before_it_has_its_name"
FUNCTIONS = "tests/checkpoints/test_describe.py::test_a_run_with_another_function_is_refused"
FITS = "tests/estimators/test_checkpoints.py"

MUTANTS = [
    (
        "store: what was recorded is not brought to the disk",
        STORE,
        "                path.sync()\n",
        "",
        ON_DISK,
    ),
    (
        "records: nothing is brought to the disk",
        "checkpoints/folder.py",
        "        os.fsync(self._handle)\n",
        "",
        ON_DISK,
    ),
    (
        "memory file: the memory is not brought to the disk",
        MEMORY,
        "            os.fsync(handle)\n",
        "",
        ON_DISK,
    ),
    (
        "durable: a state has its name before it is on the disk",
        DURABLE,
        "            if durable:\n                os.fsync(handle)\n",
        "",
        f"{ON_DISK} {SEALED}",
    ),
    (
        "durable: the new name is not brought to the disk",
        DURABLE,
        "    if durable:\n        sync_folder(path.parent)\n",
        "",
        SEALED,
    ),
    (
        "describe: names in a function's code",
        DESCRIBE,
        "parts = (_constant(code.co_consts), code.co_names)",
        "parts = (_constant(code.co_consts),)",
        f"'{FUNCTIONS}[a name]'",
    ),
    (
        "describe: constants in a function's code",
        DESCRIBE,
        "parts = (_constant(code.co_consts), code.co_names)",
        "parts = (code.co_names,)",
        f"'{FUNCTIONS}[a number]'",
    ),
    (
        "describe: defaults of keywords",
        DESCRIBE,
        "inside = (cells, function.__defaults__, function.__kwdefaults__)",
        "inside = (cells, function.__defaults__)",
        f'"{FUNCTIONS}[a keyword\'s default]"',
    ),
    (
        "fit_mixture: the generator begins anew after a resume",
        FIT,
        '            self._rng.bit_generator.state = kept["rng"]\n',
        "",
        f"{FITS}::test_a_second_reseed_after_a_death_draws_what_it_would_have_drawn",
    ),
    (
        "fit_mixture: the last bound is forgotten by a resume",
        FIT,
        'if kept["remaining"] is not None:',
        "if False:",
        f"{FITS}::test_a_death_one_pass_before_the_end_changes_no_end[em]",
    ),
    (
        "fit_mixture: the number of runs is forgotten by a resume",
        FIT,
        'self._runs = kept["runs"]',
        'self._runs = 0 * kept["runs"]',
        f"{FITS}::test_a_method_that_goes_on_after_a_repair[sem-vr]",
    ),
    (
        "fit_mixture: looks begin anew after a resume",
        FIT,
        'self._kept_run, self._kept_look = kept["run"], kept["look"]',
        'self._kept_run = kept["run"]',
        f"{FITS}::test_a_death_at_an_early_look_makes_the_next_one_no_end",
    ),
]
