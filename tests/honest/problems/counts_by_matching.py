import torch


def reference(x):  # x: i32[4000]
    return (torch.remainder(x, 10).unsqueeze(-1) == torch.arange(10)).sum(0).int()
