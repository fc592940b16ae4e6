"""Sub-pixel upsampling with GELU."""

import torch
import torch.nn.functional as F


def reference(x):  # x: (batch, channels * 4, h, w)
    return F.gelu(F.pixel_shuffle(x, 2))


def inputs():
    return [torch.randn(4, 128, 64, 64)]
