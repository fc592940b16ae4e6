"""Router of a mixture of experts: the two experts with the largest probabilities, their weights renormalised to sum to 1."""

import torch


def reference(x):  # x: (tokens, experts), logits
    weights, experts = torch.topk(torch.softmax(x.float(), -1), 2, dim=-1)
    return weights / weights.sum(-1, keepdim=True), experts


def inputs():
    return [torch.randn(4096, 64)]
