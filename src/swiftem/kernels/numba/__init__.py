"""Compiled hot loops; imported only when a run uses them."""
