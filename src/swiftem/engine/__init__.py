"""The hot loops: ``reference`` in plain NumPy, which defines what is correct, and ``numba``, compiled."""
