import torch


def reference(x):  # x: f64[9,200]
    return torch.sqrt((x * x).sum(-1)), x * 0.1
