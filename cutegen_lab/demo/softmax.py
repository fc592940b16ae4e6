import torch


def reference(x):  # x: bf16[4096, 8192]
    return torch.softmax(x, dim=-1)
