"""Resources of a launch on a multiprocessor, and its occupancy if it used more or less of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutegen_lab.core.artifact import Build, KernelInfo, Launch
from cutegen_lab.core.residency import blocks_by, shared_memory
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.perfmodel import occupancy
from cutegen_lab.profiles.kernel_names import short_names
from cutegen_lab.profiles.row import Row

_REGISTERS = range(16, 256, 8)  # registers per thread to try: ptxas allocates them in multiples of 8, up to 255
_SMEM_STEPS = 64


@dataclass(frozen=True)
class Taken:
    """Static resources of one launch."""

    kernel: str
    """Name of the kernel."""
    blocks: int
    """Blocks of the grid."""
    threads: int
    """Threads per block."""
    cluster: int
    """Blocks per cluster."""
    registers: int
    """Registers per thread."""
    smem_bytes: int
    """Shared memory per block in bytes, static and dynamic."""

    def warps(self, gpu: GpuSpec, registers: int | None = None, smem_bytes: int | None = None) -> int:
        """Resident warps per multiprocessor if the launch used these resources instead; 0 if no block fits."""
        launch, kernel = self._as_launch(registers, smem_bytes)
        return min(blocks_by(launch, kernel, gpu).values()) * -(-self.threads // 32)

    def limits(self, gpu: GpuSpec) -> dict[str, int]:
        """Resident blocks per multiprocessor that each resource allows."""
        return dict(blocks_by(*self._as_launch(None, None), gpu))

    def _as_launch(self, registers: int | None, smem_bytes: int | None) -> tuple[Launch, KernelInfo]:
        taken = self.smem_bytes if smem_bytes is None else smem_bytes
        grid, block, cluster = ((n, 1, 1) for n in (self.blocks, self.threads, self.cluster))
        launch = Launch(self.kernel, grid, block, cluster, taken, (), ())
        count = self.registers if registers is None else registers
        return launch, KernelInfo(self.kernel, count, 0, 0, 0, 0, ())


def taken(launch: Launch, kernel: KernelInfo) -> Taken:
    """Resources of a launch."""
    blocks, threads, cluster = map(math.prod, (launch.grid, launch.block, launch.cluster))
    return Taken(kernel.name, blocks, threads, cluster, kernel.registers, shared_memory(launch, kernel))


def by_registers(one: Taken, gpu: GpuSpec) -> list[tuple[int, int]]:
    """(registers per thread, resident warps)."""
    return [(count, one.warps(gpu, registers=count)) for count in _REGISTERS]


def by_smem(one: Taken, gpu: GpuSpec) -> list[tuple[int, int]]:
    """(bytes of shared memory per block, resident warps)."""
    sizes = [gpu.max_smem_per_block * step // _SMEM_STEPS for step in range(_SMEM_STEPS + 1)]
    return [(size, one.warps(gpu, smem_bytes=size)) for size in sizes]


def residency_rows(about: tuple[str, str, str], build: Build, gpu: GpuSpec) -> Iterator[Row]:
    """Registers, shared memory and residency of each kernel. ``about``: run, candidate and workload."""
    names = short_names(launch.kernel for launch in build.plan.launches)
    for launch in {launch.kernel: launch for launch in build.plan.launches}.values():
        kernel, name = build.kernel(launch.kernel), names[launch.kernel]
        one, shape = taken(launch, kernel), occupancy(launch, kernel, gpu)
        for metric, unit, value in (
            ("registers", "registers per thread", one.registers),
            ("spill_bytes", "bytes", kernel.spill_store_bytes + kernel.spill_load_bytes),
            ("shared_memory", "bytes per block", one.smem_bytes),
            ("threads", "threads per block", one.threads),
            ("cluster", "blocks per cluster", one.cluster),
            ("blocks", "blocks", one.blocks),
            ("resident_blocks", "blocks per multiprocessor", shape.blocks),
            ("resident_warps", "warps per multiprocessor", shape.warps),
            ("occupancy", "", shape.warps * 32 / gpu.max_threads_per_sm),
        ):
            yield Row(*about, name, "static", "", metric, unit, float(value))
        for resource, blocks in one.limits(gpu).items():
            unit = "blocks per multiprocessor"
            yield Row(*about, name, "static", resource, "resident_blocks_allowed", unit, float(blocks))


def taken_of(rows: Sequence[Row], candidate: str, kernel: str) -> Taken:
    """The resources in rows of :func:`residency_rows`. Raises KeyError if they are missing."""
    where = (candidate, kernel, "static")
    by = {row.metric: int(row.value) for row in rows if (row.candidate, row.kernel, row.source) == where}
    return Taken(kernel, by["blocks"], by["threads"], by["cluster"], by["registers"], by["shared_memory"])
