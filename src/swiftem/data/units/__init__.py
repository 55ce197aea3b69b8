"""Rows that are cut into units, which workers read: Dask collections and large files."""
