"""Mixtures: models, families, and their E-steps in every technology."""
