"""E-steps of rows with missing cells, grouped by the pattern of these."""
