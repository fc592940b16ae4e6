"""Kernel families: each turns a graph it recognises into the text of one CuTe module."""
