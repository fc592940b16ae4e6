"""What a kernel moved and executed, in the units of a profiler: sectors, wavefronts, warp instructions."""
