"""Splits a launch into CTA batches: whole clusters, up to the lanes and bytes that a batch may have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cutegen_lab.core.artifact import Launch
from cutegen_lab.emulator.execution_order import Order
from cutegen_lab.emulator.options import Options
from cutegen_lab.emulator.program import Program
from cutegen_lab.emulator.ptx.types import Array

BATCH_BYTES = 256 << 20
LARGE_BYTES = 64 << 20  # a cluster of at least this many bytes counts as large
MOST_BYTES = 1 << 30  # maximum bytes of a single cluster
_RACES = 32  # factor on shared memory for race detection, which takes up to 24 times as much
_COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE: blocks wait for each other, and so must run together
_REGISTER_BYTES = {"P": 1, "H": 2, "U": 4, "D": 8}


@dataclass(frozen=True)
class LaunchSplit:
    """A launch of ``clusters`` clusters of ``cluster`` blocks, ``step`` clusters per batch."""

    cluster: int
    clusters: int
    step: int

    @property
    def batches(self) -> int:
        return -(-self.clusters // self.step)

    def blocks(self, clusters: Array) -> Array:
        """Block numbers of ``clusters``."""
        return np.asarray((clusters[:, None] * self.cluster + np.arange(self.cluster)).ravel())

    def numbers(self, order: Order, sample: int | None) -> Iterator[Array]:
        """Block numbers of each batch: all blocks in ``order``, or about ``sample`` of them: the first, the last and
        others, which are random if ``order`` is shuffled, otherwise evenly spread."""
        if sample is None or self.clusters * self.cluster <= sample:
            for first in range(0, self.clusters, self.step):
                yield self.blocks(order.clusters(first, first + self.step, self.clusters))
            return
        wanted = max(sample // self.cluster, 1)
        sampled = np.linspace(0, self.clusters - 1, wanted).round().astype(np.int64)
        if order.seed:
            sampled[1:-1] = np.random.default_rng(order.seed).integers(0, self.clusters, max(wanted - 2, 0))
        sampled = np.unique(sampled)
        for first in range(0, len(sampled), self.step):
            yield self.blocks(sampled[first : first + self.step])

    def watched(self, batches: Iterator[Array], clusters: int, seed: int) -> Iterator[tuple[Array, bool]]:
        """(block numbers, whether to detect races) of each batch. The first ``clusters`` of one of ``batches`` are
        split off as a batch with race detection."""
        drawn = list(batches) if clusters else []
        chosen = seed % max(len(drawn), 1)
        for number, blocks in enumerate(drawn or batches):
            first = blocks[: clusters * self.cluster] if number == chosen and clusters else blocks[:0]
            if len(first):
                yield first, True
            if len(rest := blocks[len(first) :]):
                yield rest, False


def split(program: Program, launch: Launch, options: Options, races: bool, resident: int | None = None) -> LaunchSplit:
    """Splits ``launch``. ``resident``: blocks that the GPU runs at a time; a batch has no more, as they may wait for
    each other."""
    cluster = math.prod(launch.cluster)
    shared = max(_shared_bytes(program, launch), 1)
    if races and not any(launch.attributes.get(_COOPERATIVE, b"")):
        shared *= _RACES
    step = min(options.lanes // _lanes(launch), BATCH_BYTES // (shared + _lane_bytes(program) * _lanes(launch)))
    if resident is not None:
        step = min(step, resident // cluster)
    return LaunchSplit(cluster, math.prod(launch.grid) // cluster, max(step, 1))


def cluster_bytes(program: Program, launch: Launch) -> int:
    """Lower bound on the memory of one cluster, in bytes."""
    return _shared_bytes(program, launch) + _lane_bytes(program) * _lanes(launch)


def watched_bytes(program: Program, launch: Launch, division: LaunchSplit) -> int:
    """Lower bound on the memory of a batch with race detection, in bytes."""
    return _shared_bytes(program, launch) * _RACES * min(division.step, division.clusters)


def _lanes(launch: Launch) -> int:
    return -(-math.prod(launch.block) // 32) * 32 * math.prod(launch.cluster)


def _shared_bytes(program: Program, launch: Launch) -> int:
    return (program.static_smem + launch.dynamic_smem_bytes) * math.prod(launch.cluster)


def _lane_bytes(program: Program) -> int:
    return program.local_bytes + sum(rows * _REGISTER_BYTES[file] for file, rows in program.rows_needed.items())
