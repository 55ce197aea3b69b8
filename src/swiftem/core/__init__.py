"""The paper's Algorithm 1 and the contracts around it; imports neither a model nor a device."""
