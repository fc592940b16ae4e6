"""Interleaved timing with baselines, its statistics, and checks of timed outputs."""
