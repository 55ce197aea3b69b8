"""Model files that somebody changed, in their bytes, header or arrays; and what is asked of them."""

from __future__ import annotations

import io
import json
import random
import warnings
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import swiftem
from swiftem.core.state_file import DIGEST_SIZE, read_tree, write_tree
from swiftem.fit.persistence import FORMAT
from swiftem.models import NormalInverseWishart

ROWS = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([[0.0], [4.0]], 60, axis=0)
COUNTS = np.random.default_rng(0).poisson(0.6, size=(40, 12)).astype(float)
KINDS = ("full", "tied", "diag", "spherical")


def unpack(content: bytes) -> Any:
    """Return the content of a file, with the bytes of its header."""
    found, _ = read_tree(io.BytesIO(content), FORMAT)
    return found | {"header": found["header"].tobytes()}


def pack(parts: Any) -> bytes:
    """Return a file with this content: with the right hash, whatever is in it."""
    stream = io.BytesIO()
    write_tree(stream, FORMAT, parts | {"header": np.frombuffer(parts["header"], np.uint8)})
    return stream.getvalue()


def with_array(content: bytes, name: str, change: Callable[[Any], Any]) -> bytes:
    """Return a file in which one array is another."""
    parts = unpack(content)
    parts["arrays"][name] = np.asarray(change(parts["arrays"][name]))
    return pack(parts)


def with_header(content: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a file whose header, kind or versions were changed in place."""
    parts = unpack(content)
    parts["header"] = json.loads(parts["header"])
    change(parts)
    parts["header"] = json.dumps(parts.get("header")).encode()
    return pack(parts)


def with_line(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a file in which the line of names and shapes is another."""
    first, line, rest = content.split(b"\n", 2)
    changed = b"\n".join((first, change(line), rest[:-DIGEST_SIZE]))
    return changed + blake2b(changed, digest_size=DIGEST_SIZE).digest()


def make_models(folder: Path) -> None:
    """Write the models that are changed: named by their class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            mixture = swiftem.GaussianMixture(2, covariance_type=kind, random_state=0).fit(ROWS)
            mixture.save(folder / f"GaussianMixture-{kind}")
            mixture.partial_fit(ROWS[:50]).save(folder / f"GaussianMixture-{kind}-stream")
        prior = NormalInverseWishart(4.0, scale=[1.0, 2.0], mean_precision=0.1, concentration=2.0)
        method = swiftem.methods.OnlineEM(step_size=swiftem.schedules.power(1.0, 0.6))
        swiftem.GaussianMixture(
            2, prior=prior, method=method, means_init=[[0.0, 0.0], [4.0, 4.0]],
        ).fit(ROWS.astype(np.float32)).save(folder / "GaussianMixture-prior")  # fmt: skip
        swiftem.GaussianMixture.from_parameters([0.5, 0.5], [[0.0, 0.0], [4.0, 4.0]], [1.0, 2.0],
            covariance_type="spherical").save(folder / "GaussianMixture-given")  # fmt: skip
        topics = swiftem.PLSA(3, random_state=0, max_iter=10).fit(COUNTS)
        topics.save(folder / "PLSA-fit")
        topics.partial_fit(COUNTS[:20]).save(folder / "PLSA-stream")
        strengths = {"alpha": [0.1, 0.2, 0.3], "beta": np.linspace(0.01, 0.1, 12)}
        topics = swiftem.PLSA(3, random_state=0, method="sem-vr", max_iter=10, **strengths).fit(COUNTS)
        topics.feature_names_in_ = np.array([f"w{v}" for v in range(12)], dtype=object)
        topics.save(folder / "PLSA-strengths")


# Changes. Each takes a file, and returns another.


def flip(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def zeros(content: bytes, rng: random.Random) -> bytes:
    first = rng.randrange(len(content))
    length = min(len(content) - first, rng.randrange(1, 600))
    return content[:first] + bytes(length) + content[first + length :]


def noise(content: bytes, rng: random.Random) -> bytes:
    first = rng.randrange(len(content))
    return content[:first] + rng.randbytes(min(40, len(content) - first)) + content[first + 40 :]


def longer(content: bytes, rng: random.Random) -> bytes:
    return content + rng.randbytes(rng.randrange(1, 50))


def swap_sectors(content: bytes, rng: random.Random) -> bytes:
    """Exchange two pieces of 512 bytes, or of 64 where there are fewer."""
    size = 512 if len(content) >= 1024 else 64
    places = range(0, len(content) - size, size)
    if len(places) < 2:
        return cut(content, rng)
    one, other = sorted(rng.sample(places, 2))
    pieces = content[:one], content[other : other + size], content[one + size : other]
    return b"".join((*pieces, content[one : one + size], content[other + size :]))


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
    None, True, False, 0, 1, -1, 2, 3, 12, 13, 2**31, 2**63, 2**64, -(2**70), 10**300, 0.0, 0.5,
    -0.5, 1e-320, 1e308, float("nan"), float("inf"), float("-inf"), "", "x", "auto", "em", "full", "\ud800",
    "a\nb", "\x1b[31m", "x" * 9999,
    [], {}, [0], [[0.0]], [None] * 5, {"a": 1}, ["\ud800"] * 12, [1.0, "2"], [[1, 2, 3, 4, 5, "em"]],
    [[1] * 7],
)  # fmt: skip
"""What a header may have in the place of something else."""


def change_header(content: bytes, rng: random.Random) -> bytes:
    """Replace, remove or add an entry anywhere in the header."""

    def change(full: dict[str, Any]) -> None:
        place: Any = full if rng.random() < 0.1 else full["header"]
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                return
            key = rng.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
                place = place[key]
                continue
            how = rng.random()
            if key in ("n_init", "max_iter") and how < 0.75:
                return  # a larger number asks for more work, and may get it
            if how < 0.75:
                place[key] = rng.choice(ODD)
            elif how < 0.9:
                del place[key]
            elif isinstance(place, dict):
                place[rng.choice(("checkpoint", "scratch", "resume", "x", "format"))] = rng.choice(ODD)
            else:
                place.append(rng.choice(ODD))
            return

    return with_header(content, change)


def text_header(content: bytes, rng: random.Random) -> bytes:
    """Put a header that is hard to read in the place of the header."""
    parts = unpack(content)
    parts["header"] = rng.choice(
        (b"[" * 100_000, b'{"a":' * 50_000, b"[" + b"{}," * 400_000 + b"{}]", b"1" * 5000, b"\xff\xfe", b"",
         b"nul", parts["header"] * 2, parts["header"].replace(b"1", b"1e999"))
    )  # fmt: skip
    return pack(parts)


VALUES = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 2.0, 1e-320, 1e-30, 1e30, 1e151, 1e308)


def change_array(content: bytes, rng: random.Random) -> bytes:
    """Change values, type, shape or layout of an array."""

    def values(array: Any) -> Any:
        array = np.array(array, dtype=float)
        if array.size:
            flat = array.reshape(-1)
            flat[rng.randrange(flat.size) if rng.random() < 0.6 else slice(None)] = rng.choice(VALUES)
        return array

    def shape(array: Any) -> Any:
        how = rng.randrange(8)
        if how == 0:
            return array.T
        if how == 1:
            return array.ravel()
        if how == 2:
            return array[None]
        if how == 3:
            return np.zeros(tuple(rng.randrange(5) for _ in range(rng.randrange(5))))
        axis = rng.randrange(max(1, array.ndim))
        if how == 4 or not array.ndim:
            return np.repeat(np.atleast_1d(array), 2, axis)
        if how == 5:
            return np.concatenate([array, array.take([0], axis)] if array.shape[axis] else [array], axis)
        return array.take(range(rng.randrange(array.shape[axis] + 1)), axis)

    def kind(array: Any) -> Any:
        dtype = rng.choice(
            ("f2", "f4", ">f4", "f8", ">f8", "g", "c16", "i8", "i1", "?", "S8", "U3", "M8[s]", "V8")
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return np.asfortranarray(array) if rng.random() < 0.2 else array.astype(dtype)

    name = rng.choice(sorted(unpack(content)["arrays"]))
    return with_array(content, name, rng.choice((values, values, shape, kind)))


def change_line(content: bytes, rng: random.Random) -> bytes:
    """Change the text that says what the arrays are."""
    old, new = rng.choice((
        (b"[2", b"[9"), (b"[2", b"[-2"), (b"[2", b"[99999999999"), (b"<f8", b"|O8"), (b"<f8", b"<c9"),
        (b'"C"', b'"F"'), (b'"C"', b'"X"'), (b'"shape"', b'"shaqe"'), (b"<f8", b"|V0"), (b"<f8", b"f8,f8"),
        (b'"array": 1', b'"array": 99'), (b'"array": 1', b'"number": 1'), (b'{"dict"', b'{"list"'),
        (b'{"dict"', b'{"type": "State", "fields"'), (b"{", b"["), (b"]}", b"]"),
        (b'"array": 2', b'"array": -1'),
    ))  # fmt: skip
    return with_line(
        content, lambda line: line.replace(old, new, 1) if rng.random() < 0.7 else flip(line, rng)
    )


PLAIN = (flip, cut, zeros, noise, longer, swap_sectors)
OF_PARTS = (
    exchange_parts,
    change_header,
    change_header,
    text_header,
    change_array,
    change_array,
    change_line,
)


def changed_model(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return what was done, and the file: one or two changes of parts, or one of bytes."""
    chosen = [rng.choice(PLAIN)] if rng.random() < 0.2 else [rng.choice(OF_PARTS)]
    if chosen[0] in (change_header, change_array) and rng.random() < 0.3:
        chosen.append(rng.choice(OF_PARTS))
    for change in chosen:
        try:
            content = change(content, rng)
        except (KeyError, ValueError, IndexError, TypeError, AttributeError, RecursionError):
            break  # a file that an earlier change left cannot be changed again
    return "+".join(change.__name__ for change in chosen), content


# What is asked of a model that was loaded.


def mixture_answers(model: swiftem.GaussianMixture) -> dict[str, Callable[[], Any]]:
    """Return what can be asked of a mixture of these rows, by name."""
    d = model.n_features_in_
    X = np.resize(ROWS, (60, d))
    return {
        "predict": lambda: model.predict(X),
        "predict_proba": lambda: model.predict_proba(X),
        "score": lambda: model.score(X),
        "score_samples": lambda: model.score_samples(X),
        "bic": lambda: model.bic(X),
        "aic": lambda: model.aic(X),
        "icl": lambda: model.icl(X),
        "sample": lambda: model.sample(5)[0],
        "full_covariances": model.full_covariances,
        "marginal": lambda: model.marginal([0]).means_,
        "to_sklearn": lambda: model.to_sklearn().predict(X),
        "history": lambda: len(model.history_.table()["method"]),
        "partial_fit": lambda: model.partial_fit(X).means_,
        "partial_fit again": lambda: model.partial_fit(np.tile(X, (3, 1))).covariances_,
        "score after": lambda: model.score(X),
    }


def topic_answers(model: swiftem.PLSA) -> dict[str, Callable[[], Any]]:
    """Return what can be asked of topics of these counts, by name."""
    X = np.resize(COUNTS, (30, model.n_features_in_))
    return {
        "transform": lambda: model.transform(X),
        "score": lambda: model.score(X),
        "perplexity": lambda: model.perplexity(X),
        "top_words": lambda: [len(words) for words in model.top_words(n=3)],
        "coherence": lambda: model.coherence(X),
        "topic_prevalence": model.topic_prevalence,
        "sorted_topics": model.sorted_topics,
        "to_pyldavis": lambda: model.to_pyldavis(X)["doc_topic_dists"],
        "history": lambda: len(model.history_.table()["method"]),
        "partial_fit": lambda: model.partial_fit(X).components_,
        "partial_fit again": lambda: model.partial_fit(X[:7]).doc_topic_,
        "transform after": lambda: model.transform(X),
    }


def ask(model: Any) -> str:
    """Return what went wrong when everything was asked of a model; empty where all answers are finite."""
    answers = mixture_answers(model) if isinstance(model, swiftem.GaussianMixture) else topic_answers(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, answer in answers.items():
            try:
                found = np.asarray(answer(), dtype=float)
            except Exception as error:
                return f"{name}: {type(error).__name__} {str(error)[:80]}"
            if not np.isfinite(found).all():
                return f"{name}: not finite"
    return ""
