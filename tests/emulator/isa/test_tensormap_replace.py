"""tensormap.replace and tensormap.cp_fenceproxy: the tensor map afterwards, decoded as the driver's own are."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.tma.tensor_map import SIZE, TensorMap, decode
from tests.emulator.ptx_kernel import kernel, run
from tests.emulator.tma.driver_maps import LINES

SHARED = "  .shared .align 128 .b8 room[128];\n"
MAP = next(bytes.fromhex(line.rpartition(";")[2].strip()) for line in LINES if line.startswith("rank5"))
ADDRESS = 0x7F12_3456_7890
CASES: list[tuple[str, str, str, dict[str, Any]]] = [  # (field, its dimension, new value, what the map then says)
    ("global_address", "", f"{ADDRESS}", {"address": ADDRESS}),
    ("rank", "", "2", {"rank": 3}),
    ("global_dim", "0, ", "77", {"sizes": (0, 77)}),
    ("global_dim", "4, ", "1", {"sizes": (4, 1)}),
    ("global_stride", "0, ", "4096", {"strides": (1, 4096)}),
    ("global_stride", "3, ", f"{(1 << 36) + 32}", {"strides": (4, (1 << 36) + 32)}),
    ("box_dim", "0, ", "32", {"box": (0, 32)}),
    ("box_dim", "3, ", "5", {"box": (3, 5)}),
    ("element_stride", "1, ", "3", {"steps": (1, 3)}),
    ("element_stride", "4, ", "8", {"steps": (4, 8)}),
    ("elemtype", "", "1", {"dtype": "u16"}),
    ("swizzle_mode", "", "0", {"swizzle": 16}),
    ("fill_mode", "", "1", {"fill_nan": True}),
]


def changed(body: str) -> tuple[bytes, Any]:
    """The map at %rd1 after ``body``, and how the run ended."""
    tensor = np.frombuffer(MAP.ljust(SIZE, b"\0"), np.uint8).copy()
    ran = run(kernel(body, 1, SHARED), [tensor], block=(32, 1, 1))
    return tensor.tobytes(), ran.execution.fault


def said(tmap: TensorMap, what: dict[str, Any]) -> TensorMap:
    """``tmap`` with one thing changed: all of a field, or one dimension of it."""
    [(name, value)] = what.items()
    if name == "rank":
        cut = {f: getattr(tmap, f)[:value] for f in ("sizes", "strides", "box", "steps")}
        return dataclasses.replace(tmap, **cut)
    if isinstance(value, tuple):
        at, new = value
        old = getattr(tmap, name)
        value = (*old[:at], new, *old[at + 1 :])
    if name == "dtype":
        return dataclasses.replace(tmap, dtype=value, strides=(2, *tmap.strides[1:]))
    return dataclasses.replace(tmap, **{name: value})


@pytest.mark.parametrize("space", ["global", "shared::cta"])
@pytest.mark.parametrize(("field", "at", "value", "what"), CASES, ids=[f"{c[0]}{c[1][:-2]}" for c in CASES])
def test_a_field_is_replaced(field: str, at: str, value: str, what: dict[str, Any], space: str) -> None:
    wide = field in ("global_address", "global_stride")
    given = value if field in ("elemtype", "swizzle_mode", "fill_mode") else "%rd9" if wide else "%r9"
    form = f"tensormap.replace.tile.{field}.{space}.b1024.{'b64' if wide else 'b32'}"
    replace = f"mov.b64 %rd9, {value}; cvt.u32.u64 %r9, %rd9; @%p1 {form} [{{}}], {at}{given};"
    if space == "global":
        body = f"setp.eq.s32 %p1, %r1, 0; {replace.format('%rd1')} ret;"
    else:
        body = f"""
  setp.eq.s32 %p1, %r1, 0; mov.b32 %r4, room; shl.b32 %r5, %r1, 2; add.s32 %r6, %r4, %r5; cvt.u64.u32 %rd2, %r5;
  add.s64 %rd2, %rd2, %rd1; ld.global.b32 %r7, [%rd2]; st.shared.b32 [%r6], %r7; bar.sync 0;
  {replace.format("%r4")}
  bar.sync 0;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r4], 128;
  ret;"""
    after, fault = changed(body)
    assert fault is None, fault
    assert decode(after[:64]) == said(decode(MAP), what)
    assert after[64:] == bytes(64)


@pytest.mark.parametrize(
    "wrong", ["elemtype.global.b1024.b32 [%rd1], 13", "interleave_layout.global.b1024.b32 [%rd1], 1"]
)
def test_what_no_copy_here_could_use_is_refused(wrong: str) -> None:
    after, fault = changed(f"tensormap.replace.tile.{wrong}; ret;")
    assert fault is not None and fault.verdict is Verdict.UNSUPPORTED
    assert after[:64] == MAP


def test_registers_may_be_vectors() -> None:
    """PTX ISA 5.4.2: whole, as an operand, and by component, under either of its names."""
    tensor = np.zeros(4, np.int32)
    body = """
  { .reg .v4 .b32 abcd; .reg .v2 .b32 two;
  mov.b32 abcd.x, 1; mov.b32 abcd.g, 2; mov.b32 two.x, 3; mov.b32 two.y, 4;
  add.s32 abcd.z, two.r, 0; add.s32 abcd.w, two.g, abcd.x;
  st.global.v4.b32 [%rd1], abcd; }
  ret;"""
    ran = run(kernel(body, 1), [tensor], block=(1, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    assert tensor.tolist() == [1, 2, 3, 5]
