"""E-steps by units: of rows and of documents."""
