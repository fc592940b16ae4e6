"""Counters in a profiler's units: sectors, wavefronts, warp instructions."""
