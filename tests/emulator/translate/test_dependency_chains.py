"""Chains of dependent results, and bytes of cp.async in flight, on kernels of a few instructions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.ptx_kernel import kernel, run

SHARED = "  .shared .align 128 .b8 tile[16384];\n"


def counted(body: str) -> dict[str, float]:
    """Of two warps."""
    ran = run(kernel(body, 1, SHARED), [np.zeros(1 << 14, np.uint8)], block=(64, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    return dict(ran.per_launch[0])


def fma(accumulators: int, each: int) -> str:
    rows = (f"fma.rn.f32 %f{i}, %f{i}, %f{i}, %f{i};" for _ in range(each) for i in range(accumulators))
    return "\n".join(rows)


@pytest.mark.parametrize(("accumulators", "each"), [(1, 64), (4, 16), (16, 4)])
def test_results_that_need_each_other_make_a_chain(accumulators: int, each: int) -> None:
    """64 multiplications and additions each time, of four cycles: those of several accumulators pass at a time."""
    found = counted(fma(accumulators, each) + "\n ret;")
    assert found["warp_instructions_f32"] == 2 * 64
    assert found["chain_cycles"] == 2 * 4 * each


def test_a_loop_takes_its_chain_each_time_round() -> None:
    def cycles(rounds: int) -> float:
        body = f"""
  mov.u32 %r5, 0;
again:
  {fma(2, 8)}
  add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, {rounds}; @%p1 bra again;
  ret;"""
        return counted(body)["chain_cycles"]

    assert cycles(9) - cycles(4) == 2 * 5 * 4 * 8


@pytest.mark.parametrize("exchanged", ["shfl.sync.bfly.b32 %r6, %r6, 1, 31, 0xffffffff;", "bar.sync 0;"])
def test_where_lanes_may_have_to_meet_straight_code_goes_on(exchanged: str) -> None:
    """What comes before, between and after belongs to one chain, and no instruction is added."""
    plain = counted(f"{fma(1, 8)} {fma(1, 8)} ret;")
    met = counted(f"{fma(1, 8)} shfl.sync.bfly.b32 %r6, %r6, 1, 31, 0xffffffff; {fma(1, 8)} ret;")
    assert met["chain_cycles"] == plain["chain_cycles"]
    assert met["warp_instructions"] == plain["warp_instructions"] + 2
    twice = counted(f"{exchanged} {exchanged} ret;")
    once = counted(f"{exchanged} ret;")
    assert twice["warp_instructions"] - once["warp_instructions"] == 2


COPY = "cp.async.cg.shared.global [%r4{at}], [%rd3{at}], 16;"
PLACE = """
  shl.b32 %r4, %r1, 6; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2; mov.u32 %r5, tile; add.s32 %r4, %r4, %r5;
  setp.lt.u32 %p1, %r1, 64;
"""
GROUP = "cp.async.commit_group;"


def copy(piece: int) -> str:
    return COPY.format(at=f"+{16 * piece}")


def guarded(piece: int) -> str:
    """With zeros in the other branch, as a kernel for sizes that do not divide has it."""
    return f"""
  @!%p1 bra else{piece};
  {copy(piece)}
  bra.uni end{piece};
else{piece}:
  st.shared.b32 [%r4+{16 * piece}], 0;
end{piece}:"""


@pytest.mark.parametrize("one", [copy, guarded])
def test_copies_are_under_way_until_their_group_is_waited_for(one) -> None:  # type: ignore[no-untyped-def]
    """Four of 16 bytes each before the first wait, whatever branch they stand in."""
    whole = "\n".join(one(piece) for piece in range(4))
    assert counted(f"{PLACE}{whole}\n{GROUP} cp.async.wait_group 0; ret;")["load_bytes_in_flight"] == 64


def test_groups_that_a_wait_leaves_are_under_way_too() -> None:
    groups = "\n".join(f"{copy(piece)} {GROUP}" for piece in range(4))
    ring = f"{PLACE}{groups}\ncp.async.wait_group 2; cp.async.wait_group 0; ret;"
    assert counted(ring)["load_bytes_in_flight"] == 3 * 16
    every = f"{PLACE}{groups}\ncp.async.wait_group 3; cp.async.wait_all; ret;"
    assert counted(every)["load_bytes_in_flight"] == 4 * 16


FAR = "  mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; setp.lt.u32 %p1, %r1, 64; setp.lt.u32 %p2, %r1, 64;\n"
KEEPS = "  setp.lt.u32 %p{guard}, %r1, 64; @!%p{guard} bra OVER{i};\n  ld.global.b32 %r{into}, [%rd3+{at}];\nOVER{i}:\n"
TAKES = "  add.u32 %r20, %r20, %r{into};\n"


def guarded_loads(number: int, into: str) -> str:
    """Loads under a guard each, the i-th into register 10 + i (``others``) or all into the same (``one``)."""
    text = ""
    for i in range(number):
        register = 10 + (i if into == "others" else 0)
        text += KEEPS.format(i=i, guard=1 + i % 2, into=register, at=4 * i) + TAKES.format(into=register)
    return text


@pytest.mark.parametrize(("into", "waits"), [("others", 1), ("one", 4)])
def test_a_guarded_load_waits_for_what_its_register_expects(into: str, waits: int) -> None:
    """Lanes that do not load keep what the register has, so it cannot be renamed."""
    found = counted(f"{FAR}{guarded_loads(4, into)}  ret;")
    assert found["load_waits"] == 2 * waits
    assert found["load_bytes_in_flight"] == 16 / waits


def test_a_register_that_is_written_anew_is_another_one() -> None:
    text = "".join(
        f"  mov.u32 %r10, 0;\n{KEEPS.format(i=i, guard=1 + i % 2, into=10, at=4 * i)}{TAKES.format(into=10)}"
        for i in range(4)
    )
    assert counted(f"{FAR}{text}  ret;")["load_waits"] == 2


PAIR = """
  @!%p1 bra OVER{i};
  ld.global.b32 %r{first}, [%rd3+{at}];
  add.u32 %r{sum}, %r{first}, 1;
OVER{i}:{between}
  @!%p{guard} bra AGAIN{i};
  ld.global.b32 %r{second}, [%rd3+{then}];
  add.u32 %r{sum}, %r{sum}, %r{second};
AGAIN{i}:"""


@pytest.mark.parametrize(
    ("guard", "between", "waits"),
    [(1, "", 3), (2, "", 1), (1, " mov.u32 %r30, 0;", 1)],
    ids=["joined", "other", "apart"],
)
def test_ptxas_leaves_a_branch_where_the_next_one_asks_the_same(guard: int, between: str, waits: int) -> None:
    """Three pairs; the second of a pair adds to what the first left. Loads do not cross such a branch."""
    pairs = "".join(
        PAIR.format(
            i=i,
            first=10 + 3 * i,
            second=11 + 3 * i,
            sum=12 + 3 * i,
            at=4 * i,
            then=128 + 4 * i,
            guard=guard,
            between=between,
        )
        for i in range(3)
    )
    assert counted(f"{FAR}{pairs}\n  ret;")["load_waits"] == 2 * waits
