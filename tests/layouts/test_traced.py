"""Types of the DSL's trace as layouts."""

from __future__ import annotations

from cutegen_lab.core.artifact import TracedLayout
from cutegen_lab.layouts.traced import MadeLayout, made_layouts


def test_each_layout_once_with_its_lines_tensors_first() -> None:
    traced = [
        TracedLayout(7, '!cute.layout<"(8,64):(64,1)">'),
        TracedLayout(9, '!cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">'),
        TracedLayout(3, '!cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(8,64):(64,1)">'),
        TracedLayout(5, '!cute.memref<f32, smem, align<16>, "S<5,0,5> o 0 o (32,32):(32,1)">'),
        TracedLayout(8, '!cute.layout<"(8,64):(64,1)">'),
    ]
    assert made_layouts(traced) == (
        MadeLayout("Sw<3,3,3> o 0 o (8,64):(64,1)", "bf16", (3,), "tensor in shared memory"),
        MadeLayout("Sw<5,0,5> o 0 o (32,32):(32,1)", "f32", (5,), "tensor in shared memory"),
        MadeLayout("Sw<3,4,3> o 0 o (8,64):(64,1)", "", (9,), "layout"),
        MadeLayout("(8,64):(64,1)", "", (7, 8), "layout"),
    )


def test_a_pointers_swizzle_is_of_addresses() -> None:
    (made,) = made_layouts([TracedLayout(3, '!cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(8,64):(64,1)">')])
    picture = made.picture()
    assert "on byte addresses it is Sw<3,4,3>" in picture.summary and len(picture.panels) == 2


def test_what_cannot_be_drawn_is_left_out() -> None:
    for kind in (
        '!cute.layout<"(?,64):(64,1)">', '!cute.layout<"(4,5):(1@0,1@1)">', "!cute.layout<nonsense>", "x",
        '!cute.memref<f4E2M1FN, smem, align<16>, "(8):(1)">',
        '!cute.memref<bf16, smem, S<3,0,3>, "(8,64):(64,1)">', MMA.replace("16x8x16", "16x8x64"),
        COPY.replace("[64:1;32:1]", "[64:2;32:1]"), COPY.replace("[64:1;32:1]", "[8:1;32:1]"),
    ):  # fmt: skip
        assert made_layouts([TracedLayout(1, kind)]) == (), kind


COPY = 'layout_copy_tv = <"((4,8,4),((2,2,4),(1,1))):((128,1,16),((64,8,512),(0,0)))">, tiler_mn = <"[64:1;32:1]">'
BOX = (
    '!cute_nvgpu.atom.tma_load<bf16, copy_bits = 32768, mode = tiled, num_cta = 1, g_stride = <"()"> '
    'tma_gbasis = <"(64,32):(1@1,1@0)">>'
)
WGMMA = "!cute_nvgpu.sm90.mma<64x32x16, ab_major = (k, k), elem_type = (bf16, bf16, f32), frag_kind = ss>"
MMA = "!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >"


def test_a_tiled_copy_is_drawn_by_its_threads_and_values() -> None:
    (made,) = made_layouts([TracedLayout(4, COPY)])
    assert (made.what, made.lines) == ("tiled copy of 64x32", (4,))
    facts = made.picture().facts
    assert (facts["threads"], facts["values"], len(facts["owners"])) == (128, 16, 64 * 32)
    assert [0, 0, 0, 0] in facts["owners"] and [8, 1, 0, 3] in facts["owners"]


def test_a_box_has_the_swizzle_of_the_tensor_that_its_line_copies_and_is_left_out_without_one() -> None:
    def tensor(swizzle: str, line: int = 9) -> TracedLayout:
        return TracedLayout(line, f'!cute.memref<bf16, smem, align<1024>, {swizzle}"(8,64):(64,1)">')

    box = TracedLayout(9, BOX)
    found = made_layouts([tensor("S<2,4,3>, ", 3), tensor("S<3,4,3>, "), box])
    assert [made.layout for made in found if made.kind == "TMA box"] == ["32x64 bf16 128B"]
    assert made_layouts([box]) == ()
    both = made_layouts([tensor("S<3,4,3>, "), tensor("S<2,4,3>, "), box])
    assert [made.kind for made in both] == ["tensor in shared memory"] * 2


def test_a_tensor_core_instruction_has_the_operands_that_are_in_registers() -> None:
    assert [m.layout for m in made_layouts([TracedLayout(1, WGMMA)])] == ["sm90 64x32x16 bf16 C"]
    from_registers = made_layouts([TracedLayout(1, WGMMA.replace("= ss", "= rs"))])
    assert [m.layout for m in from_registers] == ["sm90 64x32x16 bf16 A-registers", "sm90 64x32x16 bf16 C"]
    warps = made_layouts([TracedLayout(1, MMA)])
    assert [m.layout.split()[-1] for m in warps] == ["A", "B", "C"]
    assert warps[2].picture().facts["threads"] == 32


def test_an_element_that_several_threads_hold_says_so() -> None:
    kind = 'layout_copy_tv = <"((4,8,2),((2,2,2),(1,1))):((32,1,0),((16,8,128),(0,0)))">, tiler_mn = <"[16:1;16:1]">'
    (made,) = made_layouts([TracedLayout(4, kind)])
    picture = made.picture()
    assert "Each element is held 2 times" in picture.summary
    assert max(thread for _, _, thread, _ in picture.facts["owners"]) == 31
