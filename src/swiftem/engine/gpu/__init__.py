"""Passes and iterations on a GPU: PyTorch defines them (``passes.py``, ``iterations.py``), Triton is fast."""
