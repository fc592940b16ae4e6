"""Clock stamps in a kernel's PTX, which give a timeline of the warps of one block on a GPU.

At each *place* the first lane of a warp stores the multiprocessor's cycle counter (``%clock``, PTX ISA 9.0, 10 "Special
Registers") and the place's number. Places are before and after each instruction that waits or uses the result of a load
in flight, and where control flow joins. Stamps are stored in a variable of the module, so that plans and parameters
stay unchanged. Code that the first lane does not execute has no stamps.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cutegen_lab.core.artifact import Build, Launch
from cutegen_lab.core.residency import blocks_by
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.timeline import Kind, Span
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.ptx.module import kernels
from cutegen_lab.emulator.ptx.traits import registers

SLOTS = 1 << 14
"""Maximum number of stamps of a warp; later ones are lost."""
WARPS = 32
"""Maximum number of warps of a block."""
STAMP = struct.Struct("<II")
"""Cycle counter, and the number of the place from 1; zero where nothing was stored."""
WARP_BYTES = SLOTS * STAMP.size
"""Bytes of the stamps of a warp: a power of two."""
_SOON = 12  # maximum distance in instructions from a join of control flow to a wait whose stamp replaces the join's
_NEAR = {"param", "shared", "local"}  # spaces with short load latency
_BOUNDED = re.compile(r"\.(maxnreg|minnctapersm)\b")
_WAITS = re.compile(
    r"bar(rier)?\.(cta\.)?(sync|red)|barrier\.cluster\.wait|mbarrier\.(try|test)_wait|griddepcontrol\.wait"
    r"|(cp\.async(\.bulk)?|wgmma)\.wait_(group|all)"
)


@dataclass(frozen=True)
class Place:
    """A place in the PTX that stores a stamp."""

    ptx_line: int
    """Line of the PTX, before the stamps."""
    waits_for: str
    """The next instruction if it waits, or the load in flight whose result it uses; empty otherwise."""


@dataclass(frozen=True)
class Stamped:
    """PTX with stamps."""

    texts: tuple[str, str]
    """The PTX with a register limit that keeps the occupancy of the kernel without stamps; the PTX without a limit."""
    symbol: str
    """The module's variable: WARP_BYTES for each of WARPS warps."""
    places: tuple[Place, ...]
    """Places by number, from 1."""
    blocks: Mapping[str, tuple[int, int, int]]
    """The block (x, y, z) of each kernel in which the stamps are stored."""


def middle(launch: Launch) -> tuple[int, int, int]:
    """The block (x, y, z) in the middle of a launch's grid."""
    x, y, z = launch.grid
    number = x * y * z // 2
    return number % x, number // x % y, number // (x * y)


def stamped(build: Build) -> Stamped:
    """``build``'s PTX with stamps in the middle block of each kernel's first launch. Raises Unsupported for PTX that
    the emulator does not read."""
    launches = {launch.kernel: launch for launch in reversed(build.plan.launches)}
    blocks = {name: middle(launch) for name, launch in launches.items()}
    prefix = "cutegen_stamps"
    while prefix in build.ptx:
        prefix += "_"
    found = kernels(build.ptx)
    text = build.ptx.split("\n")
    places: list[Place] = []
    before: dict[int, str] = {}  # by line of the PTX, from 1: text to insert before it
    bounds: dict[int, str] = {}
    for name, launch in launches.items():
        for at, (instruction, waits_for) in enumerate(_placed(found[name], text)):
            if at == 0:
                before[instruction.line] = _prologue(prefix, blocks[name])
            places.append(Place(instruction.line, waits_for))
            before[instruction.line] = before.get(instruction.line, "") + _stamp(prefix, len(places))
        start = found[name].line
        body = next((number for number, line in enumerate(text[start - 1 :], start) if line.strip() == "{"), start)
        if body > start and not any(_BOUNDED.search(line) for line in text[start - 1 : body]):
            bounds[body] = f".maxnreg {_most_registers(launch, build)}\n"
    first = next(number for number, line in enumerate(text, 1) if line.lstrip().startswith(".address_size"))
    before[first + 1] = f".visible .global .align {STAMP.size} .b8 {prefix}[{WARPS * WARP_BYTES}];\n"
    bounded, free = (
        "\n".join(each.get(at, "") + line for at, line in enumerate(text, 1)) for each in (before | bounds, before)
    )
    return Stamped((bounded, free), prefix, tuple(places), blocks)


def _most_registers(launch: Launch, build: Build) -> int:
    """Maximum number of registers per thread that keeps the occupancy of the kernel without stamps."""
    kernel, gpu = build.kernel(launch.kernel), target_gpu(build.arch)
    blocks = min(blocks_by(launch, kernel, gpu).values())
    more = (
        count
        for count in range(kernel.registers // 8 * 8 + 8, 256, 8)
        if min(blocks_by(launch, replace(kernel, registers=count), gpu).values()) >= blocks
    )
    return max(more, default=kernel.registers)


def _placed(kernel: ptx.Kernel, text: Sequence[str]) -> Iterator[tuple[ptx.Instruction, str]]:
    """(instruction, what it waits for) of each place: the kernel's first and last instruction, joins of control flow,
    instructions that wait or use a load in flight, and those after them. Each begins a line of the PTX. Stamps between
    lines of arithmetic would keep ptxas from reordering it: GELU took 77 registers instead of 32."""
    code, joins = kernel.code, set(kernel.labels.values())
    waits = _waits(code)
    products = False  # between a wgmma.fence and its commit_group, where ptxas allows nothing else
    for at, instruction in enumerate(code):
        last = code[at - 1] if at else None
        met = at in joins or (last is not None and (last.opcode == "bra" or bool(waits[at - 1])))
        next_wait = next((to for to in range(at + 1, min(at + _SOON, len(code))) if waits[to]), at)
        soon = next_wait > at and all(later.opcode != "bra" for later in code[at:next_wait])
        worth = at == 0 or waits[at] or (met and not soon) or instruction.opcode in ("ret", "exit")
        new = last is None or (instruction.line != last.line and _begins(instruction, text))
        if worth and new and not products and instruction.opcode != "bra":
            yield instruction, waits[at]
        if instruction.name.startswith(("wgmma.fence", "wgmma.commit_group")):
            products = instruction.name.startswith("wgmma.fence")


def _waits(code: Sequence[ptx.Instruction]) -> list[str]:
    """What each instruction waits for, in text order: itself, or the first load in flight that it uses."""
    found, loading = list[str](), dict[str, str]()  # load in flight by register
    for instruction in code:
        name = instruction.name
        found.append(name if _WAITS.match(name) else _waits_for(instruction, loading))
        if found[-1]:
            loading.clear()
        if instruction.opcode in ("ld", "atom") and _NEAR.isdisjoint(instruction.mods):
            loading |= {register.name: name for register in registers(instruction.operands[0])}
    return found


def _waits_for(instruction: ptx.Instruction, loading: Mapping[str, str]) -> str:
    """The load in flight whose result an instruction uses; empty otherwise."""
    used = instruction.operands if instruction.opcode in ("st", "red") else instruction.operands[1:]
    guard = [instruction.guard] if instruction.guard else []
    names = (register.name for operand in (*used, *guard) for register in registers(operand))
    return next((loading[name] for name in names if name in loading), "")


def _begins(instruction: ptx.Instruction, text: Sequence[str]) -> bool:
    """True if the instruction begins its line of the PTX."""
    first, *_ = text[instruction.line - 1].replace(";", " ").split() or [""]
    return first == instruction.text.split()[0]


def _prologue(prefix: str, block: tuple[int, int, int]) -> str:
    """PTX that sets three registers: this is the recorded block; this is a warp's first lane; offset of the warp's next
    stamp in the variable."""
    on, first, a, b, at, where, base = _names(prefix)
    x, y, z = block
    return f"""
\t.reg .pred {on}, {first};
\t.reg .b32 {a}, {b}, {at};
\t.reg .b64 {where}, {base};
\tmov.u32 {a}, %tid.z;
\tmov.u32 {b}, %ntid.y;
\tmul.lo.u32 {a}, {a}, {b};
\tmov.u32 {b}, %tid.y;
\tadd.u32 {a}, {a}, {b};
\tmov.u32 {b}, %ntid.x;
\tmul.lo.u32 {a}, {a}, {b};
\tmov.u32 {b}, %tid.x;
\tadd.u32 {a}, {a}, {b};
\tand.b32 {b}, {a}, 31;
\tsetp.eq.u32 {first}, {b}, 0;
\tshr.u32 {a}, {a}, 5;
\tmul.lo.u32 {at}, {a}, {WARP_BYTES};
\tmov.u32 {b}, %ctaid.x;
\tsetp.eq.u32 {on}, {b}, {x};
\tmov.u32 {b}, %ctaid.y;
\tsetp.eq.and.u32 {on}, {b}, {y}, {on};
\tmov.u32 {b}, %ctaid.z;
\tsetp.eq.and.u32 {on}, {b}, {z}, {on};
"""


def _stamp(prefix: str, number: int) -> str:
    """PTX of one stamp. Other blocks execute one uniform branch. A warp whose part of the variable is full stores
    nothing more."""
    on, first, a, b, at, where, base = _names(prefix)
    return f"""
\t@!{on} bra.uni ${prefix}_{number};
\tmov.u32 {a}, %clock;
\tmov.u32 {b}, {number};
\tcvt.u64.u32 {where}, {at};
\tmov.u64 {base}, {prefix};
\tadd.u64 {where}, {where}, {base};
\t@{first} st.global.v2.b32 [{where}], {{{a}, {b}}};
\tadd.u32 {at}, {at}, {STAMP.size};
\tand.b32 {b}, {at}, {WARP_BYTES - 1};
\tsetp.ne.u32 {on}, {b}, 0;
${prefix}_{number}:
"""


def _names(prefix: str) -> Sequence[str]:
    return [f"%{prefix}_{name}" for name in ("on", "first", "a", "b", "at", "where", "base")]


@dataclass(frozen=True)
class Recorded:
    """The timeline from the stamps of one block."""

    spans: tuple[Span, ...]
    """Spans, sorted by their end."""
    cycles: int
    """Cycles from the first stamp of the block to its last."""
    cut: bool
    """Whether a warp had no room for more stamps."""


def read(memory: bytes, places: Sequence[Place], line_of: Callable[[int], int], warps: int) -> Recorded:
    """Spans between consecutive stamps of a warp; consecutive spans of the same line and wait are merged. ``memory``:
    the variable after a launch; a warp's stamps end at the first invalid one."""
    found: list[Span] = []
    times = [_times(memory[at * WARP_BYTES : (at + 1) * WARP_BYTES], len(places)) for at in range(warps)]
    counts = [time for each in times for time, _ in each]
    if not counts:
        return Recorded((), 0, cut=False)
    start = counts[0]
    begin = min(_signed(time - start) for time in counts)  # the counter wraps after 2^32 cycles
    end = max(_signed(time - start) for time in counts)
    for warp, stamps in enumerate(times):
        spans: list[Span] = []
        for (time, number), (until, _) in pairwise(stamps):
            since, to = (_signed(count - start) - begin for count in (time, until))
            span = _span(warp, places[number - 1], since, to, line_of)
            if spans and _same(spans[-1], span):
                span = replace(span, start=spans.pop().start)
            if span.end > span.start:
                spans.append(span)
        found += spans
    full = any(len(each) == SLOTS for each in times)
    return Recorded(tuple(sorted(found, key=lambda span: (span.end, span.start))), end - begin, full)


def _span(warp: int, place: Place, start: int, end: int, line_of: Callable[[int], int]) -> Span:
    kind: Kind = "wait" if place.waits_for else "run"
    return Span(warp, kind, start, end, place.waits_for, line_of(place.ptx_line))


def _same(one: Span, other: Span) -> bool:
    return (one.kind, one.label, one.line) == (other.kind, other.label, other.line)


def _times(memory: bytes, places: int) -> list[tuple[int, int]]:
    """(cycle counter, number of the place) of a warp's stamps."""
    found = []
    for time, number in STAMP.iter_unpack(memory):
        if not 1 <= number <= places:
            break
        found.append((time, number))
    return found


def _signed(difference: int) -> int:
    return (difference + (1 << 31)) % (1 << 32) - (1 << 31)
