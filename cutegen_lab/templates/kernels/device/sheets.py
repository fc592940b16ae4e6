"""Matrices that the epilogue reads, brought ahead of it.

A matrix as large as the result, which the epilogue reads (a residual, a gate), comes in *sheets*: once a tile's
operands are on their way, the producer loads its piece of each such matrix into the pipeline's next stages, where the
epilogue finds it; no memory is set aside for it. Were the epilogue to load it, each piece of results would wait for
memory while the tensor cores idle. (Where two teams take turns, one's waiting is hidden behind the other's steps.)

On an H200, to add a bf16 residual to the products of 4096³ takes 5 µs beside their 175, not 15
(benchmarks/results/gemm_residual_on_gpu.json).
"""

import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90

from cutegen_lab.templates.kernels.device.tma_views import tma_view


def sheet_view(x):
    """A tensor of the epilogue as TMA can address it, or None: it is as large as the result."""
    whole = x.element_type.width in (16, 32) and x.stride[0] != 0
    return tma_view(x, (1,)) if whole else None


def sheets_of(views, c_dtype, tile_shape_mnk, epi_rows, stage_bits):
    """(the epilogue's piece of a tile, with rows of up to 128 bytes; sheets that a stage has room for; the sheets by
    steps: bytes, and each one's place in the tile, in pieces, and tensor)."""
    tile_m, tile_n, _ = tile_shape_mnk
    numbers = [o for o, x in enumerate(views) if x is not None]
    columns = min(tile_n, 1024 // max([c_dtype.width] + [views[o].element_type.width for o in numbers]))
    slots = stage_bits // (epi_rows * 1024)
    places = [(i, j, o) for i in range(tile_m // epi_rows) for j in range(tile_n // columns) for o in numbers]
    sheets = []
    for begin in range(0, len(places), slots):
        step = [places[at] for at in range(begin, min(begin + slots, len(places)))]
        step_bits = 0
        for _, _, o in step:
            step_bits += epi_rows * columns * views[o].element_type.width
        sheets.append((step_bits // 8, tuple(step)))
    return (epi_rows, columns), slots, tuple(sheets)


def sheet_layout(dtype, epi_tile, slots, stages, stage_bits):
    """A tensor's sheets in shared memory: rows, columns, slot, stage."""
    one = sm90.make_smem_layout_epi(dtype, utils.LayoutEnum.ROW_MAJOR, epi_tile, 1)
    apart = epi_tile[0] * 1024 // dtype.width, stage_bits // dtype.width
    rows, columns = (cute.get(one.outer, mode=[d]) for d in range(2))
    outer = cute.make_layout((rows.shape, columns.shape, slots, stages), stride=(rows.stride, columns.stride, *apart))
    return cute.make_composed_layout(one.inner, 0, outer)


def place_of(sheet, sheets):
    """(its slot, the last one of its step)."""
    return next((step.index(sheet), len(step) - 1) for _, step in sheets if sheet in step)


def read_sheet(sE, from_shared, thread, slot, stage, cC):
    """A thread's part of a sheet, in registers, at ``cC``."""
    thr_from_shared = from_shared.get_slice(thread)
    rE = cute.make_rmem_tensor(cute.size(cC), sE.element_type)
    tCrE = thr_from_shared.retile(cute.make_tensor(rE.iterator, cute.make_layout(cC.shape)))
    cute.copy(from_shared, thr_from_shared.partition_S(sE)[None, None, None, slot, stage], tCrE)
    return rE
