"""Rows divided into units, which workers read: Dask collections and large files."""
