"""From PyTorch to an expression graph of what a reference computes. Knows nothing of GPUs."""
