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
        MadeLayout("Sw<3,3,3> o 0 o (8,64):(64,1)", "bf16", (3,)),
        MadeLayout("Sw<5,0,5> o 0 o (32,32):(32,1)", "f32", (5,)),
        MadeLayout("(8,64):(64,1)", "", (7, 8)),
        MadeLayout("Sw<3,4,3> o 0 o (8,64):(64,1)", "", (9,)),
    )


def test_a_pointers_swizzle_is_of_addresses() -> None:
    (made,) = made_layouts([TracedLayout(3, '!cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(8,64):(64,1)">')])
    picture = made.picture()
    assert "of byte addresses it is Sw<3,4,3>" in picture.summary and len(picture.panels) == 2


def test_what_cannot_be_drawn_is_left_out() -> None:
    for kind in (
        '!cute.layout<"(?,64):(64,1)">', '!cute.layout<"(4,5):(1@0,1@1)">', "!cute.layout<nonsense>", "x",
        '!cute.memref<f4E2M1FN, smem, align<16>, "(8):(1)">',
        '!cute.memref<bf16, smem, S<3,0,3>, "(8,64):(64,1)">',
    ):  # fmt: skip
        assert made_layouts([TracedLayout(1, kind)]) == (), kind
