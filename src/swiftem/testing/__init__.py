"""The contract tests, for the library's models and methods and for yours."""

from swiftem.testing.check_method import check_method
from swiftem.testing.check_model import check_model

__all__ = ["check_method", "check_model"]
