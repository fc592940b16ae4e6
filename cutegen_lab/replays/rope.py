"""Rotary position embedding in its "rotate half" form (Su et al. 2021, RoFormer, §3.4), as in most language models."""

import torch


def reference(x, cos, sin):  # x: (batch, heads, positions, head_dim); cos, sin: (positions, head_dim)
    half = x.shape[-1] // 2
    rotated = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + rotated * sin


def inputs():
    angle = torch.rand(2048, 128) * 6.283
    return [torch.randn(4, 8, 2048, 128).bfloat16(), torch.cos(angle).bfloat16(), torch.sin(angle).bfloat16()]
