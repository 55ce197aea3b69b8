"""Ways through the iterations of Algorithm 1: iteration by iteration, or whole stretches in compiled code."""
