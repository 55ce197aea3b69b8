"""What reproduces the paper on incremental EM: its theory in numbers, its experiments and their report.

It is run from a checkout of the repository and is no part of the library.
"""
