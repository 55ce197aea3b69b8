"""pLSA on a GPU: PyTorch defines the passes (``passes.py``), Triton is fast (``kernels.py``)."""
