"""E-steps on a GPU: PyTorch defines them (``passes.py``), Triton makes them fast (``kernels.py``)."""
