"""Builds a plan around hand-written PTX and runs it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from cutegen_lab.core.artifact import Build, Launch, LaunchPlan, Relocation, SourceLine
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.emulator import Options, Result, run_plan

HEADER = ".version 8.8\n.target sm_90a\n.address_size 64\n"
REGISTERS = """
  .reg .pred %p<10>; .reg .b16 %rs<20>; .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<40>; .reg .f64 %fd<10>;
"""


def kernel(body: str, params: int, declarations: str = "", before: str = "") -> str:
    """A kernel ``k`` whose 64-bit parameters are in %rd1, %rd2, … and whose linear thread number is in %r1."""
    names = ", ".join(f".param .b64 p{i}" for i in range(params))
    loads = "\n".join(f"  ld.param.b64 %rd{i + 1}, [p{i}];" for i in range(params))
    thread = "  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r1, %r2, %r3, %r1;"
    return f"{HEADER}{before}\n.visible .entry k({names})\n{{{REGISTERS}{declarations}\n{loads}\n{thread}\n{body}\n}}\n"


def build(
    ptx: str, tensors: Sequence[np.ndarray], *, grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int],
    cluster: tuple[int, int, int] = (1, 1, 1), smem: int = 0, lines: Sequence[SourceLine] = (), launches: int = 1,
) -> Build:  # fmt: skip
    relocations = tuple(Relocation(i, 0, i, 0) for i in range(len(tensors)))
    launch = Launch("k", grid, block, cluster, smem, (bytes(8),) * len(tensors), relocations)
    return Build("s", "sm_90a", b"", ptx, (), LaunchPlan((launch,) * launches), tuple(lines))


def run(ptx: str, tensors: Sequence[np.ndarray], *, inputs: int | None = None, options: Options | None = None, **launch) -> Result:  # type: ignore[no-untyped-def]  # fmt: skip  # noqa: E501
    """Runs ``ptx`` on ``tensors`` in place; the first ``inputs`` hold data (None: all)."""
    made = build(ptx, tensors, **launch)
    specs = [TensorSpec(f"t{i}", DType.U8, (t.nbytes,)) for i, t in enumerate(tensors)]
    views = [memoryview(t.reshape(-1).view(np.uint8)) for t in tensors]
    return run_plan(made, specs, views, threading.Event(), options, inputs)


def evaluate(  # type: ignore[type-arg]
    code: str, columns: Sequence[np.ndarray], out: type | np.dtype, options: Options | None = None
) -> np.ndarray:
    """Runs ``code`` once a thread and returns what it leaves in the result register.

    Operand ``i`` is %rsA/%rA/%rdA with A = 10 + i by its width (bits, whatever its type); the result register is %rs9,
    %r9 or %rd9 by ``out``'s width, or %p9 for bool.
    """
    count = len(columns[0])
    assert all(len(c) == count for c in columns)
    lines = []
    for i, column in enumerate(columns):
        bits = column.dtype.itemsize * 8
        name = {16: "%rs", 32: "%r", 64: "%rd"}[bits]
        lines.append(f"  mul.wide.u32 %rd30, %r1, {bits // 8}; add.s64 %rd30, %rd30, %rd{i + 1};")
        lines.append(f"  ld.global.b{bits} {name}{10 + i}, [%rd30];")
    lines.append(code)
    wanted = np.dtype(out)
    width = wanted.itemsize * 8
    if wanted == np.bool_:
        lines.append("  selp.b32 %r9, 1, 0, %p9;")
        width = 32
    name = {16: "%rs", 32: "%r", 64: "%rd"}[width]
    lines.append(f"  mul.wide.u32 %rd30, %r1, {width // 8}; add.s64 %rd30, %rd30, %rd{len(columns) + 1};")
    lines.append(f"  st.global.b{width} [%rd30], {name}9;\n  ret;")
    result = np.zeros(count, f"u{width // 8}")
    ptx = kernel("\n".join(lines), len(columns) + 1)
    ran = run(ptx, [np.ascontiguousarray(c) for c in columns] + [result], block=(count, 1, 1), options=options)
    assert ran.execution.fault is None, ran.execution.fault
    return result.astype(np.bool_) if wanted == np.bool_ else result.view(wanted)
