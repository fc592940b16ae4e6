"""SGLang's silu_and_mul: SiLU of the first half of each row, times the second half.

Shapes: 512 tokens, and the feed-forward sizes of Llama 2 with 7, 13 and 70 billion parameters.
"""

import torch.nn.functional as F


def reference(x):  # x: bf16[512,22016]; x: bf16[512,27648]; x: bf16[512,57344]
    width = x.shape[-1] // 2
    return F.silu(x[..., :width]) * x[..., width:]
