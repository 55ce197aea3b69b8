"""Timings of swiftem and named peers: ``python -m benchmarks``."""
