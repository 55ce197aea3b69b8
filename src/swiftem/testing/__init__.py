"""The contract tests, for the library's models, families, methods and sources and for yours."""

from swiftem.testing.check_family import check_family
from swiftem.testing.check_method import check_method
from swiftem.testing.check_model import check_model
from swiftem.testing.check_source import check_source

__all__ = ["check_family", "check_method", "check_model", "check_source"]
