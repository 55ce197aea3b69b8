"""Figures and sentences from results."""
