import torch


def reference(x):  # x: f32[40,100]
    assert x.shape[-1] % 4 == 0
    bits = (x > 0).to(torch.uint8).reshape(*x.shape[:-1], -1, 4)
    return (bits * torch.tensor([1, 2, 4, 8], dtype=torch.uint8)).sum(-1).to(torch.uint8)
