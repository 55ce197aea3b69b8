"""What must not come of an odd call.

Call number k is made from seed k alone. What it does must be a finite, sound result, or one clear sentence as
ValueError or TypeError, within ten seconds, with no other warnings than the library's and scikit-learn's own.
"""

from __future__ import annotations

import linecache
import time
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from faults.watched import Verdict

SLOW = 10.0
"""Seconds that a call may take when it is done again: the first time it may compile."""


def problem_of(error: Exception) -> str:
    """Return why an exception is no refusal by a sentence; nothing where it is one."""
    import numpy as np

    frames = traceback.extract_tb(error.__traceback__)
    frame = frames[-1]
    place = place_of(frame.filename, frame.lineno)
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


def not_finite(estimator: Any, names: Iterable[str]) -> str:
    """Return which of an estimator's attributes has a number that is not finite, if any."""
    import numpy as np

    found = (name for name in names if not np.isfinite(getattr(estimator, name, 0.0)).all())
    return next((f"{name} not finite" for name in found), "")


def problem_with_mixture(mixture: Any) -> str:
    bound = mixture.lower_bound_
    if (mixture.weights_ < 0).any() or abs(float(mixture.weights_.sum(dtype=float)) - 1.0) > 1e-4:
        return "weights_ that do not sum to 1"
    if bound != bound or bound == float("inf") or (bound == -float("inf") and mixture.n_iter_ > 0):
        return f"lower_bound_ {bound} after {mixture.n_iter_} passes"
    return not_finite(mixture, ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"))


def problem_with_topics(topics: Any) -> str:
    import numpy as np

    for name in ("components_", "doc_topic_"):
        value = getattr(topics, name)
        if (value < 0).any() or (value.size and np.abs(value.sum(axis=1) - 1.0).max() > 1e-6):
            return f"{name} negative, or without a sum of 1"
    return not_finite(
        topics, ("components_", "doc_topic_", "topic_counts_", "log_likelihood_", "stationarity_")
    )


def is_own(warning: warnings.WarningMessage) -> bool:
    """Tell whether a warning is one of the library's or scikit-learn's, for the user."""
    if issubclass(warning.category, RuntimeWarning | DeprecationWarning | FutureWarning):
        return False
    return issubclass(warning.category, UserWarning) and len(str(warning.message)) > 15


def place_of(file: str, line: int | None) -> str:
    return f"{'/'.join(Path(file).parts[-3:])}:{line}"


def judge(call: Any) -> tuple[str, str]:
    """Do one call; return how it ended, and what was wrong."""
    end, wrong = "returned", ""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            unsound = problem_with(call())
            wrong = unsound and f"unsound: {unsound}"
        except Exception as error:
            end, wrong = "refused", problem_of(error)
            if "MemoryError" in wrong:
                wrong = wrong.partition(":")[0]
    for warning in heard:
        if not (wrong or is_own(warning)):
            place = place_of(warning.filename, warning.lineno)
            wrong = f"{warning.category.__name__} at {place}: {str(warning.message)[:80]}"
    return end, wrong


def judge_number(number: int) -> list[Verdict]:
    """Do call ``number``, again if it was slow."""
    from faults.odd_arguments import Draw
    from faults.odd_calls import make_call

    for _ in range(2):
        draw = Draw(number)
        call, began = make_call(draw), time.process_time()
        words = "; ".join(draw.words)
        end, wrong = judge(call)
        if wrong or time.process_time() - began <= SLOW:
            return [Verdict(end, wrong, words)]
    return [Verdict(end, f"slow: {draw.words[0]}", words)]
