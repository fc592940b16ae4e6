"""How a fault is told."""

from __future__ import annotations

from cutegen_lab.core.verdict import Fault, Verdict, quoted


def test_an_instruction_of_many_registers_is_quoted_in_part() -> None:
    registers = ", ".join(f"%f{n}" for n in range(128))
    text = f"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {{{registers}}},\n\t%rd1, %rd2, p, 1, 1, 0, 0;"
    told = str(Fault(Verdict.HANG, "it hangs", line=7, instruction=text))
    assert told.startswith("it hangs [line 7, at `wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%f0, %f1,")
    assert told.endswith("%rd1, %rd2, p, 1, 1, 0, 0;`]") and len(told) < 170
    assert quoted("ld.shared.v4.b32\t{%r1, %r2, %r3, %r4}, [%r5];") == "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];"
