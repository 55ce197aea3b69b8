"""Odd calls by the thousand, in a child process: ``python tests/faults/call_fuzzer.py --first 0 --count 1000``.

Call number k is made from seed k alone. What it does must be a finite, sound result, or one clear sentence as
ValueError or TypeError, within ten seconds, with no other warnings than the library's and scikit-learn's own.
Each class of findings gets one line, with the number of a call that shows it: ``--show 17`` does call 17 alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import linecache
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SLOW = 10.0
"""Seconds that a call may take when it is done again: the first time it may compile."""
GIVEN_UP = 900.0
"""Seconds without a word of the child after which it hangs."""
MEMORY = 12 << 30


class Finding(NamedTuple):
    """A call that did what it must not: its number, the class of what it did, and the call in words."""

    number: int
    kind: str
    words: str


def problem_of(error: Exception) -> str:
    """Return why an exception is no refusal by a sentence; nothing where it is one."""
    import numpy as np

    frames = traceback.extract_tb(error.__traceback__)
    frame = frames[-1]
    place = f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno}"
    message = str(error)
    if isinstance(error, OSError) and message.endswith("."):
        return ""  # the system refuses: a file that is not there
    if not isinstance(error, ValueError | TypeError) or isinstance(error, np.linalg.LinAlgError):
        return f"{type(error).__name__} at {place}: {message[:80]}"
    ours = "/swiftem/" in frame.filename
    if not ours:  # what scikit-learn checks for the library is said in its words
        where = [each.filename for each in frames if "/faults/" not in each.filename]
        last = max((number for number, name in enumerate(where) if "/swiftem/" in name), default=-1)
        if where[last + 1 :] and "/sklearn/" in where[last + 1]:
            return ""
    raised = linecache.getline(frame.filename, frame.lineno or 0).lstrip().startswith("raise")
    if not (ours and raised):
        return f"{type(error).__name__} that nobody raised, at {place}: {message[:80]}"
    if (
        "\n" in message
        or len(message) < 15
        or (message[-1] not in ".?" and "Expected n_samples" not in message)
    ):
        return f"no sentence, at {place}: {message[:80]!r}"
    return ""


def problem_with(value: Any) -> str:
    """Return what is not sound in a result; nothing where all is."""
    import numpy as np
    import scipy.sparse as sp

    import swiftem
    from swiftem.estimators.selection import Selection

    if isinstance(value, swiftem.GaussianMixture):
        return problem_with_mixture(value)
    if isinstance(value, swiftem.PLSA):
        return problem_with_topics(value)
    if isinstance(value, Selection):
        return problem_with(value.best) or next(filter(None, map(problem_with, value.models.values())), "")
    if isinstance(value, swiftem.Result):
        return problem_with(value.theta) or ("" if value.status == "rejected" else problem_with(value.s))
    if isinstance(value, dict):
        return next(filter(None, map(problem_with, value.values())), "")
    if isinstance(value, tuple | list):
        return next(filter(None, map(problem_with, value)), "")
    if sp.issparse(value):
        return problem_with(value.data)
    if isinstance(value, float | np.floating | np.ndarray) and np.asarray(value).dtype.kind == "f":
        return "" if np.isfinite(value).all() else "a number that is not finite"
    return ""


def problem_with_mixture(mixture: Any) -> str:
    import numpy as np

    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        if not np.isfinite(getattr(mixture, name)).all():
            return f"{name} not finite"
    if (mixture.weights_ < 0).any() or abs(float(mixture.weights_.sum(dtype=float)) - 1.0) > 1e-4:
        return "weights_ that do not sum to 1"
    if np.isnan(mixture.lower_bound_) or mixture.lower_bound_ == np.inf:
        return f"lower_bound_ {mixture.lower_bound_}"
    if mixture.lower_bound_ == -np.inf and mixture.n_iter_ > 0:
        return "lower_bound_ -inf after a pass"
    return ""


def problem_with_topics(topics: Any) -> str:
    import numpy as np

    for name in ("components_", "doc_topic_"):
        value = getattr(topics, name)
        if not np.isfinite(value).all() or (value < 0).any():
            return f"{name} not finite"
        if value.size and np.abs(value.sum(axis=1) - 1.0).max() > 1e-6:
            return f"{name} that does not sum to 1"
    for name in ("topic_counts_", "log_likelihood_", "stationarity_"):
        if hasattr(topics, name) and not np.isfinite(getattr(topics, name)).all():
            return f"{name} not finite"
    return ""


def is_own(warning: warnings.WarningMessage) -> bool:
    """Tell whether a warning is one of the library's or scikit-learn's, for the user."""
    if issubclass(warning.category, RuntimeWarning | DeprecationWarning | FutureWarning):
        return False
    return issubclass(warning.category, UserWarning) and len(str(warning.message)) > 15


def judge(draw: Any) -> tuple[str, str, bool]:
    """Do one call; return what was wrong, if something was, the call in words, and whether it gave a result."""
    from odd_calls import make_call

    call = make_call(draw)
    returned = False
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = call.do()
            returned = True
            wrong = problem_with(result)
            wrong = wrong and f"unsound: {wrong}"
        except Exception as error:
            wrong = problem_of(error)
            if "MemoryError" in wrong:
                wrong = wrong.partition(":")[0]
    strange = [warning for warning in heard if not is_own(warning)]
    if strange and not wrong:
        first = strange[0]
        place = f"{'/'.join(Path(first.filename).parts[-3:])}:{first.lineno}"
        wrong = f"{first.category.__name__} at {place}: {str(first.message)[:80]}"
    return wrong, call.words, returned


def child(first: int, count: int, seconds: float) -> None:
    """Do calls one after another, and write a line before each and after one that went wrong."""
    from odd_arguments import Draw

    end = time.monotonic() + seconds
    for number in range(first, first + count):
        if time.monotonic() > end:
            break
        print(json.dumps({"begin": number}), flush=True)
        began = time.monotonic()
        wrong, words, returned = judge(Draw(number))
        if not wrong and time.monotonic() - began > SLOW:
            began = time.monotonic()
            wrong, words, returned = judge(Draw(number))
            if time.monotonic() - began > SLOW:
                wrong = f"slow: {words.partition('(')[0]}"
        if wrong:
            print(json.dumps({"wrong": wrong, "number": number, "words": words}), flush=True)
        elif returned:
            print(json.dumps({"returned": number}), flush=True)


def campaign(first: int, count: int, seconds: float) -> tuple[int, int, list[Finding]]:
    """Return how many calls were done in children, how many gave a result, and what went wrong.

    A child that dies is followed by another.
    """
    returned = 0
    end, done, found, number = time.monotonic() + seconds, 0, list[Finding](), first
    with tempfile.TemporaryDirectory() as folder:
        while number < first + count and time.monotonic() < end:
            arguments = [
                "--first",
                number,
                "--count",
                first + count - number,
                "--seconds",
                end - time.monotonic(),
            ]
            last, status = -1, 0
            for line, status in _lines([sys.executable, __file__, "--child", *map(str, arguments)], folder):
                if "begin" in line:
                    last, done = line["begin"], done + 1
                returned += "returned" in line
                if "begin" in line:
                    continue
                if "wrong" in line:
                    found.append(Finding(line["number"], line["wrong"], line["words"]))
            if status == 0:
                break
            found.append(Finding(last, f"the process ended with status {status}", line.get("said", "")))
            number = last + 1
            if last < 0:
                break
    return done, returned, found


def _lines(command: list[str], folder: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield what a child says, line by line, and at the end how it ended; −9 where it had to be ended."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # noqa: E731
    package = importlib.util.find_spec("swiftem")
    assert package is not None
    assert package.origin is not None
    # The same package as here, also from another folder.
    environment = os.environ | {"PYTHONPATH": str(Path(package.origin).resolve().parents[1])}
    with (
        open(os.path.join(folder, "errors"), "w+") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=limit, cwd=folder,
            env=environment,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        timer = threading.Timer(GIVEN_UP, process.kill)
        for line in process.stdout:
            timer.cancel()
            timer = threading.Timer(GIVEN_UP, process.kill)
            timer.start()
            try:
                yield json.loads(line), 0
            except json.JSONDecodeError:  # what the library prints
                continue
        timer.cancel()
        status = process.wait()
        errors.seek(0)
        yield {"said": errors.read()[-300:]}, status


def by_class(found: list[Finding]) -> list[str]:
    """Return one line for each class of findings, the most frequent first."""
    classes: dict[str, list[Finding]] = {}
    for finding in found:
        classes.setdefault(finding.kind, []).append(finding)
    ordered = sorted(classes.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"{len(all_)} x {kind} (call {all_[0].number}: {all_[0].words})" for kind, all_ in ordered]


def by_hypothesis(examples: int) -> None:
    """Let Hypothesis choose calls, the same ones each time; it fails with a small example."""
    from hypothesis import HealthCheck, Phase, given, settings, strategies
    from odd_arguments import HypothesisDraw

    @settings(
        max_examples=examples, derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(strategies.data())
    def check(data: Any) -> None:
        wrong, words, _ = judge(HypothesisDraw(data))
        assert not wrong, f"{wrong} by {words}"

    check()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--hypothesis", type=int, default=0)
    parser.add_argument("--show", type=int)
    given = parser.parse_args()
    if given.show is not None:
        from odd_arguments import Draw
        from odd_calls import make_call

        call = make_call(Draw(given.show))
        print(call.words)
        print(call.do())
    elif given.hypothesis:
        by_hypothesis(given.hypothesis)
    elif given.child:
        child(given.first, given.count, given.seconds)
    else:
        done, returned, found = campaign(given.first, given.count, given.seconds)
        print(f"{done} calls, {returned} results, {len(found)} findings.", *by_class(found), sep="\n")


if __name__ == "__main__":
    main()
