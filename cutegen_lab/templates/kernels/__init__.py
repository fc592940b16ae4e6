"""Kernels as CuTe source: read by ``emit/bundle.py``, never imported. ``limits`` are plain Python and are imported."""
