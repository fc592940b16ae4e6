import torch.nn.functional as F


def reference(x):  # x: f32[3,4,33,47]
    return F.max_pool2d(x, 3, stride=2, padding=1)
