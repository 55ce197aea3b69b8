"""What stands for the end of a process in the middle of a fit."""


class Death(Exception):
    """Stands for what ends a process."""
