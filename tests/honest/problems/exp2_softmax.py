import torch


def reference(x):  # x: f16[33,512]
    return torch.softmax(x * 0.125, dim=-1)
