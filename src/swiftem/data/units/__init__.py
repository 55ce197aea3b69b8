"""Rows in units, which workers of a cluster may read: sources, pools, and E-steps by units."""
