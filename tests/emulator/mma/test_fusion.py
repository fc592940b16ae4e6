"""mma instructions that are executed together give the results of one by one: random programs of integer mma, whose
sums are exact in any order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_lab.emulator import program
from tests.emulator.ptx_kernel import kernel, run

OPERANDS, SUMS = 3, 6  # fragments of A and of B, of C and D
A = [[f"%a{i}_{r}" for r in range(4)] for i in range(OPERANDS)]
B = [[f"%b{i}_{r}" for r in range(2)] for i in range(OPERANDS)]
C = [[f"%c{i}_{r}" for r in range(4)] for i in range(SUMS)]
ZERO = ["%z"] * 4
EVERY = [name for group in (*A, *B, *C) for name in group]
MMA = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"


def program_of(code: list[str]) -> str:
    """Registers start as different words of the input, and those of C end in the output."""
    declared = f".reg .b32 {', '.join([*EVERY, '%z'])};"
    start = ["mov.b32 %z, 0;", f"mad.wide.u32 %rd3, %r1, {4 * len(EVERY)}, %rd1;"]
    start += [f"ld.global.b32 {name}, [%rd3+{4 * i}];" for i, name in enumerate(EVERY)]
    start += [f"mad.wide.u32 %rd4, %r1, {16 * SUMS}, %rd2;"]
    ends = [f"st.global.b32 [%rd4+{4 * i}], {name};" for i, name in enumerate(n for group in C for n in group)]
    return kernel("\n".join([*start, *code, *ends, "ret;"]), 2, declarations=declared)


def multiply(d: list[str], a: list[str], b: list[str], c: list[str]) -> str:
    return f"{MMA} {{{','.join(d)}}}, {{{','.join(a)}}}, {{{','.join(b)}}}, {{{','.join(c)}}};"


def both(code: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """What the program leaves when its mma are joined, and when they are not."""
    data = np.random.default_rng(0).integers(0, 1 << 32, (64, len(EVERY))).astype(np.uint32)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for joined in (True, False):
            if not joined:
                patch.setattr(program, "fuse", lambda block: None)
            program._cache.clear()
            out = np.zeros((64, 4 * SUMS), np.uint32)
            assert run(program_of(code), [data, out], inputs=1, block=(64, 1, 1)).execution.fault is None
            found.append(out)
    program._cache.clear()
    return found[0], found[1]


mma = st.builds(multiply, st.sampled_from(C), st.sampled_from(A), st.sampled_from(B), st.sampled_from([*C, ZERO]))
in_place = st.builds(lambda c, a, b: multiply(c, a, b, c), st.sampled_from(C), st.sampled_from(A), st.sampled_from(B))
other = st.builds(lambda d, a: f"add.s32 {d}, {a}, 3;", st.sampled_from(EVERY), st.sampled_from(EVERY))


@settings(max_examples=100, deadline=None)
@given(code=st.lists(st.one_of(mma, mma, in_place, in_place, other), min_size=2, max_size=14))
def test_a_random_program(code: list[str]) -> None:
    joined, apart = both(code)
    assert (joined == apart).all()


def grid(c: list[list[str]], d: list[list[str]], step: int) -> list[str]:
    """Two by three mma of one k step, each with the operands of that step."""
    return [multiply(d[3 * i + j], A[i], B[(j + step) % 3], c[3 * i + j]) for j in range(3) for i in range(2)]


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("zero", [False, True])
def test_a_grid_of_several_steps_is_one_product(steps: int, zero: bool) -> None:
    code = [line for step in range(steps) for line in grid([ZERO] * SUMS if zero and not step else C, C, step)]
    joined, apart = both(code)
    assert (joined == apart).all()
    made = program.load(program_of(code), "k")
    assert made.generated.count(" multiply(g,") == 1


def test_steps_that_share_a_fragment_are_not_done_at_once() -> None:
    """The same A in two steps: one sum needs the other, though together they look like a grid."""
    joined, apart = both([multiply(C[i], A[i], B[j], C[i]) for j in range(2) for i in range(2)])
    assert (joined == apart).all()


def test_sums_read_between_are_kept() -> None:
    keep = "mov.b32 %c5_0, %c0_1;"
    joined, apart = both([*grid(C, C, 0), keep, *grid(C, C, 1)])
    assert (joined == apart).all()
