"""Where fits end: starts that race, moves that leave poor optima, components that collapsed."""
