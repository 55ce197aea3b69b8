"""Step sizes of the methods."""

from swiftem.core.schedules import *  # noqa: F403
from swiftem.core.schedules import __all__ as __all__
