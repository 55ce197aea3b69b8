"""Rows of numbers: arrays, files and streams as sources; readers of tables."""
