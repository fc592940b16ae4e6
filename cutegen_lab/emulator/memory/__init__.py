"""Global memory of a launch; shared and local memory of its CTAs; what kernels print."""
