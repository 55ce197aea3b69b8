"""Reading in a thread: order, errors, and an end."""

import threading
import time

import pytest

from swiftem.data.stored import AHEAD, read_ahead


def test_items_come_in_order_and_the_thread_ends(readers):
    assert list(read_ahead(iter(range(100)))) == list(range(100))
    assert not readers()


def test_it_reads_while_the_consumer_computes_and_no_more_than_it_may(readers):
    read = []

    def items():
        for number in range(20):
            read.append(number)
            yield number

    stream = read_ahead(items())
    assert next(stream) == 0
    deadline = time.monotonic() + 5
    while len(read) < AHEAD + 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert read == list(range(AHEAD + 2))  # the one that was taken, those that wait, and one in hand
    stream.close()
    assert not readers()


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_an_error_comes_after_the_items_before_it(error, readers):
    def items():
        yield 1
        yield 2
        raise error

    found = []
    with pytest.raises(type(error)):
        found.extend(read_ahead(items()))
    assert found == [1, 2]
    assert not readers()


def test_a_consumer_that_stops_closes_what_is_read(readers):
    closed = []

    def items():
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    stream = read_ahead(items())
    next(stream)
    del stream
    assert closed == [True]
    assert not readers()


class Closable:
    """Numbers from 0 on, with a file behind them, say; no generator, which is closed when it is forgotten."""

    def __init__(self, length):
        self.left, self.closed = iter(range(length)), 0

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.left)

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("taken", [1, 3, 100])
def test_what_is_read_is_closed_at_return(taken, readers):
    items = Closable(100)
    stream = read_ahead(items)
    for _ in range(taken):
        next(stream)
    if taken == 100:
        assert list(stream) == []
    stream.close()
    assert items.closed == 1
    assert not readers()


def test_the_reader_itself_may_collect_an_abandoned_generator(readers):
    """A thread cannot join itself: garbage is collected by whichever thread allocates."""
    suspended, ended = threading.Event(), []

    def items():
        yield 1
        suspended.wait(10)
        ahead.close()
        ended.append(True)

    ahead = read_ahead(items())
    assert next(ahead) == 1
    suspended.set()
    deadline = time.monotonic() + 10
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended
