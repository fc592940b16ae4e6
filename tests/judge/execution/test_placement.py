"""Tensors may lie anywhere: the rewritten build points at them, and what is written beside them is found."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.artifact import Build, KernelInfo, Launch, LaunchPlan, Relocation
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.execution.buffers import Buffers, random_poison
from cutegen_lab.judge.execution.placement import (
    ALIGNMENT_BYTES,
    Placement,
    relocated_build,
    reversed_placement,
    shuffled_placement,
)

X, Y, OUT, SCRATCH = map(TensorSpec.parse, ("x: f32[5]", "y: bf16[3]", "out: f32[7]", "scratch: i32[2]"))
WORKLOAD = Workload("w", (X, Y), (OUT,))


def build() -> Build:
    relocations = tuple(Relocation(i, 0, i, 4 * i) for i in range(4))
    launch = Launch("k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, (bytes(8),) * 4, relocations)
    kernels = (KernelInfo("k", 16, 0, 0, 0, 0, (8,) * 4),)
    return Build(WORKLOAD.signature, "sm_90a", b"", "", kernels, LaunchPlan((launch,), (SCRATCH,)), inputs=2)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def buffers(placement: Placement | None) -> Buffers:
    return Buffers(WORKLOAD, build(), [torch.arange(5.0), torch.ones(3, dtype=torch.bfloat16)], 0x7B, placement, 9)


def test_relocations_follow_their_tensors() -> None:
    place = reversed_placement(4, generator())
    moved = relocated_build(build(), place, 2).plan.launches[0].relocations
    assert [r.tensor for r in moved] == [3, 2, 1, 0]
    assert [r.tensor_offset for r in moved] == [4 * i + place.offsets[i] for i in range(4)]
    assert [(r.param, r.offset) for r in moved] == [(i, 0) for i in range(4)]


def test_inputs_are_recorded_only_while_they_come_first() -> None:
    mixed = relocated_build(build(), Placement((2, 0, 1, 3), (0,) * 4), 2)
    assert mixed.inputs is None and mixed.plan.workspace == ()
    kept = relocated_build(build(), Placement((1, 0, 3, 2), (0,) * 4), 2)
    assert kept.inputs == 2


def test_offsets_are_aligned_to_16_bytes_and_seldom_to_more() -> None:
    offsets = [o for seed in range(50) for o in shuffled_placement(4, 2, generator(seed)).offsets]
    assert all(o > 0 and o % ALIGNMENT_BYTES == 0 for o in offsets)
    assert sum(o % 32 != 0 for o in offsets) > len(offsets) / 3
    assert sum(o % 512 == 0 for o in offsets) < len(offsets) / 10


def test_every_order_comes_and_outputs_lie_before_inputs_often() -> None:
    orders = [shuffled_placement(4, 2, generator(seed)).order for seed in range(200)]
    assert len(set(orders)) > 15
    assert 40 < sum(order.index(2) < order.index(0) for order in orders) < 160


def test_a_device_sees_the_tensors_where_the_build_says() -> None:
    for placement in (None, reversed_placement(4, generator(3)), shuffled_placement(4, 2, generator(4))):
        one = buffers(placement)
        seen = {}
        for r in one.build.plan.launches[0].relocations:
            start = r.tensor_offset - 4 * r.param
            seen[r.param] = bytes(one.views[r.tensor][start : start + one.tensors[r.tensor].nbytes])
        assert seen[0] == torch.arange(5.0).numpy().tobytes()
        assert seen[1] == bytes.fromhex("803f") * 3
        assert seen[2] == b"\x7b" * 28 and seen[3] == b"\x7b" * 8
        assert one.modified_input() is None and one.broken_guard() is None


def test_outputs_are_read_where_they_were_written() -> None:
    one = buffers(reversed_placement(4, generator()))
    where = one.build.plan.launches[0].relocations[2]
    start = where.tensor_offset - 8
    one.views[where.tensor][start : start + 28] = torch.full((7,), 2.5).numpy().tobytes()
    assert torch.equal(one.outputs[0], torch.full((7,), 2.5))
    assert not bool(one.unwritten(0).any())


def test_a_byte_written_beside_a_tensor_is_found_on_both_sides() -> None:
    for side in (0, -1):
        one = buffers(reversed_placement(4, generator()))
        position = one.tensors.index(OUT)
        one.views[position][side] ^= 1
        assert one.broken_guard() == "out" and one.modified_input() is None


@pytest.mark.parametrize("byte", range(20))
def test_a_changed_input_is_named(byte: int) -> None:
    one = buffers(shuffled_placement(4, 2, generator(1)))
    where = one.build.plan.launches[0].relocations[0]
    one.views[where.tensor][where.tensor_offset + byte] ^= 1
    assert one.modified_input() == "x" and one.broken_guard() is None


def test_a_secret_poison_is_a_large_finite_number() -> None:
    values = {random_poison(generator(seed)) for seed in range(100)}
    assert len(values) > 10
    for byte in values:
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            number = torch.full((8,), byte, dtype=torch.uint8).view(dtype)
            assert bool(number.isfinite().all()) and float(number[0]) > 40
