"""Files that are damaged or forged: good ones of nine kinds, and mutations, all functions of a seed."""

from __future__ import annotations

import gzip
import io
import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from faults.forged_arrays import forged_npy, forged_npz, saved
from faults.forged_parquet import forged_parquet

Mutation = Callable[[bytes, random.Random], bytes]
Files = dict[str, bytes]
"""Contents by name; the first one is the file that is read, or lies in the folder that is."""

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
NUMBERS = (
    b"0", b"-1", b"1", b"255", b"2147483647", b"2147483648", b"4294967297", b"3000000000",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"1" * 30, b"1" * 5000,
    b"0" * 5000 + b"1", b"1.5", b"1e5", b"1e308", b"1e999", b"nan", b"-inf", b"0x10", b"1_000",
    "٣".encode(), b"",
)  # fmt: skip
TAILS = (b" ", b"\t", b"\r", b"\0", b"\n", b" \r", b"\x0b", b"\x1a", b"\xff", b" " * 4000, b"\r\n\r\n")
BANNER = (
    b"coordinate", b"array", b"integer", b"real", b"pattern", b"complex", b"general", b"symmetric",
    b"skew-symmetric", b"hermitian", b"unsigned-integer", b"vector",
)  # fmt: skip
BLANKS = (b" ", b"\n", b"1 ", b"0", b"\r\n", b"\0", b"ant ", b",")


def flip(content: bytes, rng: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if found:
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def set_byte(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + bytes([rng.choice((0, 10, 13, 32, 127, 128, 255))]) + content[place + 1 :]


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def without(content: bytes, rng: random.Random) -> bytes:
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:first] + content[last:]


def twice(content: bytes, rng: random.Random) -> bytes:
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:last] + content[first:last] * rng.choice((1, 1, 3)) + content[last:]


def splice(content: bytes, rng: random.Random) -> bytes:
    other = good(rng.choice(KINDS), rng)
    other_content = next(iter(other.values()))
    return cut(content, rng) + other_content[rng.randrange(len(other_content) + 1) :]


def digit(content: bytes, rng: random.Random) -> bytes:
    places = [match.start() for match in re.finditer(rb"[0-9]", content)]
    if not places:
        return content
    place = rng.choice(places)
    return content[:place] + str(rng.randrange(10)).encode() + content[place + 1 :]


def number(content: bytes, rng: random.Random) -> bytes:
    places = list(re.finditer(rb"[0-9]+", content))
    if not places:
        return content
    place = rng.choice(places[: rng.choice((3, 10, len(places)))])
    return content[: place.start()] + rng.choice(NUMBERS) + content[place.end() :]


def tail(content: bytes, rng: random.Random) -> bytes:
    return content.rstrip() + rng.choice(TAILS) * rng.choice((1, 1, 5))


def lines(content: bytes, rng: random.Random) -> bytes:
    """Drop, repeat, swap or empty a line."""
    parts = content.split(b"\n")
    one, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    how = rng.randrange(4)
    if how == 0:
        del parts[one]
    elif how == 1:
        parts.insert(other, parts[one])
    elif how == 2:
        parts[one], parts[other] = parts[other], parts[one]
    else:
        parts[one] = rng.choice((b"", b" ", b"%", b"#", b'"', b",,,", b"1 1", b"1 1 1 1"))
    return b"\n".join(parts)


def separators(content: bytes, rng: random.Random) -> bytes:
    one = rng.choice((b" ", b"\n", b",", b":", b"\t"))
    return content.replace(
        one, rng.choice((b" ", b"\n", b"\r", b"\r\n", b";", b"\t", b"", b":")), rng.choice((1, -1))
    )


def banner(content: bytes, rng: random.Random) -> bytes:
    """Change a word of MatrixMarket's first line."""
    first, end, rest = content.partition(b"\n")
    words = first.split(b" ")
    words[rng.randrange(len(words))] = rng.choice(BANNER)
    return b" ".join(words) + end + rest


@cache
def blanks(unit: bytes, length: int) -> bytes:
    """Return a gzip member that is ``length`` bytes of one thing."""
    return gzip.compress((unit * (length // len(unit) + 1))[:length], mtime=0)


def bomb(content: bytes, rng: random.Random) -> bytes:
    """Return a gzip file of up to 1.5 MB that unpacks to a thousand times as much."""
    member = blanks(rng.choice(BLANKS), 1 << 24)
    before = gzip.compress(content, mtime=0) if rng.random() < 0.5 else b""
    return before + member * rng.choice((1, 4, 90))


def packed(content: bytes, rng: random.Random) -> bytes:
    return gzip.compress(content, compresslevel=rng.choice((0, 6)), mtime=0)


ANY: tuple[Mutation, ...] = (flip, flip, set_byte, cut, without, twice, splice, tail)
TEXT: tuple[Mutation, ...] = (*ANY, digit, number, number, number, tail, lines, lines, separators)


def corpus(rng: random.Random) -> Any:
    """Return counts (D, V) of a few documents."""
    shape = (rng.randrange(1, 12), len(WORDS))
    return sp.csr_array(
        np.random.default_rng(rng.randrange(100)).poisson(0.5, size=shape) + np.eye(*shape, dtype=int)
    )


def vocabulary() -> bytes:
    return "\n".join(WORDS).encode() + b"\n"


def good_uci(rng: random.Random) -> Files:
    counts = corpus(rng).tocoo()
    head = f"{counts.shape[0]}\n{counts.shape[1]}\n{counts.nnz}\n"
    entries = zip(counts.row.tolist(), counts.col.tolist(), counts.data.tolist(), strict=True)
    body = "".join(f"{d + 1} {w + 1} {c}\n" for d, w, c in entries)
    return {"docword.toy.txt": (head + body).encode(), "vocab.toy.txt": vocabulary()}


def good_lda_c(rng: random.Random) -> Files:
    rows = corpus(rng).toarray()
    text = "".join(
        f"{np.count_nonzero(row)} " + " ".join(f"{w}:{row[w]}" for w in np.flatnonzero(row)) + "\n"
        for row in rows
    )
    beside = {"toy.vocab": vocabulary()} if rng.random() < 0.5 else {}
    return {"toy.ldac": text.encode(), **beside}


def good_market(rng: random.Random) -> Files:
    stream, counts = io.BytesIO(), corpus(rng)
    how = rng.randrange(6)
    if how == 5:
        scipy.io.mmwrite(stream, np.ones((5, 5)) + np.eye(5), symmetry="symmetric")
    elif how == 0:
        scipy.io.mmwrite(stream, counts.toarray())
    elif how == 1:
        scipy.io.mmwrite(stream, counts.astype(float) / 2, comment="half\nof it")
    elif how == 2:
        scipy.io.mmwrite(stream, counts, field="pattern")
    elif how == 3:
        square = np.eye(6, dtype=int) + np.eye(6, k=2, dtype=int) + np.eye(6, k=-2, dtype=int)
        scipy.io.mmwrite(stream, sp.coo_array(square), symmetry="symmetric")
    else:
        scipy.io.mmwrite(stream, counts)
    return {"toy.mtx": stream.getvalue(), **({"toy.vocab": vocabulary()} if how == 4 else {})}


def good_npz(rng: random.Random) -> Files:
    stream = io.BytesIO()
    kind = rng.choice(("csr", "csc", "coo", "bsr", "dia"))
    sp.save_npz(stream, corpus(rng).asformat(kind), compressed=rng.random() < 0.5)
    return {"toy.npz": stream.getvalue()}


def rows(rng: random.Random) -> Any:
    y = np.random.default_rng(rng.randrange(100)).normal(size=(rng.randrange(1, 60), rng.randrange(1, 5)))
    return y.round(3).astype(rng.choice(("f8", "f4", ">f8", "f2", "g", "i4", "u1")))


def good_npy(rng: random.Random) -> Files:
    y = rows(rng)
    return {
        "rows.npy": saved(
            np.asfortranarray(y) if rng.random() < 0.2 else y[:, 0] if rng.random() < 0.2 else y
        )
    }


def good_csv(rng: random.Random) -> Files:
    y = rows(rng).astype(float)
    delimiter = rng.choice(",;\t")
    names = delimiter.join(f"c{place}" for place in range(y.shape[1]))
    body = "".join(delimiter.join(f"{value:g}" for value in row) + "\n" for row in y)
    return {"rows.csv": ((names + "\n" if rng.random() < 0.8 else "") + body).encode()}


def texts(rng: random.Random) -> list[str]:
    return [" ".join(rng.choices(WORDS, k=rng.randrange(1, 9))) for _ in range(rng.randrange(1, 9))]


def good_text(rng: random.Random) -> Files:
    return {"lines.txt": "\n".join(texts(rng)).encode(), "words.txt": vocabulary()}


def good_folder(rng: random.Random) -> Files:
    """A folder of texts, or a table of them."""
    some = texts(rng)
    if rng.random() < 0.5:
        files = {f"texts/{place}.txt": text.encode() for place, text in enumerate(some)}
        return files | {
            "texts/more/a": "Café".encode("utf-16"),
            "texts/more/b.gz": gzip.compress(b"eel", mtime=0),
        }
    body = "".join(f'{place};"{text}"\n' for place, text in enumerate(some))
    return {"texts.csv": f"id;text\n{body}".encode()}


def good_parquet(rng: random.Random) -> Files:
    return {"rows.parquet": forged_parquet(rng)}


GOOD: dict[str, Callable[[random.Random], Files]] = {
    "uci": good_uci, "lda-c": good_lda_c, "matrixmarket": good_market, "npz": good_npz, "npy": good_npy,
    "parquet": good_parquet, "csv": good_csv, "text": good_text, "folder": good_folder,
}  # fmt: skip
KINDS = tuple(GOOD)
MUTATIONS: dict[str, tuple[Mutation, ...]] = {
    "matrixmarket": (*TEXT, *[banner] * 3),
    "npz": (*ANY, *[forged_npz] * 12), "npy": (*ANY, digit, number, *[forged_npy] * 8), "parquet": ANY,
}  # fmt: skip
PACKED = ("uci", "lda-c", "matrixmarket", "text", "folder")
"""Kinds that may be compressed with gzip."""


def good(kind: str, rng: random.Random) -> Files:
    return GOOD[kind](rng)


def mutant(kind: str, seed: int) -> Files:
    """Return a damaged file of this kind, and what lies beside it; every tenth is whole."""
    rng = random.Random(f"{kind} {seed}")
    files = good(kind, rng)
    name = rng.choice(list(files)) if rng.random() < 0.15 else next(iter(files))
    content = files[name]
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 2, 3, 5))):
        content = rng.choice(MUTATIONS.get(kind, TEXT))(content, rng)
    if kind in PACKED and rng.random() < 0.2:
        content = bomb(content, rng) if rng.random() < 0.1 else packed(content, rng)
        if rng.random() < 0.5:
            content = rng.choice(ANY)(content, rng)
    return files | {name: content}
