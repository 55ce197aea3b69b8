"""The paper's experiments: each module runs one and compares the numbers with the claims."""
