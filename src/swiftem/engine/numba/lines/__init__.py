"""Loops over lines: of padded rows, four entries of a document at a time, and the softmax of rows."""
