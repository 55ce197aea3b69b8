"""Timings of swiftem against named peers: ``python -m benchmarks``."""
