import torch


def reference(x):  # x: f32[3000]
    y = x.clamp(-3, 3)
    return torch.erf(y) + torch.tanh(y) * torch.exp(-y * y), torch.log1p(y.abs()) + torch.sin(x) * torch.atan(y)
