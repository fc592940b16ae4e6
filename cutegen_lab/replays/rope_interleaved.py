"""Rotary embedding of neighbouring pairs, as Llama's reference code has it: pairs are complex numbers."""

import torch


def reference(x, angles):  # x: (batch, sequence, heads, dim); angles: (sequence, dim / 2)
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns[:, None, :]).flatten(-2).to(x.dtype)


def inputs():
    frequencies = 10000.0 ** -torch.linspace(0, 1, 64)
    return [torch.randn(2, 1024, 16, 128).bfloat16(), torch.outer(torch.arange(1024.0), frequencies)]
