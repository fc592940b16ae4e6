import torch.nn.functional as F


def reference(x, weight, bias):  # x: f32[24,1500], weight: f32[1500], bias: f32[1500]
    return F.layer_norm(x, weight.shape, weight, bias)
