"""From PyTorch to an expression graph: what a reference computes, without a GPU in mind."""
