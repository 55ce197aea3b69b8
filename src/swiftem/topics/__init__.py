"""Topics of texts: models and their E-steps in every technology."""
