"""mma.sync of every form, against float64 products of matrices laid out by the ISA's formulas, element by element.

The formulas are those of PTX ISA 9.7.14.5.1 to .13, written as the ISA writes them: groupID (g) is lane >> 2, and
threadID_in_group (t) is lane & 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch

from cutegen_lab.core.verdict import Verdict
from tests.emulator.ptx_kernel import kernel, run

Place = Callable[[int, int, int], tuple[int, int]]
BITS = {"f64": 64, "tf32": 32, "f32": 32, "s32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8,
        "s4": 4, "u4": 4, "b1": 1}  # fmt: skip


def low_half(i: int, size: int) -> bool:
    """``0 <= i < size || 2 * size <= i < 3 * size``: the elements of rows below 8."""
    return i // size % 2 == 0


# (row, column) of element i of A, and of B, by the number of k and bits an element.
A: dict[tuple[int, int], Place] = {
    (4, 64): lambda g, t, i: (g if i == 0 else g + 8, t),
    (8, 64): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    (16, 64): lambda g, t, i: (g if i % 2 == 0 else g + 8, i * 2 + t if i % 2 == 0 else i * 2 - 2 + t),
    (4, 32): lambda g, t, i: (g if i == 0 else g + 8, t),
    (8, 32): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    (8, 16): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    (16, 16): lambda g, t, i: (g if low_half(i, 2) else g + 8, t * 2 + (i & 1) + (0 if i < 4 else 8)),
    (16, 8): lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    (32, 8): lambda g, t, i: (g if low_half(i, 4) else g + 8, t * 4 + (i & 3) + (0 if i < 8 else 16)),
    (32, 4): lambda g, t, i: (g if i < 8 else g + 8, t * 8 + (i & 7)),
    (64, 4): lambda g, t, i: (g if low_half(i, 8) else g + 8, t * 8 + (i & 7) + (0 if i < 16 else 32)),
    (128, 1): lambda g, t, i: (g if i < 32 else g + 8, t * 32 + (i & 31)),
    (256, 1): lambda g, t, i: (g if low_half(i, 32) else g + 8, t * 32 + (i & 31) + (0 if i < 64 else 128)),
}
B: dict[tuple[int, int], Place] = {
    (4, 64): lambda g, t, i: (t, g),
    (8, 64): lambda g, t, i: (t if i == 0 else t + 4, g),
    (16, 64): lambda g, t, i: (t + i * 4, g),
    (4, 32): lambda g, t, i: (t, g),
    (8, 32): lambda g, t, i: (t if i == 0 else t + 4, g),
    (8, 16): lambda g, t, i: (t * 2 + i, g),
    (16, 16): lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    (16, 8): lambda g, t, i: (t * 4 + i, g),
    (32, 8): lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
    (32, 4): lambda g, t, i: (t * 8 + i, g),
    (64, 4): lambda g, t, i: (t * 8 + (i & 7) + (0 if i < 8 else 32), g),
    (128, 1): lambda g, t, i: (t * 32 + i, g),
    (256, 1): lambda g, t, i: (t * 32 + (i & 31) + (0 if i < 32 else 128), g),
}


def c_place(g: int, t: int, i: int) -> tuple[int, int]:
    return (g if i < 2 else g + 8), t * 2 + (i & 1)


FORMS = [
    *(f"m16n8k{k}.row.col.{acc}.{t}.{t}.{acc}" for k in (8, 16)
      for t, acc in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"))),
    *(f"m16n8k{k}.row.col.f32.tf32.tf32.f32" for k in (4, 8)),
    *(f"{s}.row.col.f64.f64.f64.f64" for s in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *(f"{s}.row.col{sat}.s32.{a}.{b}.s32" for s in ("m8n8k16", "m16n8k16", "m16n8k32") for sat in ("", ".satfinite")
      for a, b in (("s8", "s8"), ("u8", "s8"), ("u8", "u8"))),
    *(f"{s}.row.col{sat}.s32.{a}.{b}.s32" for s in ("m8n8k32", "m16n8k32", "m16n8k64") for sat in ("", ".satfinite")
      for a, b in (("s4", "s4"), ("s4", "u4"))),
    *(f"{s}.row.col.{acc}.{a}.{b}.{acc}" for s in ("m16n8k16", "m16n8k32") for acc in ("f32", "f16")
      for a, b in (("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"))),
    *(f"{s}.row.col.s32.b1.b1.s32.{op}.popc" for s in ("m8n8k128", "m16n8k128", "m16n8k256") for op in ("xor", "and")),
]  # fmt: skip


def codes(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Random bits of ``kind``, one element an entry, that are numbers of moderate size."""
    if kind in ("f64", "f32", "tf32", "f16", "bf16", "e4m3", "e5m2"):
        values = torch.from_numpy(rng.standard_normal(shape))
        torch_type = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16,
                      "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[kind]  # fmt: skip
        bits = {64: torch.int64, 32: torch.int32, 16: torch.int16, 8: torch.int8}[BITS[kind]]
        return values.to(torch_type).view(bits).numpy().astype(np.uint64) & np.uint64((1 << BITS[kind]) - 1)
    return rng.integers(0, 1 << min(BITS[kind], 24), shape).astype(np.uint64)


def number(code: np.ndarray, kind: str) -> np.ndarray:
    """float64 values of element codes."""
    bits = BITS[kind]
    if kind == "tf32":
        code = code & np.uint64(0xFFFFE000)  # the hardware does not look at the rest
    if kind in ("s8", "s4", "s32"):
        return (code.astype(np.int64) - ((code.astype(np.int64) >> (bits - 1)) << bits)).astype(np.float64)
    if kind in ("u8", "u4", "b1"):
        return code.astype(np.float64)
    raw = torch.from_numpy(code.astype(f"u{bits // 8}").view(f"i{bits // 8}"))
    torch_type = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16,
                  "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[kind]  # fmt: skip
    return raw.view(torch_type).double().numpy()


def fragment(matrix: np.ndarray, place: Place, kind: str, elements: int) -> np.ndarray:
    """Registers [warp, lane, register] that hold ``elements`` of each lane."""
    width = max(BITS[kind], 32)
    a_register = width // BITS[kind]
    out = np.zeros((len(matrix), 32, elements // a_register), f"u{width // 8}")
    for lane in range(32):
        for i in range(elements):
            row, column = place(lane >> 2, lane & 3, i)
            shift = out.dtype.type(i % a_register * BITS[kind])
            out[:, lane, i // a_register] |= matrix[:, row, column].astype(out.dtype) << shift
    return out


def program(form: str, counts: tuple[int, ...], wide: bool, copies: int = 1) -> str:
    """A kernel that loads the fragments of A, B and C, multiplies ``copies`` times and stores D."""
    b, w = ("b64", 8) if wide else ("b32", 4)
    lines, names = [], []
    for tensor, count in enumerate(counts, 1):
        lines.append(f"  mul.wide.u32 %rd30, %r1, {count * w}; add.s64 %rd{10 + tensor}, %rd30, %rd{tensor};")
        names.append([f"%{'xyzd'[tensor - 1]}{i}" for i in range(count)])
        lines += [f"  ld.global.{b} {n}, [%rd{10 + tensor}+{i * w}];" for i, n in enumerate(names[-1]) if tensor < 4]
    a, bs, c, d = ("{" + ", ".join(n) + "}" for n in names)
    lines.append(f"  mma.sync.aligned.{form} {d}, {a}, {bs}, {c};")
    lines += [f"  mma.sync.aligned.{form} {d}, {a}, {bs}, {d};" for _ in range(copies - 1)]
    lines += [f"  st.global.{b} [%rd14+{i * w}], {n};" for i, n in enumerate(names[3])]
    declared = "".join(f".reg .{b} {', '.join(n)};\n" for n in names)
    return kernel("\n".join(lines) + "\n  ret;", 4, declarations=declared)


def kinds_of(form: str) -> list[str]:
    """Element types of D, A, B and C."""
    return re.findall(r"\.(f64|tf32|f32|s32|f16|bf16|[su][84]|e[45]m[32]|b1)(?=\.|$)", form)


def operands(form: str, rng: np.random.Generator, warps: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(codes of A, B, C by warp, their fragments)."""
    m, n, k = (int(x) for x in re.findall(r"\d+", form)[:3])
    kinds = kinds_of(form)
    matrices = [np.stack([codes(rng, kind, shape) for _ in range(warps)])
                for kind, shape in zip(kinds[1:], ((m, k), (k, n), (m, n)), strict=True)]  # fmt: skip
    places = (A[k, BITS[kinds[1]]], B[k, BITS[kinds[2]]], c_place)
    sizes = (m * k // 32, k * n // 32, m * n // 32)
    return matrices, [fragment(x, p, kind, s) for x, p, kind, s in zip(matrices, places, kinds[1:], sizes, strict=True)]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_multiplies(form: str) -> None:
    rng, warps = np.random.default_rng(len(form)), 3
    (a, b, c), fragments = operands(form, rng, warps)
    kinds = kinds_of(form)
    result = np.zeros_like(fragments[2])
    ptx = program(form, tuple(f.shape[2] for f in (*fragments, result)), kinds[0] == "f64")
    ran = run(ptx, [*fragments, result], block=(32 * warps, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    left, right = number(a, kinds[1]), number(b, kinds[2])
    if "xor" in form:
        differ = [(x[:, :, None] != y[None]).sum(1) for x, y in zip(left, right, strict=True)]
        exact = np.stack(differ) + number(c, "s32")
    else:
        exact = left @ right + number(c, kinds[3])
    got = np.zeros_like(exact)
    a_register = 1 if kinds[0] == "f64" else 32 // BITS[kinds[0]]
    for lane in range(32):
        for i in range(c.shape[1] * c.shape[2] // 32):
            raw = result[:, lane, i // a_register] >> result.dtype.type(i % a_register * BITS[kinds[0]])
            row, column = c_place(lane >> 2, lane & 3, i)
            got[:, row, column] = number(raw.astype(np.uint64) & np.uint64((1 << BITS[kinds[0]]) - 1), kinds[0])
    if kinds[0] == "s32":
        assert (got == exact).all()
        return
    scale = np.abs(left) @ np.abs(right) + np.abs(number(c, kinds[3]))
    eps = {"f32": 2.0**-22, "f16": 2.0**-10, "f64": 2.0**-50}[kinds[0]]
    assert (np.abs(got - exact) <= eps * scale).all()
    operations = {k: v for k, v in ran.per_launch[0].items() if k.startswith("tensor_ops")}
    size = 2 * left.shape[1] * left.shape[2] * right.shape[2] * warps
    assert operations == {"tensor_ops": size, f"tensor_ops_{kinds[1]}": size}
    assert ran.per_launch[0]["warp_instructions_tensor"] == warps


@pytest.mark.parametrize(("sat", "want"), [("", -(2**31) + 9), (".satfinite", 2**31 - 1)])
def test_integer_sums_wrap_or_saturate(sat: str, want: int) -> None:
    form = f"m16n8k32.row.col{sat}.s32.s8.s8.s32"
    a, b = np.zeros((1, 32, 4), np.uint32), np.zeros((1, 32, 2), np.uint32)
    a[0, ::4, 0] = b[0, ::4, 0] = 10  # ten by ten, in k = 0
    c = np.full((1, 32, 4), 2**31 - 91, np.uint32)
    d = np.zeros_like(c)
    assert run(program(form, (4, 2, 4, 4), False), [a, b, c, d], block=(32, 1, 1)).execution.fault is None
    assert d.view(np.int32)[0, 0, 0] == want


def test_sums_of_half_precision_are_rounded_at_each_step() -> None:
    """2048 + 1 is 2048 in f16, however often it is done."""
    a, b = np.zeros((1, 32, 4), np.uint32), np.zeros((1, 32, 2), np.uint32)
    a[0, ::4, 0] = b[0, ::4, 0] = np.array(1, np.float16).view(np.uint16)
    c = np.full((1, 32, 2), np.array([2048, 2048], np.float16).view(np.uint32), np.uint32)
    d = np.zeros_like(c)
    ptx = program("m16n8k16.row.col.f16.f16.f16.f16", (4, 2, 2, 2), False, copies=3)
    assert run(ptx, [a, b, c, d], block=(32, 1, 1)).execution.fault is None
    assert set(d.view(np.float16).ravel().tolist()) == {2048.0}


GOOD = "m16n8k16.row.col.f32.bf16.bf16.f32"


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("m8n8k4.row.col.f32.f16.f16.f32", "m8n8k4"),
        ("m16n8k16.row.row.f32.bf16.bf16.f32", "mma"),
        ("m16n8k16.row.col.f16.bf16.bf16.f16", "bf16"),
        ("m16n8k32.row.col.f32.f16.f16.f32", "m16n8k32"),
        ("m16n8k16.row.col.satfinite.f32.f16.f16.f32", "satfinite"),
        ("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32", "kind"),
        ("m16n8k256.row.col.s32.b1.b1.s32", "b1"),
        ("m16n8k16.row.col.f32.f16.bf16.f32", "bf16"),
    ],
)
def test_an_unknown_form_is_refused_by_name(form: str, words: str) -> None:
    ptx = program(form, (4, 2, 4, 4), False)
    tensors = [np.zeros((1, 32, n), np.uint32) for n in (4, 2, 4, 4)]
    fault = run(ptx, tensors, block=(32, 1, 1)).execution.fault
    assert fault is not None and fault.verdict is Verdict.UNSUPPORTED and words in fault.message, fault
    assert "mma.sync" in fault.instruction


@pytest.mark.parametrize(("threads", "guard", "words"), [(48, "", "16 run"), (32, "@%p1 ", "31 of the 32")])
def test_a_warp_must_be_whole(threads: int, guard: str, words: str) -> None:
    ptx = program(GOOD, (4, 2, 4, 4), False).replace("  mma", f"  setp.ne.u32 %p1, %r1, 7; {guard}mma")
    tensors = [np.zeros((2, 32, n), np.uint32) for n in (4, 2, 4, 4)]
    fault = run(ptx, tensors, block=(threads, 1, 1)).execution.fault
    assert fault is not None and fault.verdict is Verdict.BARRIER_DIVERGENCE and words in fault.message, fault
    assert fault.instruction.startswith(f"{guard}mma.sync")
