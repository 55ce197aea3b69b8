"""Files of documents, one module a format."""
