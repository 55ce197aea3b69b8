"""Model files that somebody changed, in their bytes, header or arrays; and what is asked of them."""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import damage
import numpy as np

import swiftem
from swiftem.core.state_file import DIGEST_SIZE, read_tree, write_tree
from swiftem.fit.model_file import FORMAT

ROWS = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([[0.0], [4.0]], 60, axis=0)
COUNTS = np.random.default_rng(0).poisson(0.6, size=(40, 12)).astype(float)


def unpack(content: bytes) -> Any:
    """Return the content of a file."""
    return read_tree(io.BytesIO(content), FORMAT)[0]


def pack(parts: Any) -> bytes:
    """Return a file with this content: with the right hash, whatever is in it."""
    stream = io.BytesIO()
    write_tree(stream, FORMAT, parts)
    return stream.getvalue()


def with_array(content: bytes, name: str, change: Callable[[Any], Any]) -> bytes:
    """Return a file in which one array is another."""
    parts = unpack(content)
    parts["arrays"][name] = np.asarray(change(parts["arrays"][name]))
    return pack(parts)


def with_header(content: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a file whose header, kind or versions were changed in place."""
    parts = unpack(content)
    change(parts)
    return pack(parts)


def with_line(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a file in which the line of names and shapes is another."""
    first, line, rest = content.split(b"\n", 2)
    changed = b"\n".join((first, change(line), rest[:-DIGEST_SIZE]))
    return changed + blake2b(changed, digest_size=DIGEST_SIZE).digest()


def make_models(folder: Path) -> None:
    """Write the models that are changed: named by their class."""
    prior = swiftem.models.NormalInverseWishart(4.0, scale=[1.0, 2.0], mean_precision=0.1, concentration=2.0)
    method = swiftem.methods.OnlineEM(swiftem.schedules.power(1.0, 0.6), 20)
    means = [[0.0, 0.0], [4.0, 4.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ("full", "tied", "diag", "spherical"):
            mixture = swiftem.GaussianMixture(2, covariance_type=kind, random_state=0).fit(ROWS)
            mixture.save(folder / f"GaussianMixture-{kind}")
            mixture.partial_fit(ROWS[:50]).save(folder / f"GaussianMixture-{kind}-stream")
        mixture = swiftem.GaussianMixture(2, prior=prior, method=method, means_init=means)
        mixture.fit(ROWS.astype(np.float32)).save(folder / "GaussianMixture-prior")
        swiftem.GaussianMixture.from_parameters(
            [0.5, 0.5], means, [1.0, 2.0], covariance_type="spherical"
        ).save(folder / "GaussianMixture-given")
        topics = swiftem.PLSA(3, random_state=0, max_iter=10).fit(COUNTS)
        topics.save(folder / "PLSA-fit")
        topics.partial_fit(COUNTS[:20]).save(folder / "PLSA-stream")
        strengths = {"alpha": [0.1, 0.2, 0.3], "beta": np.linspace(0.01, 0.1, 12)}
        topics = swiftem.PLSA(3, random_state=0, method="sem-vr", max_iter=10, **strengths).fit(COUNTS)
        topics.feature_names_in_ = np.array([f"w{v}" for v in range(12)], dtype=object)
        topics.save(folder / "PLSA-strengths")


# Changes of the parts of a file. Each takes a file, and returns another.


def exchange_parts(content: bytes, rng: random.Random) -> bytes:
    parts = unpack(content)
    arrays = parts["arrays"]
    one, other = rng.sample(sorted(arrays), 2)
    how = rng.randrange(4)
    if how == 0:
        arrays[one], arrays[other] = arrays[other], arrays[one]
    elif how == 1:
        arrays[one] = arrays[other]
    elif how == 2:
        del arrays[one]
    else:
        arrays[one] = arrays[one].tolist()
    return pack(parts)


ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2, 13, 2**63, -(2**70), 10**300, 0.5, 1e-320, 1e308, float("nan"), float("-inf"), "",
    "auto", "full", "\ud800", "a\nb", "x" * 9999, [], {}, [0], [[0.0]], [None] * 5, {"a": 1}, ["\ud800"] * 12,
    [1.0, "2"], [[1, 2, 3, 4, 5, "em"]],
)  # fmt: skip
"""What a header may have in the place of something else."""


def change_header(content: bytes, rng: random.Random) -> bytes:
    """Replace, remove or add an entry anywhere in the header."""

    def change(full: dict[str, Any]) -> None:
        place: Any = full if rng.random() < 0.1 else full["header"]
        keys = list(place)
        while keys:
            key = rng.choice(keys)
            inner = place[key]
            if not (isinstance(inner, dict | list) and inner and rng.random() < 0.7):
                break
            place, keys = inner, list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        how = rng.random()
        if how < 0.75 and key not in (
            "n_init",
            "max_iter",
        ):  # larger numbers ask for more work, and may get it
            place[key] = rng.choice(ODD)
        elif how < 0.9:
            del place[key]
        elif isinstance(place, dict):
            place[rng.choice(("checkpoint", "scratch", "resume", "x", "format"))] = rng.choice(ODD)
        else:
            place.append(rng.choice(ODD))

    return with_header(content, change)


def other_text(content: bytes, rng: random.Random) -> bytes:
    """Put text that is hard to read in the place of the file's."""
    odd = [b"[" * 100_000, b'{"a":' * 50_000, b"[" + b"{}," * 400_000 + b"{}]", b"1" * 5000, b"\xff\xfe", b""]
    return with_line(content, lambda line: rng.choice((*odd, line * 2, line.replace(b"1", b"1e999"))))


VALUES = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 2.0, 1e-320, 1e-30, 1e30, 1e151, 1e308)
DTYPES = ("f2", "f4", ">f4", "f8", ">f8", "g", "c16", "i8", "i1", "?", "S8", "U3", "M8[s]", "V8")


def change_array(content: bytes, rng: random.Random) -> bytes:
    """Change values, type, shape or layout of an array."""

    def values(array: Any) -> Any:
        array = np.array(array, dtype=float)
        flat = array.reshape(-1)
        if flat.size:
            flat[rng.randrange(flat.size) if rng.random() < 0.6 else slice(None)] = rng.choice(VALUES)
        return array

    def shape(array: Any) -> Any:
        axis = rng.randrange(max(1, array.ndim))
        changes: list[Callable[[], Any]] = [
            lambda: array.T,
            array.ravel,
            lambda: array[None],
            lambda: np.zeros(tuple(rng.randrange(5) for _ in range(rng.randrange(5)))),
            lambda: np.repeat(np.atleast_1d(array), 2, axis),
            lambda: np.concatenate([array, array.take([0], axis)]),
            lambda: array.take(range(rng.randrange(array.shape[axis] + 1)), axis),
        ]
        return rng.choice(changes)()

    def dtype(array: Any) -> Any:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return np.asfortranarray(array) if rng.random() < 0.2 else array.astype(rng.choice(DTYPES))

    name = rng.choice(sorted(unpack(content)["arrays"]))
    return with_array(content, name, rng.choice((values, values, shape, dtype)))


def change_line(content: bytes, rng: random.Random) -> bytes:
    """Change the text that says what the arrays are."""
    change = rng.choice((damage.flip, damage.number, damage.separators))
    return with_line(content, lambda line: change(line, rng))


PARTS = (exchange_parts, change_header, change_header, other_text, change_array, change_array, change_line)


def changed_model(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return what was done, and the file: one or two changes of parts, or one of bytes."""
    chosen = [rng.choice(damage.ANY)] if rng.random() < 0.2 else rng.choices(PARTS, k=rng.choice((1, 1, 2)))
    for change in chosen:
        try:
            content = change(content, rng)
        except (KeyError, ValueError, IndexError, TypeError, AttributeError, RecursionError):
            break  # a file that an earlier change left cannot be changed again
    return "+".join(change.__name__ for change in chosen), content


# What is asked of a model that was loaded.

ASKED = {
    **{
        name: lambda model, X, name=name: getattr(model, name)(X)
        for name in (
            *("predict", "predict_proba", "score_samples", "bic", "icl", "score"),
            *("transform", "perplexity", "coherence"),
        )
    },
    **{
        name: lambda model, X, name=name: getattr(model, name)()
        for name in ("full_covariances", "topic_prevalence", "sorted_topics")
    },
    "history_": lambda model, X: len(model.history_.table()["method"]),
    "sample": lambda model, X: model.sample(5)[0],
    "marginal": lambda model, X: model.marginal([0]).means_,
    "to_sklearn": lambda model, X: model.to_sklearn().predict(X),
    "top_words": lambda model, X: [len(words) for words in model.top_words(n=3)],
    "to_pyldavis": lambda model, X: model.to_pyldavis(X)["doc_topic_dists"],
    "partial_fit": lambda model, X: model.partial_fit(X).partial_fit(X[:7]).score(X),
}
"""Calls by name; a model is asked those that it has."""


def ask(model: Any) -> str:
    """Return what went wrong when everything was asked of a model; empty if all answers are finite."""
    is_mixture = isinstance(model, swiftem.GaussianMixture)
    X = np.resize(ROWS if is_mixture else COUNTS, (40, model.n_features_in_))
    asked = {name: answer for name, answer in ASKED.items() if hasattr(model, name)}
    if not is_mixture:
        asked.pop("to_sklearn", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, answer in asked.items():
            try:
                found = np.asarray(answer(model, X), dtype=float)
            except Exception as error:
                return f"{name}: {type(error).__name__} {str(error)[:80]}"
            if not np.isfinite(found).all():
                return f"{name}: not finite"
    return ""
