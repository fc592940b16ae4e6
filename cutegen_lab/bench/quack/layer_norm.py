import cuda.bindings.driver as cuda
import cutlass.cute as cute
from cutlass import Float32
from quack.rmsnorm import RMSNorm


@cute.jit
def launch(x: cute.Tensor, w: cute.Tensor, b: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    norm = RMSNorm(x.element_type, x.shape[1], is_layernorm=True)
    norm(x, w, b, None, out, None, None, None, Float32(1e-5), stream)
