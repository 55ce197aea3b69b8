"""Ctrl-C ends a run after the iteration under way, and the run can be resumed."""

import os
import signal
import sys
import threading
from importlib import import_module
from time import monotonic, sleep

import helpers
import pytest
from helpers import NAMES, Hooked, assert_same_result, make_method

from swiftem import methods
from swiftem.core.loop import DeferredInterrupt
from swiftem.core.process import AGAIN, AfterImports

N_ITER = 20
every_method = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def ctrl_c_stays_here():
    """Python's own handler before each test; after it, whatever happened, pytest's again."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def ctrl_c_from_a_second_thread():
    thread = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
    thread.start()
    thread.join()


def keyboard_interrupt():
    raise KeyboardInterrupt


def run(problem, method, **options):
    """Run; an interruption that escapes is a failed test, not the end of the test run."""
    try:
        return problem.run(method, **options)
    except KeyboardInterrupt:
        pytest.fail("KeyboardInterrupt came out of run")
    finally:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def example(name):
    """Epochs of sem-vr end within the run, and full passes have several blocks."""
    return helpers.mixture(5_000), make_method(name, step_size=0.3, batch_size=3, epoch_length=4)


def assert_goes_on(problem, method, interrupted, path=None, kernels="auto"):
    rest = N_ITER - interrupted.n_iter
    resumed = run(
        problem,
        method,
        theta0=interrupted.theta,
        s0=interrupted.s,
        state=interrupted.state,
        n_iter=rest,
        record_every=2,
        kernels=kernels,
    )
    whole = run(problem, method, n_iter=N_ITER, seed=1, record_every=2, kernels=kernels)
    assert_same_result(resumed, whole)
    assert (resumed.status, resumed.n_iter) == ("completed", N_ITER)
    if path is not None:
        assert [it.k for it in path + resumed.path] == [it.k for it in whole.path]


@every_method
@pytest.mark.parametrize("press", [ctrl_c, ctrl_c_from_a_second_thread, keyboard_interrupt])
def test_from_a_callback(name, press):
    problem, method = example(name)

    def callback(iterate):
        if iterate.k == 6:
            press()

    result = run(problem, method, n_iter=N_ITER, seed=1, record_every=2, callback=callback)
    assert (result.status, result.n_iter) == ("interrupted", 6)
    assert_goes_on(problem, method, result, path=result.path)


FUNCTIONS = ("posterior", "statistics", "in_domain", "m_step")
INSIDE = [(ctrl_c, function) for function in FUNCTIONS]
# A KeyboardInterrupt that is not held back, as of another handler: memory is written after the E-steps.
INSIDE += [(keyboard_interrupt, function) for function in FUNCTIONS[:2]]


@every_method
@pytest.mark.parametrize(("press", "function"), INSIDE)
def test_inside_a_function_of_the_model(name, function, press):
    """Memory, statistics and counts are those of a complete iteration, wherever the key was pressed."""
    problem, method = example(name)
    now = 0

    def hook(called, call):
        nonlocal now
        if called == function and call == (9 if called in ("posterior", "statistics") else 7):
            now = call
            press()

    hooked = problem._replace(model=Hooked(problem.model, hook))
    result = run(hooked, method, n_iter=N_ITER, seed=1)
    assert now > 0
    assert result.status == "interrupted"
    assert 0 < result.n_iter < N_ITER
    assert_goes_on(problem, method, result, kernels="reference")


def test_a_full_pass_is_broken_off_between_blocks():
    """The iteration it belongs to has then not happened."""
    problem, calls = helpers.mixture(30_000), []

    def hook(function, call):
        calls.append(function)
        if function == "posterior" and call == 11:  # 8 blocks a pass: the third of iteration 0
            ctrl_c()

    result = run(problem._replace(model=Hooked(problem.model, hook)), methods.EM(), n_iter=5)
    assert (result.status, result.n_iter, result.passes) == ("interrupted", 0, 1.0)
    assert calls.count("posterior") == 11


@every_method
@pytest.mark.parametrize("has_s0", [False, True])
def test_in_the_first_pass(name, has_s0):
    """There is only θ^(0) so far; the state has the seed of the draws, so that the run can go on."""
    problem, method = example(name)
    given = {"s0": run(problem, methods.EM(), n_iter=1).s} if has_s0 else {}
    hooked = problem._replace(
        model=Hooked(problem.model, lambda function, call: ctrl_c() if call == 2 else None), theta0=None
    )
    result = run(hooked, method, n_iter=N_ITER, seed=1, **given)
    assert (result.status, result.n_iter, result.path) == ("interrupted", 0, [])
    start = {"theta0": result.theta, "s0": result.s, "state": result.state}
    again = run(hooked, method, n_iter=N_ITER, **start)
    assert again.status == "interrupted"
    resumed = run(problem, method, n_iter=N_ITER, **start)
    assert_same_result(resumed, run(problem, method, theta0=None, n_iter=N_ITER, seed=1, **given))


@pytest.mark.parametrize("stop", [False, True], ids=["completed", "stopped"])
def test_in_the_last_iteration(stop):
    """The key must not be swallowed: a caller that loops over runs looks at the status."""
    problem = helpers.mixture()

    def callback(iterate):
        if iterate.k == 2:
            ctrl_c()
        return stop and iterate.k == 2

    result = run(problem, methods.EM(), n_iter=5 if stop else 2, callback=callback)
    assert (result.n_iter, result.status) == (2, "interrupted")


def test_run_in_a_second_thread():
    """Signals are the main thread's; a KeyboardInterrupt from a callback still ends the run."""
    problem, method = example("fiem")
    results = []

    def callback(iterate):
        if iterate.k == 6:
            raise KeyboardInterrupt

    def work():
        results.append(problem.run(method, n_iter=N_ITER, seed=1, record_every=2, callback=callback))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (result,) = results
    assert (result.status, result.n_iter) == ("interrupted", 6)
    assert_goes_on(problem, method, result, path=result.path)


def test_handler_is_restored_after_an_error():
    def callback(iterate):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        helpers.mixture().run(methods.EM(), n_iter=1, callback=callback)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_check_raises_only_after_the_key():
    with DeferredInterrupt() as interrupt:
        interrupt.check()
        ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()


def test_a_second_key_raises_at_once():
    with DeferredInterrupt():
        ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()


def test_one_key_is_for_nested_contexts():
    with DeferredInterrupt() as outer:
        with DeferredInterrupt() as inner:
            ctrl_c()
            with pytest.raises(KeyboardInterrupt):
                inner.check()
        with pytest.raises(KeyboardInterrupt):
            outer.check()


def test_another_handler_is_left_alone():
    pressed = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    handler = signal.getsignal(signal.SIGINT)
    with DeferredInterrupt() as interrupt:
        assert signal.getsignal(signal.SIGINT) is handler
        ctrl_c()
        interrupt.check()
    assert pressed == [signal.SIGINT]


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "the_program_is_imported"])
def test_an_import_is_complete_before_the_key_counts(inside, tmp_path, monkeypatch):
    """Extension modules turn KeyboardInterrupt into errors of other types."""
    (tmp_path / "odd_module.py").write_text(
        "import signal\n"
        "try:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt:\n"
        "    raise SystemError('initialization failed') from None\n"
        "complete = True\n"
    )
    (tmp_path / "odd_program.py").write_text("import test_interrupt\ntest_interrupt.import_and_wait()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "test_interrupt", sys.modules[__name__])
    with pytest.raises(KeyboardInterrupt):
        import_module("odd_program") if inside else import_and_wait()
    assert sys.modules.pop("odd_module").complete


def import_and_wait():
    """Import a module in which the key is pressed, and wait for its effect."""
    signal.signal(signal.SIGINT, AfterImports())
    began = monotonic()
    try:
        import_module("odd_module")
        sleep(10.0)
    finally:  # if it never counts, it comes again and again
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sleep(5 * AGAIN)
        assert monotonic() - began < 9.0, "the key did not wake the thread"


def test_runs_defer_the_handler_of_the_command_line():
    signal.signal(signal.SIGINT, AfterImports())
    try:
        test_check_raises_only_after_the_key()
    except KeyboardInterrupt:
        pytest.fail("KeyboardInterrupt came out of the context")
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
