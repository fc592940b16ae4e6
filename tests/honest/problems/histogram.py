import torch


def reference(x):  # x: i32[20000]
    return (x.clamp(0, 63).unsqueeze(-1) == torch.arange(64)).sum(0)
