"""The E-steps of mixtures in every technology, NumPy first."""
