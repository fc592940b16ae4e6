"""Recordings become plans, or say why not; no DSL needed."""

from __future__ import annotations

import struct

import pytest

from cutegen_lab.compile.plan import PlanError, Recording, build_plan
from cutegen_lab.compile.ptx import Entry, Param, entries
from cutegen_lab.compile.record import layouts
from cutegen_lab.compile.wire import RECORDINGS
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Verdict

X, Y = TensorSpec.parse("x: f32[64]"), TensorSpec.parse("y: f32[64]")
BASES = ((0x5000_0000_0000, 0x5001_0000_0000), (0x5003_0000_0030, 0x5002_0000_0010))


def entry(size: int, live: bytes | None = None) -> Entry:
    return Entry("k", (Param("k_param_0", size, 8, live or b"\x01" * size, False),))


def recordings(*blobs: bytes, launch: str = "launch k 2 1 1 32 1 1 0", error: int = 0) -> list[Recording]:
    return [Recording(b, error, f"{launch}\nparam {p.hex()}\n") for b, p in zip(BASES, blobs, strict=True)]


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def test_addresses_become_relocations_and_constants_stay() -> None:
    blobs = [words(7, b[1] + 16, b[0]) for b in BASES]
    (launch,) = build_plan(recordings(*blobs), (entry(24),), (X, Y), ()).launches
    assert [(r.offset, r.tensor, r.tensor_offset) for r in launch.relocations] == [(8, 1, 16), (16, 0, 0)]
    assert launch.params == (words(7, 0, 0),)


def test_an_address_need_only_be_aligned_to_four_bytes() -> None:
    blobs = [struct.pack("<IQ", 3, b[0]) for b in BASES]
    (launch,) = build_plan(recordings(*blobs), (entry(12),), (X, Y), ()).launches
    assert [(r.offset, r.tensor) for r in launch.relocations] == [(4, 0)]


def test_bytes_no_kernel_reads_do_not_matter() -> None:
    live = b"\x01" * 8 + b"\x00" * 8
    plan = build_plan(recordings(words(1, 2), words(1, 3)), (entry(16, live),), (X, Y), ())
    assert plan.launches[0].params == (words(1, 0),)


@pytest.mark.parametrize(
    ("blobs", "why"),
    [
        ((words(1), words(2)), "byte 0"),
        ((words(BASES[0][0]), words(BASES[1][1])), "byte"),  # another tensor in each
        ((words(BASES[0][0]), words(BASES[0][0])), "byte"),  # an address kept from the first run
        ((words(BASES[0][0] >> 4), words(BASES[1][0] >> 4)), "byte"),  # an address in disguise
    ],
)
def test_what_depends_on_addresses_otherwise_is_unstable(blobs: tuple[bytes, bytes], why: str) -> None:
    if blobs[0] == blobs[1]:
        assert not build_plan(recordings(*blobs), (entry(8),), (X, Y), ()).launches[0].relocations
        return
    with pytest.raises(PlanError, match=why) as caught:
        build_plan(recordings(*blobs), (entry(8),), (X, Y), ())
    assert caught.value.verdict is Verdict.UNSTABLE_PLAN


@pytest.mark.parametrize(
    ("launch", "error", "verdict"),
    [
        ("launch k 0 1 1 32 1 1 0", 0, Verdict.INVALID_PLAN),
        ("launch k 2 1 1 32 1 1 0\nastray", 0, Verdict.CONTRACT),
        ("launch other 1 1 1 32 1 1 0", 0, Verdict.COMPILE_CRASH),
        ("launch k 1 1 1", 0, Verdict.COMPILE_CRASH),
        ("launch k 1 1 1 32 1 1 -5", 0, Verdict.COMPILE_CRASH),
        ("refused cudaMemsetAsync\nlaunch k 1 1 1 32 1 1 0", 0, Verdict.CONTRACT),
        ("undeclared k", 0, Verdict.COMPILE_CRASH),
        ("launch k 1 1 1 32 1 1 0", 801, Verdict.CONTRACT),
    ],
)
def test_recordings_that_make_no_plan(launch: str, error: int, verdict: Verdict) -> None:
    with pytest.raises(PlanError) as caught:
        build_plan(recordings(words(1), words(1), launch=launch, error=error), (entry(8),), (X, Y), ())
    assert caught.value.verdict is verdict


def test_attributes_keep_only_the_bytes_that_mean_something() -> None:
    def log(junk: str) -> str:
        cluster = "020000000100000001000000" + junk * 52
        return f"launch k 2 1 1 32 1 1 0\nattribute 4 {cluster}\nattribute 6 01000000{junk * 60}\n" \
               f"attribute 2 00000000{junk * 60}\nparam {words(1).hex()}\n"  # fmt: skip

    pair = [Recording(BASES[0], 0, log("aa")), Recording(BASES[1], 0, log("bb"))]
    (launch,) = build_plan(pair, (entry(8),), (X, Y), ()).launches
    assert launch.cluster == (2, 1, 1)
    assert launch.attributes == {6: b"\x01\x00\x00\x00"}


def test_ptx_parameters_and_the_bytes_a_kernel_sees() -> None:
    ptx = """
.visible .entry k(
    .param .align 8 .b8 k_param_0[24],
    .param .u32 k_param_1,
    .param .align 64 .b8 k_param_2[128]
)
{
    ld.param.b64 %rd1, [k_param_0+8];
    ld.param.v2.b32 {%r1, %r2}, [k_param_0+16];
    mov.b64 %rd2, k_param_2;
    prefetch.tensormap [%rd2];
}
.visible .entry other()
{ ret; }
"""
    first, second = entries(ptx)
    assert [p.size for p in first.params] == [24, 4, 128] and second.params == ()
    assert first.params[0].live == bytes(8) + b"\x01" * 16
    assert not any(first.params[1].live)
    assert first.params[2].is_descriptor and first.params[2].live == b"\x01" * 64 + bytes(64)
    assert entries("") == ()


def test_a_tensor_map_may_begin_far_outside_its_tensor() -> None:
    """Ragged tensors: copies add coordinates that come back into it. A pointer may not."""
    far = [b[0] - (1 << 38) for b in BASES]
    blobs = [words(address, *range(15)) for address in far]
    (launch,) = build_plan(recordings(*blobs), (entry(128),), (X, Y), ()).launches
    assert [(r.offset, r.tensor, r.tensor_offset) for r in launch.relocations] == [(0, 0, -(1 << 38))]
    with pytest.raises(PlanError, match="byte"):
        build_plan(recordings(*(words(address) for address in far)), (entry(8),), (X, Y), ())


def test_a_host_call_that_the_driver_would_refuse_is_quoted() -> None:
    log = "invalid cuTensorMapEncodeTiled a stride that is no multiple of 16 bytes below 2^40\n"
    with pytest.raises(
        PlanError, match=r"launch\(\) calls cuTensorMapEncodeTiled with a stride that is no multiple"
    ) as caught:
        build_plan([Recording(b, 1, log) for b in BASES], (entry(8),), (X, Y), ())
    assert caught.value.verdict is Verdict.CONTRACT


def test_what_follows_from_a_remainder_of_an_address_differs_in_one_of_several_recordings() -> None:
    """Two of a few remainders are often alike."""
    launches = [Recording(BASES[i % 2], 0, f"launch k {grid} 1 1 32 1 1 0\nparam {words(7).hex()}\n")
                for i, grid in enumerate((2, 2, 2, 5, 2, 2))]  # fmt: skip
    with pytest.raises(PlanError, match="two recordings ask for different launches"):
        build_plan(launches, (entry(8),), (X, Y), ())
    alike = [launches[0], launches[1], launches[2]]
    assert build_plan(alike, (entry(8),), (X, Y), ()).launches[0].grid == (2, 1, 1)


def test_tensors_lie_elsewhere_and_in_another_order_in_each_recording() -> None:
    _, places = layouts((X, Y, X))
    assert len(places) == RECORDINGS and len({tuple(offsets) for offsets, _ in places}) == RECORDINGS
    assert all(offset % 16 == 0 for offsets, _ in places for offset in offsets)
