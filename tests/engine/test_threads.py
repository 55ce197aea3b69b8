"""Settings of threads: limits that overlap, and forked processes."""

import os
import subprocess
import sys
import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from swiftem.engine.threads import one_thread_blas


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
from swiftem.engine.threads import one_thread_blas
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
