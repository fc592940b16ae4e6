import cuda.bindings.driver as cuda
import cutlass.cute as cute
from cutlass import Float32
from quack.rmsnorm import RMSNorm


@cute.jit
def launch(x: cute.Tensor, r: cute.Tensor, w: cute.Tensor, out: cute.Tensor, total: cute.Tensor, stream: cuda.CUstream):
    RMSNorm(x.element_type, x.shape[1])(x, w, None, r, out, total, None, None, Float32(1e-6), stream)
