"""Gaussian mixtures as estimators."""
