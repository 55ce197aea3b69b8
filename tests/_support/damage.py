"""Damage to the bytes of files: changes of any bytes, and of text, by a generator of random numbers."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable
from functools import cache

Damage = Callable[[bytes, random.Random], bytes]

NUMBERS = (
    b"0", b"-1", b"1", b"255", b"2147483647", b"2147483648", b"4294967297", b"3000000000",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"1" * 30, b"1" * 5000,
    b"0" * 5000 + b"1", b"1.5", b"1e5", b"1e308", b"1e999", b"nan", b"-inf", b"0x10", b"1_000",
    "٣".encode(), b"",
)  # fmt: skip
TAILS = (b" ", b"\t", b"\r", b"\0", b"\n", b" \r", b"\x0b", b"\x1a", b"\xff", b" " * 4000, b"\r\n\r\n")


def flip(content: bytes, rng: random.Random) -> bytes:
    """Flip a few bits."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8)) if content else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flip_top_bits(content: bytes, rng: random.Random) -> bytes:
    """Flip the top bit of two numbers of eight bytes."""
    changed = bytearray(content)
    if len(changed) >= 16:
        for place in rng.sample(range(len(changed) // 8), 2):
            changed[8 * place + 7] ^= 0x80
    return bytes(changed)


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))] if content else content


def piece(content: bytes, rng: random.Random) -> bytes:
    """Replace a piece: by zeros, by noise, by nothing, or by itself two or four times."""
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    part = content[first:last]
    new = rng.choice((bytes(len(part)), rng.randbytes(len(part)), b"", 2 * part, 4 * part))
    return content[:first] + new + content[last:]


def swap(content: bytes, rng: random.Random) -> bytes:
    """Exchange two pieces of 512 bytes, or of 64 if there are fewer."""
    size = 512 if len(content) >= 1024 else 64
    pieces = [content[first : first + size] for first in range(0, len(content), size)]
    if len(pieces) > 1:
        one, other = rng.sample(range(len(pieces)), 2)
        pieces[one], pieces[other] = pieces[other], pieces[one]
    return b"".join(pieces)


def tail(content: bytes, rng: random.Random) -> bytes:
    return content.rstrip() + rng.choice(TAILS) * rng.choice((1, 1, 5))


ANY: tuple[Damage, ...] = (flip, flip, cut, piece, piece, piece, piece, swap, tail)


def number(content: bytes, rng: random.Random) -> bytes:
    """Put another number in the place of one of the first, or of any."""
    places = list(re.finditer(rb"[0-9]+", content))
    if not places:
        return content
    place = rng.choice(places[: rng.choice((3, 10, len(places)))])
    return content[: place.start()] + rng.choice(NUMBERS) + content[place.end() :]


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
    old = rng.choice((b" ", b"\n", b",", b":", b"\t"))
    new = rng.choice((b" ", b"\n", b"\r", b"\r\n", b";", b"\t", b"", b":"))
    return content.replace(old, new, rng.choice((1, -1)))


def word(content: bytes, rng: random.Random) -> bytes:
    """Change a word of the first line, as that of MatrixMarket is of words."""
    first, end, rest = content.partition(b"\n")
    words = first.split(b" ")
    words[rng.randrange(len(words))] = rng.choice((
        b"coordinate", b"array", b"integer", b"real", b"pattern", b"complex", b"general", b"symmetric",
        b"skew-symmetric", b"hermitian", b"unsigned-integer", b"vector",
    ))  # fmt: skip
    return b" ".join(words) + end + rest


@cache
def blanks(unit: bytes) -> bytes:
    """Return 16 MB of one thing, compressed."""
    return gzip.compress(unit * ((1 << 24) // len(unit)), mtime=0)


def packed(content: bytes, rng: random.Random) -> bytes:
    """Compress the content, and at times append what unpacks to a thousand times as much."""
    bomb = blanks(rng.choice((b" ", b"\n", b"1 ", b"\0", b"ant "))) * rng.choice((1, 4, 90))
    return gzip.compress(content, mtime=0) + (bomb if rng.random() < 0.1 else b"")


TEXT: tuple[Damage, ...] = (*ANY, number, number, number, tail, lines, lines, separators, word)
