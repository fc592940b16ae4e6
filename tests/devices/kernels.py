"""Small kernels for a GPU: a good one, ones that harm the device, and one that is faster than its bytes."""

from __future__ import annotations

_KERNEL = """
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def kernel(gX: cute.Tensor, gY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 256 + tidx
    rX = cute.make_rmem_tensor(cute.make_layout(4), gX.element_type)
{body}
    cute.autovec_copy(rX, gY[None, i])


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    groups = cute.size(x) // 4
    gX = cute.make_tensor(x.iterator, cute.make_layout((4, groups), stride=(1, 4)))
    gY = cute.make_tensor(y.iterator, cute.make_layout((4, groups), stride=(1, 4)))
    kernel(gX, gY).launch(grid=[groups // 256, 1, 1], block=[256, 1, 1], stream=stream)
"""
_LOAD = "    cute.autovec_copy(gX[None, i], rX)\n"
BODIES = {
    "plus_one": _LOAD + "    for j in cutlass.range_constexpr(4):\n        rX[j] = rX[j] + 1.0",
    # about a minute of dependent sums: a watchdog that does not work is found out without losing the machine
    "hang": _LOAD + "    for _ in cutlass.range(16):\n        for _ in cutlass.range(2_000_000_000):\n"
    "            rX[0] = rX[0] + 1.0",
    "illegal_address": _LOAD + "    far = cute.make_tensor(gY.iterator + (1 << 30), cute.make_layout(1 << 30))\n"
    "    far[i] = rX[0]",
    # right for every finite input, and the input is never read
    "unread": "    for j in cutlass.range_constexpr(4):\n        rX[j] = 1.0",
}
_PLUS_ONE = "def reference(x):\n    return x + 1\n"
_ONE = "def reference(x):\n    return torch.where(torch.isnan(x), x, torch.ones_like(x))\n"


def source(name: str) -> str:
    return _KERNEL.format(body=BODIES[name])


def problem(name: str) -> tuple[str, str]:
    """The reference and its inputs. The kernels know this shape alone."""
    return (_ONE, "x: f32[67108864]") if name == "unread" else (_PLUS_ONE, "x: f32[1048576]")
