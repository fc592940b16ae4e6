"""The order of a matrix product's tiles (CUTLASS: tile scheduler), and the stages of its pipeline."""

import cutlass
import cutlass.cute as cute


@cute.jit
def tile_at(index: cutlass.Int32, across_mn: cutlass.Constexpr, group: cutlass.Constexpr, along_n: cutlass.Constexpr):
    """(row, column, batch) of tile number ``index``. A batch has ``across_mn`` tiles.

    Tiles are ordered in bands ``group`` tiles high, column by column (``along_n``: bands ``group`` tiles wide, row by
    row). Tiles that are computed at the same time therefore share operands in L2.
    """
    high, wide = (across_mn[1], across_mn[0]) if along_n else across_mn
    batch, rest = index // (high * wide), index % (high * wide)
    band, rest = rest // (group * wide), rest % (group * wide)
    height = cutlass.min(high - band * group, group)
    i, j = band * group + rest % height, rest // height
    row, column = (j, i) if along_n else (i, j)
    return row, column, batch


@cute.jit
def next_stage(stage: cutlass.Int32, phase: cutlass.Int32, stages: cutlass.Constexpr):
    """The pipeline's next stage. The phase of its mbarriers flips at each wrap-around."""
    stage = stage + 1
    if stage == stages:
        stage = 0
        phase = phase ^ 1
    return stage, phase


@cute.jit
def stage_after(stage: cutlass.Int32, phase: cutlass.Int32, steps: cutlass.Int32, stages: cutlass.Constexpr):
    """The pipeline's stage and phase after ``steps`` more steps."""
    stage = stage + steps
    phase = phase ^ (stage // stages & 1)
    return stage % stages, phase
