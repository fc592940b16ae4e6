"""Kernels as CuTe source: read by ``emit/bundle.py``, never imported. ``rules`` are plain Python and are."""
