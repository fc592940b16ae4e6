"""Draws of inputs: which distributions, in which order, with which values."""
