"""Mutants of problems, runs on them and their budget, for ``python -m tests.mutate``."""

PROBLEM = "tests/test_problem.py"

MUTANTS = [
    (
        "problem: E-steps are built whenever they are asked for",
        "problem.py",
        "found = self._of_thread.e_step = choose_expectation(",
        "found = choose_expectation(",
        f"{PROBLEM}::test_a_fit_binds_once[em]",
    ),
    (
        "problem: threads share E-steps",
        "problem.py",
        "self._of_thread = threading.local()",
        "self._of_thread = type('Shared', (), {})()",
        f"{PROBLEM}::test_threads_have_e_steps_of_their_own",
    ),
    (
        "problem: other rows are bound anew",
        "problem.py",
        "return Problem(self.model, rows, bound=self.bound, kernels=self.kernels, budget=budget)",
        "return Problem(self.model, rows, kernels=self.kernels, budget=budget)",
        f"{PROBLEM}::test_rows_that_are_looked_at_have_e_steps_of_their_own[sem-vr]",
    ),
    (
        "run: counts of an earlier run",
        "engine/expectation.py",
        "self.evaluations, self.memory_dtype, self.allocate = 0, np.dtype(memory_dtype), allocate",
        "self.memory_dtype, self.allocate = np.dtype(memory_dtype), allocate",
        f"{PROBLEM}::test_runs_on_one_problem_are_those_on_the_data",
    ),
    (
        "run: Ctrl-C breaks off a callback's pass",
        "engine/expectation.py",
        "            self._between_blocks = before\n",
        "            pass\n",
        f"{PROBLEM}::test_passes_of_a_callback_are_not_broken_off",
    ),
    (
        "run: a resumed run records its first iterate again",
        "recording.py",
        " and k != self.last",
        "",
        "tests/checkpoints/test_run.py",
    ),
    (
        "mixture: threads share the last M-step",
        "models/gaussian_components.py",
        "field(default_factory=threading.local, repr=False)",
        "field(default_factory=type('Shared', (), {}), repr=False)",
        f"{PROBLEM}::test_the_last_m_step_is_of_its_thread",
    ),
    (
        "budget: a memory takes what is reserved",
        "budget.py",
        "size + self.reserved > self.limit",
        "size > self.limit",
        "tests/test_stored_runs.py::test_what_is_remembered_may_be_in_a_file",
    ),
]
