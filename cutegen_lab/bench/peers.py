"""Another project's kernels for the same tensors: quack (Dao-AILab/quack, ``pip install quack-kernels``)."""

from __future__ import annotations

QUACK = "quack"
_IMPORTS = """\
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from quack.cross_entropy import CrossEntropy
from quack.rmsnorm import RMSNorm
from quack.softmax import Softmax


@cute.jit"""


def _text(launch: str) -> str:
    return _IMPORTS + launch


SOFTMAX = _text("""
def launch(x: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    Softmax(x.element_type, x.shape[1])(x, out, stream)
""")
RMS_NORM = _text("""
def launch(x: cute.Tensor, w: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    RMSNorm(x.element_type, x.shape[1])(x, w, None, None, out, None, None, None, Float32(1e-6), stream)
""")
ADD_RMS_NORM = _text("""
def launch(x: cute.Tensor, r: cute.Tensor, w: cute.Tensor, out: cute.Tensor, total: cute.Tensor, stream: cuda.CUstream):
    RMSNorm(x.element_type, x.shape[1])(x, w, None, r, out, total, None, None, Float32(1e-6), stream)
""")
LAYER_NORM = _text("""
def launch(x: cute.Tensor, w: cute.Tensor, b: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    norm = RMSNorm(x.element_type, x.shape[1], is_layernorm=True)
    norm(x, w, b, None, out, None, None, None, Float32(1e-5), stream)
""")
CROSS_ENTROPY = _text("""
def launch(x: cute.Tensor, t: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    CrossEntropy(x.element_type, x.shape[1])(x, t, None, out, None, None, None, Int32(-100), stream)
""")
