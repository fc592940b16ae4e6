"""A linear layer whose weights are packed 4-bit integers with a scale and a zero point for each group of 128."""

import torch


def reference(x, packed, scales, zeros):  # x: (tokens, k); packed: (n, k / 2); scales, zeros: (n, k / 128)
    low, high = packed & 15, packed >> 4
    codes = torch.stack((low, high), -1).reshape(packed.shape[0], -1).float()
    groups = codes.reshape(packed.shape[0], scales.shape[1], -1)
    w = ((groups - zeros[..., None]) * scales[..., None]).reshape(codes.shape)
    return (x.float() @ w.T).to(x.dtype)


def inputs():
    x = torch.randn(4, 2048).half()
    packed = torch.randint(0, 256, (2048, 1024)).to(torch.uint8)
    return [x, packed, torch.rand(2048, 16) / 64, torch.full((2048, 16), 8.0)]
