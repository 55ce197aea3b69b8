"""The corpus available in every installation: docstrings of installed packages."""
