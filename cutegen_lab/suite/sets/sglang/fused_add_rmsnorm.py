"""SGLang's fused_add_rmsnorm, as a function without effects: the sum of an input and a residual, and its RMSNorm.

Shapes: 512 tokens, and the hidden sizes of Llama 2 with 7, 13 and 70 billion parameters.
"""

import torch
import torch.nn.functional as F


def reference(x, residual, weight):
    total = x + residual
    return F.rms_norm(total, weight.shape, weight, 1e-6), total


def inputs():
    return [_inputs(hidden) for hidden in (4096, 5120, 8192)]


def _inputs(hidden):
    rows = (512, hidden)
    return {name: torch.randn(shape, dtype=torch.bfloat16)
            for name, shape in (("x", rows), ("residual", rows), ("weight", (hidden,)))}  # fmt: skip
