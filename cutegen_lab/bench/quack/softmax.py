import cuda.bindings.driver as cuda
import cutlass.cute as cute
from quack.softmax import Softmax


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    Softmax(x.element_type, x.shape[1])(x, out, stream)
