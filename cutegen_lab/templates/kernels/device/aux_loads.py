"""Auxiliary loads: matrices that the epilogue reads and the producer loads in advance.

If the epilogue reads a matrix as large as the result (a residual, a gate), the matrix goes through the mainloop's
pipeline (CUTLASS: AuxLoad). After a tile's operands, the producer loads the pieces of each such matrix into the next
stages. The epilogue reads them there, so no extra shared memory is needed. If the epilogue loaded them itself, each
piece of results would wait for memory while the tensor cores idle. (With two teams, the wait of one is hidden behind
the mainloop of the other.)

On an H200, adding a bf16 residual to a product of 4096³, which takes 175 µs, costs 5 µs instead of 15
(benchmarks/results/gemm_residual_on_gpu.json).
"""

import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90

from cutegen_lab.templates.kernels.device.tma_views import tma_view


def aux_view(x):
    """A TMA view of tensor ``x`` of the epilogue; None if its rows are broadcast or TMA cannot address it."""
    whole = x.element_type.width in (16, 32) and x.stride[0] != 0
    return tma_view(x, (1,)) if whole else None


def aux_steps_of(views, c_dtype, tile_shape_mnk, epi_rows, stage_bits):
    """(epilogue tile, with rows of at most 128 bytes; number of auxiliary loads that fit a stage; the pipeline's
    steps). A step is (bytes, loads), a load is (row and column of its piece in the tile, index of its tensor)."""
    tile_m, tile_n, _ = tile_shape_mnk
    numbers = [o for o, x in enumerate(views) if x is not None]
    columns = min(tile_n, 1024 // max([c_dtype.width] + [views[o].element_type.width for o in numbers]))
    slots = stage_bits // (epi_rows * 1024)
    places = [(i, j, o) for i in range(tile_m // epi_rows) for j in range(tile_n // columns) for o in numbers]
    aux_steps = []
    for begin in range(0, len(places), slots):
        step = [places[at] for at in range(begin, min(begin + slots, len(places)))]
        step_bits = 0
        for _, _, o in step:
            step_bits += epi_rows * columns * views[o].element_type.width
        aux_steps.append((step_bits // 8, tuple(step)))
    return (epi_rows, columns), slots, tuple(aux_steps)


def aux_layout(dtype, epi_tile, slots, stages, stage_bits):
    """Shared-memory layout of a tensor's auxiliary loads: (rows, columns, slot, stage)."""
    one = sm90.make_smem_layout_epi(dtype, utils.LayoutEnum.ROW_MAJOR, epi_tile, 1)
    apart = epi_tile[0] * 1024 // dtype.width, stage_bits // dtype.width
    rows, columns = (cute.get(one.outer, mode=[d]) for d in range(2))
    outer = cute.make_layout((rows.shape, columns.shape, slots, stages), stride=(rows.stride, columns.stride, *apart))
    return cute.make_composed_layout(one.inner, 0, outer)


def place_of(piece, aux_steps):
    """(slot of ``piece`` in its step, last slot of this step)."""
    return next((step.index(piece), len(step) - 1) for _, step in aux_steps if piece in step)


def read_aux(sE, from_shared, thread, slot, stage, cC):
    """Copies a thread's part of the auxiliary load in ``slot`` of ``stage`` to registers, in the order of ``cC``."""
    thr_from_shared = from_shared.get_slice(thread)
    rE = cute.make_rmem_tensor(cute.size(cC), sE.element_type)
    tCrE = thr_from_shared.retile(cute.make_tensor(rE.iterator, cute.make_layout(cC.shape)))
    cute.copy(from_shared, thr_from_shared.partition_S(sE)[None, None, None, slot, stage], tCrE)
    return rE
