import cuda.bindings.driver as cuda
import cutlass.cute as cute
from cutlass import Float32
from quack.rmsnorm import RMSNorm


@cute.jit
def launch(x: cute.Tensor, w: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    RMSNorm(x.element_type, x.shape[1])(x, w, None, None, out, None, None, None, Float32(1e-6), stream)
