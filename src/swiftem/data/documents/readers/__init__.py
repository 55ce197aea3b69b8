"""Files of documents, one module per format."""
