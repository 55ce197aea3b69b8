"""Full passes by kernels in Triton: rows prepared once, parameters in every pass."""
