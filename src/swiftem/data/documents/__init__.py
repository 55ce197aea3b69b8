"""Documents and their words: sources, vocabularies, corpora."""
