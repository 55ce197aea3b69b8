"""The hot loops: ``reference`` in plain NumPy, the definition of correct results, and ``numba``, compiled."""
