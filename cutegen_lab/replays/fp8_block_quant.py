"""Quantises activations to fp8 with a scale for each block of 128 values of a row."""

import torch


def reference(x):  # x: (tokens, hidden)
    blocks = x.float().reshape(x.shape[0], -1, 128)
    scales = blocks.abs().amax(-1).clamp(min=1e-4) / 448.0
    codes = (blocks / scales[..., None]).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
    return codes.reshape(x.shape), scales


def inputs():
    return [torch.randn(2048, 2048).bfloat16()]
