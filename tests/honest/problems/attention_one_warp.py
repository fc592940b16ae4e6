import torch


def reference(q, k, v):  # q: f32[2,19,32], k: f32[2,33,32], v: f32[2,33,32]
    assert q.shape[-1] == v.shape[-1] == 32
    return torch.softmax(q @ k.transpose(-1, -2) * 0.17677669529663687, dim=-1) @ v
