"""What the DSL makes of layouts: cases on standard input, its answers on standard output, both JSON.

A process of its own, because only the cage and such processes may import cutlass.
"""

from __future__ import annotations

import json
import sys

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import OperandMajorMode, warp, warpgroup

NUMERIC = {
    "f16": cutlass.Float16, "bf16": cutlass.BFloat16, "tf32": cutlass.TFloat32, "i8": cutlass.Int8, "u8": cutlass.Uint8,
    "f8e4m3fn": cutlass.Float8E4M3FN, "f8e5m2": cutlass.Float8E5M2,
}  # fmt: skip
SM90_OPS = {
    "f16": warpgroup.MmaF16BF16Op, "bf16": warpgroup.MmaF16BF16Op, "f8e4m3fn": warpgroup.MmaF8Op,
    "f8e5m2": warpgroup.MmaF8Op, "i8": warpgroup.MmaI8Op, "u8": warpgroup.MmaI8Op,
}  # fmt: skip


def made(parts):
    """A layout of ``[shape, stride]``, one with a swizzle of ``[shape, stride, [bits, base, shift], offset]``."""
    layout = cute.make_layout(nested(parts[0]), stride=nested(parts[1]))
    if len(parts) == 2:
        return layout
    return cute.make_composed_layout(cute.make_swizzle(*parts[2]), parts[3], layout)


def nested(value):
    return tuple(map(nested, value)) if isinstance(value, list) else value


def tiler(value):
    """A number, ``{"layout": [shape, stride]}``, or a list of these."""
    if isinstance(value, dict):
        return made(value["layout"])
    return tuple(map(tiler, value)) if isinstance(value, list) else value


def atom(case):
    """Thread-value layouts of a tensor-core instruction: of A (from registers), B and C."""
    dtype, shape = NUMERIC[case["dtype"]], tuple(case["shape"])
    wide = cutlass.Int32 if case["dtype"] in ("i8", "u8") else cutlass.Float32
    if case["arch"] == "sm90":
        kinds = (dtype, dtype) if SM90_OPS[case["dtype"]] is not warpgroup.MmaF16BF16Op else (dtype,)
        k_major = OperandMajorMode.K
        op = SM90_OPS[case["dtype"]](*kinds, wide, shape, warpgroup.OperandSource.RMEM, k_major, k_major)
    elif case["dtype"] == "tf32":
        op = warp.MmaTF32Op(shape)
    elif case["dtype"].startswith("f8"):
        op = warp.MmaFP8Op(dtype, wide, shape)
    else:
        op = warp.MmaF16BF16Op(dtype, wide, shape)
    tiled = cute.make_tiled_mma(op)
    found = {"A": tiled.tv_layout_A, "B": tiled.tv_layout_B, "C": tiled.tv_layout_C}
    return {name: {"shape": layout.shape, "stride": layout.stride} for name, layout in found.items()}


def smem_atom(case):
    """A layout atom of wgmma's operands. The DSL swizzles addresses, not indices, through its pointers."""
    kind = getattr(warpgroup.SmemLayoutAtomKind, case["kind"])
    made_atom = warpgroup.make_smem_layout_atom(kind, NUMERIC[case["dtype"]])
    inner = made_atom.inner
    plain = made_atom.outer
    swizzle = [inner.num_bits, inner.num_base, inner.num_shift]
    return {"swizzle": swizzle, "shape": plain.shape, "stride": plain.stride}


def answered(case):
    if case["operation"] in ("atom", "smem_atom"):
        return atom(case) if case["operation"] == "atom" else smem_atom(case)
    operation, layout = case["operation"], made(case["layout"])
    if operation == "evaluate":
        result = layout
    elif operation == "idx2crd":
        return {"coordinates": [cute.idx2crd(index, layout.shape) for index in range(cute.size(layout))]}
    elif operation in ("coalesce", "right_inverse"):
        result = getattr(cute, operation)(layout)
    elif operation == "complement":
        result = cute.complement(layout, case["second"])
    elif operation == "thread_value":
        tile, result = cute.make_layout_tv(layout, tiler(case["second"]))
        return {"tile": tile, **told(result)}
    else:
        result = getattr(cute, operation)(layout, tiler(case["second"]))
    return told(result)


def told(result):
    indices = [int(result(at)) for at in range(cute.size(result))]
    found = {"cosize": cute.cosize(result), "indices": indices}
    plain = getattr(result, "outer", result)
    return {**found, "shape": plain.shape, "stride": plain.stride}


def main():
    answers = []

    @cute.jit
    def evaluated():
        for_each(json.load(sys.stdin), answers)

    evaluated()
    json.dump(answers, sys.stdout)


def for_each(cases, answers):
    for case in cases:
        try:
            answers.append(answered(case))
        except Exception as error:
            answers.append({"refused": f"{type(error).__name__}: {error}"[:300]})


if __name__ == "__main__":
    main()
