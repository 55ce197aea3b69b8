"""The plainest NumPy that follows the equations."""
