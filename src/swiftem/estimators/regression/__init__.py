"""Mixtures of regressions."""
