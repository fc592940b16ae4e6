import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(16, 96)]


def get_init_inputs():
    return [96]
