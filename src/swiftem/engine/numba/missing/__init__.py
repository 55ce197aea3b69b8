"""Compiled E-steps of rows with missing cells."""
