"""Tensor-core products: fragments and sums of mma.sync, and wgmma."""
