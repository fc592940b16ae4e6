import torch


def reference(x, weight):  # x: bf16[4096, 8192], weight: bf16[8192]
    return torch.nn.functional.rms_norm(x, weight.shape, weight, eps=1e-6)
