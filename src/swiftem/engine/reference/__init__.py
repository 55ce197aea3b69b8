"""Plain NumPy that follows the equations."""
