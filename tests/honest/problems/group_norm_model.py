import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.rand(3, 16, 9, 11)]


def get_init_inputs():
    return [4, 16]
