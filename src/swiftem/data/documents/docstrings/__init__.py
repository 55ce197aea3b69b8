"""The corpus that every installation has: docstrings of installed packages."""
