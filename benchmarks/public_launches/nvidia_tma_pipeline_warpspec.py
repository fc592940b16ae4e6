"""NVIDIA's sample of a warp-specialised TMA pipeline, whose tensor map the host encodes (cuTensorMapEncodeTiled)."""

import cuda.bindings.driver as driver
import cutlass
import cutlass.cute as cute
import cutlass.experimental.cuda as cuda
from tma_pipeline_warpspec import TILE_K, TILE_M, kernel


@cute.jit
def launch(src: cute.Tensor, dst: cute.Tensor, stream: driver.CUstream):
    rows, columns = src.shape
    source = cuda.create_tensor_map_tiled(
        global_address=src.iterator.toint(), dtype=cutlass.Float16, global_dims=[columns, rows],
        global_strides=[columns * 2 // 16], box_dims=[TILE_K, TILE_M], swizzle=cuda.TensorMapSwizzle.s128b,
    )  # fmt: skip
    kernel(source, dst, columns // TILE_K).launch(grid=[rows // TILE_M, 1, 1], block=[64, 1, 1], stream=stream)


def constraints(config, workload, device) -> bool:
    rows, columns = workload.inputs[0].shape
    return rows % TILE_M == 0 and columns % TILE_K == 0
