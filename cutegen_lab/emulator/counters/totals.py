"""Counters by name: of a whole launch, and of each line of the candidate's text.

Both are sums of the same parts, so the lines add up to the launch. Names are those of
:data:`~cutegen_lab.core.counters.COUNTERS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.counters import moved_bytes
from cutegen_lab.core.trial import SharedAccess
from cutegen_lab.emulator.counters.launch_counters import FIELDS, Counters
from cutegen_lab.emulator.ptx.syntax import Imm, Instruction
from cutegen_lab.emulator.translate.cfg import Block
from cutegen_lab.emulator.translate.dependency_chains import DependencyChains, copies
from cutegen_lab.emulator.translate.emit import Emit

Sums = dict[str, float]
_WAYS = ("load", "store", "copy")
# Counters that must not be added up over launches.
NOT_SUMS = ("load_bytes_in_flight", "busiest_block", "bulk_stages", "turns", "hot_stretch_bytes")
_MOST_ACCESSES = 16  # maximum number of accesses with bank conflicts in a profile
_UNROLLED = 4  # ptxas unrolls loops of up to this many iterations, and keeps branches in them


class CountedCode(Protocol):
    """The part of a translated kernel that :class:`LaunchCounts` needs."""

    @property
    def blocks(self) -> Sequence[Block]: ...  # basic blocks of the kernel

    @property
    # Chains of straight-line code, by the basic block that starts it.
    def straight(self) -> Sequence[DependencyChains]: ...

    @property
    def predicated(self) -> Mapping[int, int]: ...  # block that ptxas predicates -> the block before


@dataclass(frozen=True)
class LaunchCounts:
    """The counts of one launch. ``scale``: all its blocks divided by those that ran."""

    program: CountedCode
    counters: Counters
    scale: float = 1.0

    def totals(self) -> Sums:
        """Counters of the whole launch."""
        found = _named(self._parts(), self.scale)
        found["blocks"] = self.counters.blocks * self.scale
        found["blocks_counted"] = float(self.counters.blocks)
        found["load_bytes_in_flight"] = self._in_flight()
        found["bulk_phases"] = self.counters.expectations * self.scale
        found["bulk_expected_bytes"] = self.counters.expected_bytes * self.scale
        found["bulk_stages"] = self.counters.stages()
        found["busiest_block"] = self.counters.busiest_block()
        found["turns"] = self._turns()
        found["hot_load_bytes"] = self.counters.hot_bytes() * self.scale
        found["warm_load_bytes"] = self.counters.warm_bytes(self.scale)
        found["hot_stretch_bytes"] = float(self.counters.hot_stretch())
        return found

    def by_line(self, build: Build) -> dict[int, Sums]:
        """Counters of each line of the candidate's text; line 0: counts that belong to none."""
        parts: dict[int, list[tuple[str, float]]] = defaultdict(list)
        for instruction, name, count in self._each():
            parts[build.source_line(instruction.line)].append((name, count))
        return {line: _named(found, self.scale) for line, found in sorted(parts.items())}

    def accesses(self, build: Build) -> Iterator[SharedAccess]:
        """For each instruction with bank conflicts, one of its accesses."""
        for emit in (emit for block in self.program.blocks for emit in block.emits):
            if emit.site is None or (kept := self.counters.conflicting.get(id(self.counters.sites[emit.site]))) is None:
                continue
            counted = dict(zip(FIELDS, self.counters.sites[emit.site], strict=True))
            way = "store" if kept.way in ("store", "stmatrix") else "load"
            beyond = counted[f"shared_{way}_wavefronts"] - counted[f"shared_{way}_phases"]
            yield replace(kept, line=build.source_line(emit.ins.line), conflicts=beyond * self.scale)

    def _parts(self) -> Iterator[tuple[str, float]]:
        for _, name, count in self._each():
            yield name, count

    def _each(self) -> Iterator[tuple[Instruction, str, float]]:
        """(instruction, counter, count) for all that was counted."""
        yield from self._chains()
        yield from self._load_waits()
        for number, block in enumerate(self.program.blocks):
            warps, lanes = self._issued(number), self.counters.block_lanes[number]
            if not warps:
                continue
            for emit in (e for e in block.emits if e.klass):  # reconvergence points are not instructions
                for name, count in _executed(emit, warps, lanes):
                    yield emit.ins, name, count
                if emit.site is not None:
                    for name, count in zip(FIELDS, self.counters.sites[emit.site], strict=True):
                        if count:
                            yield emit.ins, name, count
            if block.terminator is not None:
                yield block.terminator, "warp_instructions", warps
                yield block.terminator, "lane_instructions", lanes
                yield block.terminator, "warp_instructions_control", warps

    def _issued(self, number: int) -> int:
        """Warps that issue a basic block, with or without active lanes."""
        executed, before = self.counters.block_warps, self.program.predicated.get(number, number)
        return executed[before if executed[before] > _UNROLLED * executed[0] else number]

    def _in_flight(self) -> float:
        """Bytes a thread has outstanding on average, weighted by how often each batch of loads ran."""
        weighted = total = 0.0
        for block, warps in self.counters.block_warps.items():
            for batch in self.program.straight[block].load_batches:
                weighted += batch.size * batch.size * warps
                total += batch.size * warps
        copied, in_flight, _ = self._copied()
        weighted, total = weighted + copied * in_flight, total + copied
        return weighted / total if total else 0.0

    def _load_waits(self) -> Iterator[tuple[Instruction, str, float]]:
        """Waits for global loads (:meth:`_by_slowest`); of these, waits for loads that stay in L1, and the bytes of
        such loads. Each is counted at the first instruction that uses the loaded data."""
        copied, in_flight, waited = self._copied()
        every = sum(warps for _, warps in waited)
        for instruction, warps in waited if in_flight else ():
            yield instruction, "load_waits", copied / in_flight * (warps / every)
        hot = self.counters.hot_sites()
        for block in self.counters.block_warps:
            for batch in self.program.straight[block].load_batches:
                times, asked = self.counters.loads(batch.sites)
                times = self._by_slowest(times)
                yield batch.needed_by, "load_waits", times
                if hot.issuperset(batch.sites):
                    yield batch.needed_by, "hot_load_waits", times
                    yield batch.needed_by, "hot_waited_bytes", asked

    def _turns(self) -> float:
        """Mean executions of an instruction by a warp, over all executed instructions: the iterations of the loop in
        which a kernel spends its time."""
        executed = weighted = 0.0
        for number, warps in self.counters.block_warps.items():
            size = sum(1 for emit in self.program.blocks[number].emits if emit.klass)
            executed += size * warps
            weighted += size * warps * warps
        warps = self.counters.block_warps[0]
        return max(weighted / (executed * warps), 1.0) if executed and warps else 1.0

    def _copied(self) -> tuple[float, float, list[tuple[Instruction, int]]]:
        """(bytes that a lane copies by cp.async, summed over warps; bytes that a thread has in flight at a wait; the
        waits and how many warps execute them). A copy is in flight until its group is waited for, whatever branch it is
        in."""
        waits = list[tuple[Instruction, int]]()
        copied = commits = left = 0
        for number, block in enumerate(self.program.blocks):
            warps = self.counters.block_warps[number]
            for emit in block.emits if warps else ():
                if not copies(emit):
                    continue
                copied += emit.load_bytes * warps
                commits += warps * ("commit_group" in emit.ins.mods)
                if emit.waits_loads:
                    waits.append((emit.ins, warps))
                    left = max(left, _left_under_way(emit))
        if not waits:
            return 0.0, 0.0, []
        group = copied / (commits or sum(warps for _, warps in waits))  # wait_all makes a group of its own
        return float(copied), min(group * (left + 1), copied / max(self.counters.block_warps[0], 1)), waits

    def _chains(self) -> Iterator[tuple[Instruction, str, float]]:
        """Cycles of the longest dependency chains of straight-line code, summed over warps (:meth:`_by_slowest`)."""
        for block, warps in self.counters.block_warps.items():
            times = self._by_slowest(warps)
            for instruction, cycles in self.program.straight[block].chain:
                yield instruction, "chain_cycles", cycles * times

    def _by_slowest(self, warps: int) -> int:
        """Executions by all warps if each took as long as the slowest of its block, for which the others wait at a
        barrier or at the block's end. Code that only some warps execute is assumed to run in every block."""
        every = self.counters.block_warps[0]
        return max(warps, min(warps * every // max(self.counters.blocks, 1), every))


def most_conflicting(accesses: Iterable[SharedAccess]) -> tuple[SharedAccess, ...]:
    """For each line and kind of access, the one with the most bank conflicts; the worst first, at most 16."""
    chosen: dict[tuple[int, str], SharedAccess] = {}
    for each in sorted(accesses, key=lambda each: -each.conflicts):
        chosen.setdefault((each.line, each.way), each)
    return tuple(chosen.values())[:_MOST_ACCESSES]


def added(each: Iterable[Mapping[int, Sums]]) -> dict[int, Sums]:
    """The sum of several counters by line."""
    found: dict[int, Sums] = defaultdict(lambda: defaultdict(float))
    for lines in each:
        for line, sums in lines.items():
            for name, value in sums.items():
                found[line][name] += value
    return {line: dict(sums) for line, sums in sorted(found.items())}


def _executed(emit: Emit, warps: int, lanes: int) -> Iterator[tuple[str, int]]:
    yield "warp_instructions", warps
    yield "lane_instructions", lanes
    yield f"warp_instructions_{emit.klass}", warps
    for klass, count in emit.beside.items():
        yield f"warp_instructions_{klass}", count * warps
    if emit.tensor_ops is not None:
        kind, operations = emit.tensor_ops
        yield "tensor_instructions", warps
        yield "tensor_ops", operations * warps
        yield f"tensor_ops_{kind}", operations * warps
        if emit.ins.opcode == "mma":
            yield "mma_sync_ops", operations * warps
    if waits := _waits(emit):
        yield waits, warps


def _left_under_way(emit: Emit) -> int:
    """Groups of cp.async that a wait leaves in flight."""
    pending = emit.ins.operands[0] if emit.ins.operands else None
    return pending.value if isinstance(pending, Imm) else 0


def _waits(emit: Emit) -> str:
    """The counter for the kind of wait that an instruction is."""
    if not emit.parks:
        return ""
    opcode, mods = emit.ins.opcode, emit.ins.mods
    if opcode == "mbarrier":
        return "mbarrier_waits"
    if opcode in ("bar", "barrier") and "warp" not in mods:
        return "cluster_waits" if "cluster" in mods else "barrier_waits"
    return ""


def _named(parts: Iterable[tuple[str, float]], scale: float) -> Sums:
    counted: dict[str, float] = defaultdict(float, dict.fromkeys(_ALWAYS, 0))
    for name, count in parts:
        counted[name] += count
    found = {name: value * scale for name, value in sorted(counted.items()) if not name.endswith("_phases")}
    for way in _WAYS:
        ideal = counted[f"shared_{way}_phases"] * scale
        found[f"shared_{way}_conflicts"] = found[f"shared_{way}_wavefronts"] - ideal
    for unit in ("requests", "wavefronts", "conflicts"):
        found[f"shared_{unit}"] = sum(found[f"shared_{way}_{unit}"] for way in _WAYS)
    found["moved_bytes"] = moved_bytes(found)
    return found


_ALWAYS = (
    "warp_instructions", "lane_instructions", "tensor_instructions", "tensor_ops", "mma_sync_ops", "barrier_waits",
    "mbarrier_waits", "cluster_waits", "load_waits", "hot_load_waits", "hot_waited_bytes", "chain_cycles", *FIELDS,
)  # fmt: skip
"""Counters that are reported even if they are 0."""
