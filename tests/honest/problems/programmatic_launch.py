import torch


def reference(x):  # x: f32[24,700]
    return x - torch.amax(x, dim=-1, keepdim=True)
