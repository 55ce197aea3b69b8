"""A pytest plugin: everything is collected three months from now."""

import time

_now, _now_ns = time.time, time.time_ns
SECONDS = 8_000_000
time.time = lambda: _now() + SECONDS
time.time_ns = lambda: _now_ns() + SECONDS * 10**9
