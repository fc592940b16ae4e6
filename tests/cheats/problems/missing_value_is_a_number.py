import torch


def reference(x):  # x: f32[40,96]
    return torch.where(x == -999.0, 0.0, x)
