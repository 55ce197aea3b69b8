"""Loops over the lines of padded rows, of four rows at a time."""
