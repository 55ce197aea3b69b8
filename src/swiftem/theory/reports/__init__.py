"""What agrees with the paper: words, tables and figures of the experiments."""
