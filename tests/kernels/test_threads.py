"""Settings of threads: limits that overlap, and forked processes."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import swiftem
from swiftem import methods, models
from swiftem.kernels.threads import in_order, one_thread_blas, set_threads


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_limits_that_overlap_in_two_threads_leave_blas_as_it_was():
    with one_thread_blas():
        pass  # SciPy's BLAS is loaded
    with threadpool_limits(2, user_api="blas"):
        entered, leave = threading.Event(), threading.Event()

        def other():
            with one_thread_blas():
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with one_thread_blas():
            assert blas_threads() == {1}
            thread.start()
            assert entered.wait(10)
        assert blas_threads() == {1}  # the other thread still needs it
        leave.set()
        thread.join()
        assert blas_threads() == {2}


@pytest.fixture
def three_threads():
    set_threads(3)
    yield
    set_threads(None)


def test_set_threads_during_a_run_of_another_thread(three_threads):
    """The thread that reads the blocks changes the number of threads in the middle of each pass."""
    rows = np.random.default_rng(0).normal(size=(60_000, 2))

    def blocks():
        for number, part in enumerate(np.array_split(rows, 12)):
            set_threads(2 + number % 2)
            yield part

    model = models.GaussianMixtureModel(2, covariance="full")
    found = swiftem.run(model, blocks, methods.EM(), n_iter=2, seed=0)
    set_threads(3)
    expected = swiftem.run(model, lambda: iter(np.array_split(rows, 12)), methods.EM(), n_iter=2, seed=0)
    np.testing.assert_array_equal(found.theta.means, expected.theta.means)


def test_the_caller_does_items_of_a_list_and_results_keep_their_order(three_threads):
    met = threading.Barrier(3, timeout=10)  # only three threads at once pass it

    def item(number):
        if number < 3:
            met.wait()
        return number, threading.current_thread()

    found = list(in_order(item, [(number,) for number in range(20)]))
    assert [number for number, _ in found] == list(range(20))
    assert threading.main_thread() in {thread for _, thread in found}
    assert len({thread for _, thread in found}) == 3


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_work_and_is_that_of_the_first_item(three_threads, error):
    begun, raised = [], threading.Event()

    def item(number):
        begun.append(number)
        is_ours = threading.current_thread() is threading.main_thread()
        if number >= 5 and (is_ours or error is ValueError):
            raised.set()
            raise error(f"item {number}")
        if number >= 5:  # the others leave some items to the caller
            raised.wait(10)

    with pytest.raises(error) as caught:
        for _ in in_order(item, [(number,) for number in range(10_000)]):
            pass
    assert error is KeyboardInterrupt or str(caught.value) == "item 5"
    ended = len(begun)
    assert error is not KeyboardInterrupt or ended < 10_000
    assert list(in_order(item, [(0,), (1,)])) == [None, None]  # the threads are there again
    assert len(begun) == ended + 2


def test_a_caller_that_leaves_waits_for_the_work_that_has_begun(three_threads):
    done, running = [], threading.Event()

    def item(number):
        running.wait(0.05)
        done.append(number)

    results = in_order(item, [(number,) for number in range(100)])
    next(results)
    results.close()
    ended = len(done)
    running.wait(0.2)
    assert len(done) == ended < 100


FORK = """
import os, sys, time
import numpy as np, swiftem
X = np.random.default_rng(0).normal(size=(400, 2))
mixture = swiftem.GaussianMixture(3, max_iter=2, tol=100.0, random_state=0)
fit = lambda: [mixture.set_params(init_params=start).fit(X).means_ for start in ("kmeans", "k-means++")]
before = fit()
child = os.fork()
if not child:
    os._exit(0 if np.array_equal(fit(), before) else 1)
for _ in range(200):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.05)
os.kill(child, 9)
sys.exit("the child hangs")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX systems fork")
def test_a_forked_process_fits_after_its_parent_has():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


BLAS_IN_FORK = """
import os, sys, threading
from threadpoolctl import threadpool_info, threadpool_limits
from swiftem.kernels.threads import in_order, one_thread_blas, set_threads
threads = lambda: {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
with one_thread_blas():
    pass
threadpool_limits(2, user_api="blas")
entered, leave = threading.Event(), threading.Event()

def other():
    with one_thread_blas():
        entered.set()
        leave.wait(10)

thread = threading.Thread(target=other)
thread.start()
entered.wait(10)
child = os.fork()
if not child:
    found = [threads()]
    with one_thread_blas():
        found.append(threads())
    found.append(threads())
    os._exit(0 if found == [{2}, {1}, {2}] else 1)
leave.set()
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX systems fork")
def test_a_process_that_is_forked_during_a_fit_has_its_threads_back():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BLAS_IN_FORK], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
