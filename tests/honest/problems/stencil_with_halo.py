import torch.nn.functional as F


def reference(x):  # x: f32[60,90]
    p = F.pad(x, (1, 1, 1, 1))
    return p[1:-1, 1:-1] * 0.5 + (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) * 0.125
