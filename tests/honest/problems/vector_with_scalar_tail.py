import torch


def reference(x, y):  # x: bf16[10007], y: bf16[10007]
    return torch.maximum(x, y)
