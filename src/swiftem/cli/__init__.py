"""The command line, ``swiftem``."""

from swiftem.cli.app import main

__all__ = ["main"]
