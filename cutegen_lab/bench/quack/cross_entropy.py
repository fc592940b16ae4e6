import cuda.bindings.driver as cuda
import cutlass.cute as cute
from cutlass import Int32
from quack.cross_entropy import CrossEntropy


@cute.jit
def launch(x: cute.Tensor, t: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    CrossEntropy(x.element_type, x.shape[1])(x, t, None, out, None, None, None, Int32(-100), stream)
