"""quack's RMSNorm of rows with a weight."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from quack.rmsnorm import RMSNorm


@cute.jit
def launch(x: cute.Tensor, weight: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    RMSNorm(x.element_type, x.shape[1])(x, weight, None, None, out, None, None, None, cutlass.Float32(1e-6), stream)


def constraints(config, workload, device) -> bool:
    return workload.inputs[0].shape[1] % 8 == 0
