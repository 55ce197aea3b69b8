"""Users' own models, from four functions or one class, and their E-steps."""
