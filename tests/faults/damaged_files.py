"""Files of nine kinds, damaged as a seed says, and what every reader makes of them in a watched process."""

from __future__ import annotations

import gzip
import io
import random
import tempfile
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv  # before memory is limited
import pyarrow.parquet
import scipy.io
import scipy.sparse as sp
import sklearn.feature_extraction.text  # noqa: F401
from damage import ANY, TEXT, packed
from faults.watched import Verdict, complaint, innermost

from swiftem.data import (
    open_documents,
    open_source,
    read_corpus,
    read_documents,
    read_table,
    read_vocabulary,
)

Files = dict[str, bytes]
"""Contents by name; the first one is the file that is read, or lies in the folder that is."""
WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
VOCABULARY = "\n".join(WORDS).encode() + b"\n"
ROWS, BLOCKS = 4096, 3000
"""Asked for at a time, and most blocks: more than any of the small files may have."""


def counts(rng: random.Random) -> Any:
    """Return counts (D, V) of a few documents."""
    shape = (rng.randrange(1, 12), len(WORDS))
    made = np.random.default_rng(rng.randrange(100)).poisson(0.5, size=shape)
    return sp.csr_array(made + np.eye(*shape, dtype=int))


def rows(rng: random.Random) -> Any:
    y = np.random.default_rng(rng.randrange(100)).normal(size=(rng.randrange(1, 60), rng.randrange(1, 5)))
    return y.round(3).astype(rng.choice(("f8", "f4", ">f8", "f2", "g", "i4", "u1")))


def texts(rng: random.Random) -> list[str]:
    return [" ".join(rng.choices(WORDS, k=rng.randrange(1, 9))) for _ in range(rng.randrange(1, 9))]


def written(write: Callable[..., Any], *content: Any, **options: Any) -> bytes:
    """Return what a function writes to a stream."""
    stream = io.BytesIO()
    write(stream, *content, **options)
    return stream.getvalue()


def uci(rng: random.Random) -> Files:
    table = counts(rng).tocoo()
    lines = [*map(str, (*table.shape, table.nnz))]
    lines += map("{} {} {}".format, table.row + 1, table.col + 1, table.data)
    return {"docword.toy.txt": "\n".join(lines).encode() + b"\n", "vocab.toy.txt": VOCABULARY}


def lda_c(rng: random.Random) -> Files:
    lines = [
        f"{np.count_nonzero(row)} " + " ".join(f"{w}:{row[w]}" for w in np.flatnonzero(row))
        for row in counts(rng).toarray()
    ]
    return {"toy.ldac": "\n".join(lines).encode() + b"\n", "toy.vocab": VOCABULARY}


def market(rng: random.Random) -> Files:
    table = rng.choice((counts(rng).tocoo(), counts(rng).toarray(), counts(rng).astype(float) / 2))
    return {"toy.mtx": written(scipy.io.mmwrite, table, comment="half\nof it")}


def npz(rng: random.Random) -> Files:
    table = counts(rng).asformat(rng.choice(("csr", "csc", "coo", "bsr", "dia")))
    return {"toy.npz": written(sp.save_npz, table, compressed=rng.random() < 0.5)}


def npy(rng: random.Random) -> Files:
    y = rows(rng)
    return {"rows.npy": written(np.save, rng.choice((y, y, np.asfortranarray(y), y[:, 0])))}


def csv(rng: random.Random) -> Files:
    y, delimiter = rows(rng).astype(float), rng.choice(",;\t")
    names = delimiter.join(f"c{place}" for place in range(y.shape[1]))
    body = "".join(delimiter.join(f"{value:g}" for value in row) + "\n" for row in y)
    return {"rows.csv": ((names + "\n" if rng.random() < 0.8 else "") + body).encode()}


def parquet(rng: random.Random) -> Files:
    """Return columns of many types, with missing values."""
    y = rows(rng).astype(float)[:, 0]
    made = [
        pa.array(y),
        pa.array(y, mask=np.arange(len(y)) % 7 == 3),
        pa.array([f"ant bee {place}" for place in range(len(y))]),
        pa.array(y.astype(int), pa.int32()),
        pa.array(y > 0),
        pa.array([[value] for value in y.tolist()]),
        pa.array(["ant"] * len(y)).dictionary_encode(),
    ]
    chosen = [made[0] if rng.random() < 0.7 else made[1], *rng.sample(made, rng.randrange(4))]
    table = pa.table(dict(zip(("a", "text", "", "é"), chosen, strict=False)))
    codec = rng.choice(("none", "snappy", "gzip", "zstd"))
    size = rng.choice((7, 1000))
    return {"rows.parquet": written(lambda out: pa.parquet.write_table(table, out, size, compression=codec))}


def text(rng: random.Random) -> Files:
    return {"lines.txt": "\n".join(texts(rng)).encode(), "words.txt": VOCABULARY}


def folder(rng: random.Random) -> Files:
    """Return a folder of texts, or a table of them."""
    some = texts(rng)
    if rng.random() < 0.5:
        files = {f"texts/{place}.txt": content.encode() for place, content in enumerate(some)}
        return files | {"texts/a": "Café".encode("utf-16"), "texts/b.gz": gzip.compress(b"eel", mtime=0)}
    body = "".join(f'{place};"{content}"\n' for place, content in enumerate(some))
    return {"texts.csv": f"id;text\n{body}".encode()}


GOOD: dict[str, Callable[[random.Random], Files]] = {
    "uci": uci,
    "lda-c": lda_c,
    "matrixmarket": market,
    "npz": npz,
    "npy": npy,
    "parquet": parquet,
    "csv": csv,
    "text": text,
    "folder": folder,
}
KINDS = tuple(GOOD)
BINARY = ("npz", "npy", "parquet")


def damaged(kind: str, seed: int) -> Files:
    """Return a damaged file of this kind, and what lies beside it; every tenth is whole."""
    rng = random.Random(f"{kind} {seed}")
    files = GOOD[kind](rng)
    name = rng.choice(list(files)) if rng.random() < 0.15 else next(iter(files))
    content, changes = files[name], ANY if kind in BINARY else TEXT
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 2, 3, 5))):
        content = rng.choice(changes)(content, rng)
    if kind not in (*BINARY, "csv") and rng.random() < 0.2:
        content = packed(content, rng)
        if rng.random() < 0.5:
            content = rng.choice(ANY)(content, rng)
    return files | {name: content}


class UnsoundError(Exception):
    """A reader took a file and returned what cannot be."""


def sound(is_sound: Any, what: str) -> None:
    if not is_sound:
        raise UnsoundError(what)


def sound_counts(table: Any, words: int) -> None:
    """Refuse counts that are no CSR array of sorted, positive, finite entries."""
    begin, word = table.indptr, table.indices
    ordered = begin[0] == 0 and (np.diff(begin) >= 0).all() and begin[-1] == len(word) == len(table.data)
    inside = not len(word) or (word.min() >= 0 and word.max() < words == table.shape[1])
    sound(ordered and inside and (table.data > 0).all() and np.isfinite(table.data).all(), "counts")


def corpus(path: Path, **options: Any) -> float:
    found = read_corpus(path, **options)
    sound_counts(found.counts, found.counts.shape[1])
    sound(len(found.names) == found.counts.shape[0] and np.diff(found.counts.indptr).all(), "names")
    return float(found.counts.sum())


def documents(path: Path, vocabulary: Any = None) -> float:
    source = open_documents(path, vocabulary)
    total, seen = 0.0, 0
    for first, block in source.blocks(ROWS):
        sound_counts(block, source.n_words)
        sound(first == seen, "blocks that are not one after the other")
        seen, total = seen + block.shape[0], total + float(block.sum())
    sound(seen == source.n_documents, "another number of documents")
    return total


def table(path: Path) -> float:
    found = read_table(path)
    sound(found.values.ndim == 2 and found.values.size and np.isfinite(found.values).all(), "values")
    return float(len(found.values))


def source(path: Path) -> float:
    found = open_source(path)
    seen = 0
    for chunk in found.chunks(ROWS):
        sound(np.isfinite(chunk.y).all(), "values that are not finite")
        seen += len(chunk.y)
    for _ in islice(found.blocks(ROWS), BLOCKS):
        pass
    if found.access == "random":
        found.take(np.array([0, found.n - 1]))
    sound(seen == found.n, "another number of rows")
    return float(seen)


Reader = tuple[str, Callable[[], float]]


def readers(kind: str, path: Path) -> Iterator[Reader]:
    """Yield the readers of a kind, by name."""
    if kind in ("uci", "lda-c", "matrixmarket", "npz", "folder"):
        yield "read_corpus", lambda: corpus(path)
    if kind in ("uci", "lda-c", "matrixmarket", "npz"):
        yield "open_documents", lambda: documents(path)
    if kind in ("npy", "parquet", "csv"):
        yield "read_table", lambda: table(path)
        yield "open_source", lambda: source(path)
    if kind in ("parquet", "csv"):
        yield "read_corpus, any", lambda: corpus(path)
        yield "read_corpus, a column", lambda: corpus(path, text_column="text")
    if kind == "text":
        yield "read_corpus, text", lambda: corpus(path)
        yield "read_corpus, known", lambda: corpus(path, format="text", known_words=WORDS)
        yield "open_documents, text", lambda: documents(path, path.with_name("words.txt"))
        yield "read_documents", lambda: float(len(read_documents(path)))
        yield "read_vocabulary", lambda: float(len(read_vocabulary(path)))


PAIRS = (("read_corpus", "open_documents"), ("read_table", "open_source"))
"""Readers that must agree about how many tokens or rows there are."""


def read_damaged(case: tuple[str, int]) -> list[Verdict]:
    """Read a damaged file with every reader of its kind."""
    kind, seed = case
    verdicts, totals = [], {}
    with tempfile.TemporaryDirectory(prefix="swiftem-fuzz-", ignore_cleanup_errors=True) as name:
        folder, files = Path(name), damaged(kind, seed)
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        first = folder / next(iter(files)).partition("/")[0]
        names = {Path(name).name for name in files} | {first.name}
        for reader, call in readers(kind, first):
            try:
                totals[reader] = call()
                verdicts.append(Verdict("taken", "", ""))
            except Exception as error:
                wrong = complaint(error, names)
                where = innermost("".join(traceback.format_exception(error)))
                wrong = wrong and f"{reader}, {type(error).__name__} in {where}: {wrong}"
                verdicts.append(Verdict("refused", wrong, str(error)[:300]))
    for one, other in PAIRS:
        if {one, other} <= set(totals) and not np.isclose(totals[one], totals[other], rtol=1e-12):
            verdicts.append(Verdict("taken", f"{one} differs from {other}", f"{totals}"))
    return verdicts
