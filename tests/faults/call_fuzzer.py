"""Odd calls by the thousand: ``python tests/faults/call_fuzzer.py --first 0 --count 1000``.

Call number k is made from seed k alone. What it does must be a finite, sound result, or one clear sentence as
ValueError or TypeError, within ten seconds, with no other warnings than the library's and scikit-learn's own.
Each class of findings gets one line, with the number of a call that shows it; ``--show 17`` does call 17.
"""

from __future__ import annotations

import argparse
import linecache
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":  # as a script
    sys.path[:0] = [str(Path(__file__).parents[1] / "_support"), str(Path(__file__).parents[1])]
from faults.watched import run_cases

SLOW = 10.0
"""Seconds that a call may take when it is done again: the first time it may compile."""
GIVEN_UP = 300.0
"""Seconds after which a call hangs."""
MEMORY = 8 << 30


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
    from swiftem.fit.selection import Selection

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
    """Do one call; return what was wrong, the call in words, and whether it gave a result."""
    from faults.odd_calls import make_call

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


def judge_number(number: int) -> tuple[str, str, bool]:
    """Do call ``number``, again where it was slow; return what :func:`judge` does."""
    from faults.odd_arguments import Draw

    for _ in range(2):
        began = time.process_time()
        wrong, words, returned = judge(Draw(number))
        if wrong or time.process_time() - began <= SLOW:
            return wrong, words, returned
    return f"slow: {words.partition('(')[0]}", words, returned


def campaign(first: int, count: int, seconds: float) -> tuple[int, int, list[Finding]]:
    """Return how many calls were done in children, how many gave a result, and what went wrong."""
    end, done, returned, found = time.monotonic() + seconds, 0, 0, list[Finding]()

    def numbers() -> Iterator[int]:
        yield from (number for number in range(first, first + count) if time.monotonic() < end)

    for outcome in run_cases("faults.call_fuzzer:judge_number", numbers(), MEMORY, GIVEN_UP):
        done += 1
        if outcome.kind != "returned":
            found.append(Finding(outcome.case, f"{outcome.kind} {outcome.what} {outcome.where}", ""))
            continue
        wrong, words, gave = outcome.value
        returned += gave
        if wrong:
            found.append(Finding(outcome.case, wrong, words))
    return done, returned, found


def by_class(found: list[Finding]) -> list[str]:
    """Return one line for each class of findings, the most frequent first."""
    classes: dict[str, list[Finding]] = {}
    for finding in found:
        classes.setdefault(finding.kind, []).append(finding)
    ordered = sorted(classes.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"{len(all_)} x {kind} (call {all_[0].number}: {all_[0].words})" for kind, all_ in ordered]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--show", type=int)
    given = parser.parse_args()
    if given.show is not None:
        from faults.odd_arguments import Draw
        from faults.odd_calls import make_call

        call = make_call(Draw(given.show))
        print(call.words)
        print(call.do())
    else:
        done, returned, found = campaign(given.first, given.count, given.seconds)
        print(f"{done} calls, {returned} results, {len(found)} findings.", *by_class(found), sep="\n")


if __name__ == "__main__":
    main()
