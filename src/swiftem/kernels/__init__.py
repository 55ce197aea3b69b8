"""What compiled code shares: compilation and its cache, vector intrinsics, threads, loops in stretches."""
