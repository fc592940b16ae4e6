"""A kernel compiled to Python: one generated function per basic block, acting on all lanes of a group."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutegen_lab.core.hashing import sha256
from cutegen_lab.emulator import isa, ptx
from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.generated_globals import RUNTIME
from cutegen_lab.emulator.mma.fusion import fuse
from cutegen_lab.emulator.ptx import module, traits
from cutegen_lab.emulator.translate import wgmma_fences
from cutegen_lab.emulator.translate.cfg import Block, Rows, allocate, basic_blocks, is_branch, rows_by_file
from cutegen_lab.emulator.translate.dependency_chains import DependencyChains, predicated, straight_code
from cutegen_lab.emulator.translate.emit import Emit, Symbols
from cutegen_lab.emulator.translate.instruction import translate
from cutegen_lab.emulator.translate.origin_rules import follow
from cutegen_lab.emulator.translate.origin_tags import Site
from cutegen_lab.emulator.translate.polls import counted
from cutegen_lab.emulator.translate.unwritten_registers import watch
from cutegen_lab.emulator.translate.wgmma_registers import Live, live_sums, mark

SHARED_BASE = 1024  # sm_90 reserves the first KiB of a block's shared window for the system
PARAM_BASE = 0x6000_0000_0000_0000
MODULE_BASE = 0x6800_0000_0000_0000
_MOST_MODULE_BYTES = 1 << 28
_PREAMBLE = "P,H,I,E,U,S,F,D,L,G=g.views"
BlockFunction = Callable[[Any], Any]
Written = tuple[ptx.Instruction, frozenset[str]]
"""An instruction and the registers that it writes."""

assert isa.__all__, "importing the package registers the opcodes"


@dataclass(frozen=True)
class Program:
    """Everything about a kernel that does not depend on the launch."""

    name: str
    blocks: tuple[Block, ...]
    functions: tuple[BlockFunction, ...]
    live_in: tuple[Rows, ...]
    live_sums: tuple[Live, ...]  # by block: live accumulators of wgmma, and their rows
    # Block whose branch skips only the next block -> rows that the skipped block (reads, writes).
    hammocks: dict[int, tuple[Rows, Rows]]
    guard_rows: tuple[int, ...]
    asks_memory: tuple[bool, ...]  # by block: whether it has strong reads, as loops that poll memory have
    wait_rows: tuple[int | None, ...]  # by block: predicate row that its try_wait writes
    rows_needed: dict[str, int]
    sites: int  # number of instructions that access memory
    straight: tuple[DependencyChains, ...]  # of straight-line code, by the block that it begins with
    predicated: dict[int, int]  # block that ptxas predicates -> the block before
    static_smem: int
    local_bytes: int
    params: tuple[tuple[str, int], ...]
    param_offsets: tuple[int, ...]
    module_data: bytes
    source_map: dict[int, ptx.Instruction]  # line of generated code -> instruction
    uses_mbarrier: bool
    uses_wgmma: bool
    access_unit: int  # bytes of the narrowest access
    fences: bool  # whether strong operations may order others
    blocks_may_wait: bool  # whether blocks of different clusters may synchronise
    blocks_may_meet: bool  # whether blocks may wait for each other, even by relaxed operations
    fences_global_proxy: bool  # whether some fence orders global writes of threads before bulk copies
    guesses: frozenset[ptx.Instruction]  # loads of values that a compare-and-swap expects
    reads_unwritten: bool  # whether some register may be read before it is written
    unwritten_sites: tuple[Site, ...] | None  # reads of uninitialised values, if tracked
    generated: str
    file_name: str
    digest: str  # digest of the PTX text
    code: tuple[tuple[Written, ...], ...]  # instructions by basic block, in text order
    kernel: ptx.Kernel
    polled: ptx.Instruction | None  # an instruction that counts polls (:mod:`polls`)
    spaces: dict[str, str]  # state space of each variable and parameter


_cache: OrderedDict[tuple[str, str, bool], Program] = OrderedDict()
_CACHED = 64


def load(text: str, kernel: str, followed: bool = False) -> Program:
    """Parses and translates a kernel of a PTX module, once per text. Raises :class:`Unsupported`.

    ``followed``: with code that tracks uninitialised values (:mod:`origin_rules`).
    """
    key = (sha256(text), kernel, followed)
    program = _cache.get(key)
    if program is None:
        found = module.kernels(text)
        if kernel not in found:
            raise Unsupported(f"kernel {kernel} is not in the PTX, which has {', '.join(found) or 'none'}")
        program = _cache[key] = _compile(found[kernel], key[0], followed)
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)
    return program


def _layout(kernel: ptx.Kernel) -> tuple[Symbols, int, int, bytes, tuple[int, ...]]:
    symbols, shared, local, module = Symbols(), 0, 0, bytearray()
    dynamic: list[ptx.Variable] = []
    for variable in kernel.variables:
        symbols.spaces[variable.name] = variable.space
        if variable.space == "shared" and variable.size == 0:
            dynamic.append(variable)
        elif variable.space == "shared":
            shared = -(-shared // variable.align) * variable.align
            symbols.addresses[variable.name] = SHARED_BASE + shared
            shared += variable.size
        elif variable.space == "local":
            local = -(-local // variable.align) * variable.align
            symbols.addresses[variable.name] = local
            local += variable.size
        else:
            if variable.size > _MOST_MODULE_BYTES:
                raise MemoryError(f"variable {variable.name} has {variable.size} bytes")
            module.extend(bytes(-len(module) % max(variable.align, 16)))
            symbols.addresses[variable.name] = MODULE_BASE + len(module)
            module.extend(variable.initial.ljust(variable.size, b"\0"))
    for variable in dynamic:
        symbols.addresses[variable.name] = SHARED_BASE + -(-shared // variable.align) * variable.align
    if dynamic:
        shared = max(symbols.addresses[v.name] for v in dynamic) - SHARED_BASE
    offset, offsets = 0, []
    for name, size in kernel.params:
        offset = -(-offset // 64) * 64
        symbols.params[name] = offset
        symbols.addresses[name] = PARAM_BASE + offset
        symbols.spaces[name] = "param"
        offsets.append(offset)
        offset += size
    return symbols, shared, -(-local // 16) * 16, bytes(module), tuple(offsets)


def _compile(kernel: ptx.Kernel, digest: str, followed: bool) -> Program:
    symbols, static_smem, local_bytes, module_data, offsets = _layout(kernel)
    emits = {i: translate(ins, symbols) for i, ins in enumerate(kernel.code) if not is_branch(ins)}
    code = _by_block(kernel, emits)
    blocks = basic_blocks(kernel, emits)
    polled = counted(blocks)
    for block in blocks:
        fuse(block)
    mark(blocks)
    wgmma_fences.mark(blocks)
    reads_unwritten = followed or bool(blocks[0].live_in)
    unwritten_sites = follow(blocks) if followed else None
    if not followed:
        watch(blocks)
    rows, needed = allocate(blocks)
    writer = _Writer(rows)
    for index, block in enumerate(blocks):
        writer.block(index, block)
    hammocks = _hammocks(blocks, rows)
    environment = {**RUNTIME, **symbols.constants}
    file_name = f"<ptx {digest[:8]} {kernel.name[:40]}{' followed' if followed else ''}>"
    generated = "\n".join(writer.lines) + "\n"
    exec(compile(generated, file_name, "exec"), environment)  # noqa: S102 - text written by this package's own opcode functions
    return Program(
        name=kernel.name,
        blocks=tuple(blocks),
        functions=tuple(environment[f"block_{i}"] for i in range(len(blocks))),
        live_in=tuple(rows_by_file(b.live_in, rows) for b in blocks),
        live_sums=tuple(live_sums(b.live_in, symbols.flights, rows) for b in blocks),
        hammocks=hammocks,
        guard_rows=tuple(rows[b.guard.name][1] if b.guard else 0 for b in blocks),
        asks_memory=tuple(any(traits.asks_memory(e.ins) for e in b.emits) for b in blocks),
        wait_rows=tuple(_wait_row(b, rows) for b in blocks),
        rows_needed=needed,
        sites=symbols.sites,
        straight=straight_code(blocks, hammocks),
        predicated=predicated(blocks, hammocks),
        static_smem=static_smem,
        local_bytes=local_bytes,
        params=kernel.params,
        param_offsets=offsets,
        module_data=module_data,
        source_map=writer.source_map,
        uses_mbarrier=any(e.ins.opcode == "mbarrier" or "mbarrier" in e.ins.mods for e in emits.values()),
        uses_wgmma=any(e.sums is not None for e in emits.values()),
        access_unit=traits.access_unit(kernel.code),
        fences=traits.fences(kernel.code),
        blocks_may_wait=traits.blocks_may_wait(kernel.code),
        blocks_may_meet=traits.blocks_may_meet(kernel.code),
        fences_global_proxy=any(found[1] for i in kernel.code if (found := traits.proxies(i))),
        guesses=traits.guesses(kernel.code),
        reads_unwritten=reads_unwritten,
        unwritten_sites=unwritten_sites,
        generated=generated,
        file_name=file_name,
        digest=digest,
        code=code,
        kernel=kernel,
        polled=polled,
        spaces=symbols.spaces,
    )


def _by_block(kernel: ptx.Kernel, emits: dict[int, Emit]) -> tuple[tuple[Written, ...], ...]:
    found: list[list[Written]] = [[]]
    labels = set(kernel.labels.values())
    for i, instruction in enumerate(kernel.code):
        if i in labels or (i and is_branch(kernel.code[i - 1])):
            found.append([])
        found[-1].append((instruction, frozenset(emits[i].defs if i in emits else ())))
    return tuple(map(tuple, found))


def _wait_row(block: Block, rows: dict[str, tuple[str, int]]) -> int | None:
    if block.parks and block.emits[0].ins.opcode == "mbarrier":
        return rows[next(iter(block.emits[0].defs))][1]
    return None


def _hammocks(blocks: list[Block], rows: dict[str, tuple[str, int]]) -> dict[int, tuple[Rows, Rows]]:
    """Branches that skip exactly one straight-line block: it runs in place on the lanes that do not branch, and the
    group is not split."""
    found = {}
    for i, block in enumerate(blocks[:-2]):
        body = blocks[i + 1]
        straight = body.terminator is None and not body.parks and not any(e.collective for e in body.emits)
        if block.guard and block.target == i + 2 and straight:
            found[i] = (rows_by_file(body.uses, rows), rows_by_file(body.defs & body.live_out, rows))
    return found


class _Writer:
    """Writes the functions, and the source map from lines to instructions."""

    def __init__(self, rows: dict[str, tuple[str, int]]) -> None:
        self._rows = rows
        self.lines: list[str] = []
        self.source_map: dict[int, ptx.Instruction] = {}

    def _row(self, match: re.Match[str]) -> str:
        return str(self._rows[match[1]][1])

    def _write(self, text: str, instruction: ptx.Instruction | None = None) -> None:
        self.lines.append(" " + re.sub(r"<([%$\w][^<>\s]*)>", self._row, text))
        if instruction is not None:
            self.source_map[len(self.lines)] = instruction

    def _instruction(self, emit: Emit) -> None:
        for line in emit.lines:
            self._write(line, emit.ins)

    def block(self, index: int, block: Block) -> None:
        for n, emit in enumerate(block.emits):
            if emit.ins.guard and emit.lines:
                self.lines.append(f"def guarded_{index}_{n}(g):")
                self._write(_PREAMBLE)
                self._instruction(emit)
        self.lines.append(f"def block_{index}(g):")
        self._write(_PREAMBLE)
        for n, emit in enumerate(block.emits):
            for line in emit.before:
                self._write(line, emit.ins)
            if emit.ins.guard and emit.lines:
                uses, defs = rows_by_file(set(emit.uses), self._rows), rows_by_file(set(emit.defs), self._rows)
                mask = f"{'~' if emit.ins.negated else ''}P[<{emit.ins.guard.name}>]"
                self._write(f"guarded(g,guarded_{index}_{n},{mask},{uses},{defs})", emit.ins)
            else:
                self._instruction(emit)
            for line in emit.after:
                self._write(line, emit.ins)
        for line in block.last:
            self._write(line, block.terminator)
        if not block.parks:
            self._write("return None")


def guarded(g: Any, function: BlockFunction, mask: Any, uses: Rows, defs: Rows) -> None:
    """Runs one instruction on the lanes whose guard is true."""
    count = int(np.count_nonzero(mask))
    if count == g.n:
        function(g)
    elif count:
        index = np.flatnonzero(mask)
        part = g.subset(index, uses, g.pc)
        function(part)
        g.write_back(part, index, defs)


RUNTIME["guarded"] = guarded
