"""Turns a PyTorch reference into an expression graph. Independent of GPUs."""
