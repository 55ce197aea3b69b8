"""A disk on which nothing can be written."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk():
    """Let every write to a file fail, by the limit on the size of files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
