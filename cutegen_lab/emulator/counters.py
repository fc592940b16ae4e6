"""What a kernel did, in the units a profiler counts in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cutegen_lab.emulator.types import Array

if TYPE_CHECKING:
    from cutegen_lab.emulator.group import Group
    from cutegen_lab.emulator.program import Program

_PLAIN = (
    "shared_requests", "atomic_requests", "bulk_loads", "bulk_load_bytes", "bulk_stores",
    "bulk_store_bytes", "blocks",
)  # fmt: skip
SECTOR = 32  # bytes; the unit in which L2 and DRAM move global data


@dataclass
class Counters:
    """Sums over the blocks that ran. A *request* is one warp's access; *sectors* are distinct 32-byte pieces of it.

    ``block_warps[b]`` is how often a warp executed basic block ``b``; warp instructions follow from it at the end,
    which keeps counting off the hot path. ``by_slot`` splits sectors by ("load" or "store", address >> 24), which
    tells tensors apart. Sectors include those of bulk copies, whose bytes are counted apart.
    """

    load_requests: int = 0
    load_sectors: int = 0
    load_bytes: int = 0
    store_requests: int = 0
    store_sectors: int = 0
    store_bytes: int = 0
    shared_requests: int = 0
    atomic_requests: int = 0
    bulk_loads: int = 0
    bulk_load_bytes: int = 0
    bulk_stores: int = 0
    bulk_store_bytes: int = 0
    blocks: int = 0
    by_slot: Counter[tuple[str, int]] = field(default_factory=Counter)
    block_warps: Counter[int] = field(default_factory=Counter)
    block_lanes: Counter[int] = field(default_factory=Counter)

    def access(self, kind: str, g: Group, address: Array, width: int) -> None:
        """Counts one global load or store of ``width`` bytes a lane."""
        touched = sectors(g.gid, address, width, g.whole())
        self.by_slot[kind, int(address[0]) >> 24] += touched
        if kind == "load":
            self.load_requests += g.warps()
            self.load_bytes += g.n * width
            self.load_sectors += touched
        else:
            self.store_requests += g.warps()
            self.store_bytes += g.n * width
            self.store_sectors += touched

    def bulk(self, kind: str, address: int, touched: int, size: int, times: int = 1) -> None:
        """Counts ``times`` bulk copies, which each move ``size`` bytes of global memory in ``touched`` sectors."""
        touched, size = touched * times, size * times
        self.by_slot[kind, address >> 24] += touched
        if kind == "load":
            self.bulk_loads += times
            self.bulk_load_bytes += size
            self.load_sectors += touched
        else:
            self.bulk_stores += times
            self.bulk_store_bytes += size
            self.store_sectors += touched

    def elapsed(self) -> int:
        """What the clocks have moved on by: a count that only ever grows."""
        return sum(self.block_warps.values())

    def totals(self, program: Program, scale: float = 1.0) -> dict[str, float]:
        """Counters by name, multiplied by ``scale`` where only a sample of the blocks ran."""
        classes: Counter[str] = Counter()
        tensor: Counter[str] = Counter()
        lanes = instructions = 0
        for block, warps in self.block_warps.items():
            for klass, count in program.classes[block].items():
                classes[klass] += count * warps
            for kind, count in program.tensor_ops[block].items():
                tensor[kind] += count * warps
            size = program.blocks[block].size
            instructions += size * warps
            lanes += size * self.block_lanes[block]
        found: dict[str, float] = {f"warp_instructions_{k}": v * scale for k, v in sorted(classes.items())}
        found.update({f"tensor_ops_{kind}": v * scale for kind, v in sorted(tensor.items())})
        found["tensor_ops"] = sum(tensor.values()) * scale
        found["warp_instructions"] = instructions * scale
        found["lane_instructions"] = lanes * scale
        for name in ("load", "store"):
            for unit in ("requests", "sectors", "bytes"):
                found[f"global_{name}_{unit}"] = getattr(self, f"{name}_{unit}") * scale
        for name in _PLAIN:
            found[name] = getattr(self, name) * scale
        found["blocks_counted"] = float(self.blocks)
        found["load_bytes_in_flight"] = self._in_flight(program)
        return found

    def _in_flight(self, program: Program) -> float:
        """Bytes a thread has outstanding on average, weighted by how often each batch of loads ran."""
        weighted = total = 0.0
        for block, warps in self.block_warps.items():
            for size in program.load_batches[block]:
                weighted += size * size * warps
                total += size * warps
        return weighted / total if total else 0.0


def sectors(gid: Array, address: Array, width: int, whole: bool) -> int:
    """Distinct 32-byte sectors touched, summed over warps. ``address`` is uint64 by lane, ``width`` ≤ 32 bytes."""
    if address.ndim == 0 or len(address) == 0:
        return 1 if address.ndim == 0 else 0
    sector = address >> np.uint64(5)
    if whole:
        table = sector.reshape(-1, 32)
        if not (table[:, 1:] >= table[:, :-1]).all():
            table = np.sort(table, axis=1)
        return len(table) + int(np.count_nonzero(table[:, 1:] != table[:, :-1]))
    warp = gid >> 5
    order = np.lexsort((sector, warp))
    w, s = warp[order], sector[order]
    return 1 + int(np.count_nonzero((w[1:] != w[:-1]) | (s[1:] != s[:-1])))
