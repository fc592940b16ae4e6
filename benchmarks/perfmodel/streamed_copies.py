"""Programs that copy 64 MiB by blocks that do nothing else: what block starts, warps and loads in flight cost on a GPU.

    python -m benchmarks.perfmodel.streamed_copies FOLDER                 (needs the DSL's assembler; no GPU; seconds)
    python -m benchmarks.perfmodel.counters_on_gpu time FOLDER OUT.json   (a GPU, and torch; less than a minute)

Each thread loads some values of 2, 4, 8 or 16 bytes, a block's width apart, and stores them. On an H200 (2026-11-27,
results/streamed_copies_on_gpu.json) a wave of blocks that copy one value of 2 bytes a thread takes 0.68 µs with 256
threads, 0.71 with 512 and 0.77 with 1,024.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.harness import command_line
from benchmarks.perfmodel.counters_cases import store_timed
from cutegen_lab.core.artifact import Build
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from tests.emulator.ptx_kernel import build, kernel

SIZE = 64 << 20
_PLACE = """
  mov.u32 %r4, %tid.x; mul.wide.u32 %rd5, %r2, {step}; mul.wide.u32 %rd8, %r4, {width}; add.s64 %rd5, %rd5, %rd8;
  add.s64 %rd6, %rd1, %rd5; add.s64 %rd7, %rd2, %rd5;
"""
_ACCESS = {2: ".b16", 4: ".b32", 8: ".v2.b32", 16: ".v4.b32"}


@dataclass(frozen=True)
class Copy:
    """``values`` of ``width`` bytes a thread, in blocks of ``threads``."""

    width: int
    values: int
    threads: int

    @property
    def name(self) -> str:
        return f"copy-{self.width}-{self.values}-{self.threads}"

    def _registers(self, number: int) -> str:
        if self.width == 2:
            return f"%h{number}"
        words = ", ".join(f"%q{number}_{i}" for i in range(self.width // 4))
        return f"{{{words}}}" if self.width > 4 else words

    def program(self) -> tuple[Workload, Build]:
        """The tensors and the build without a cubin."""
        apart = self.threads * self.width
        declared = " ".join(f".reg .b32 %q{i}_<4>; .reg .b16 %h{i};" for i in range(self.values))
        kind, each = _ACCESS[self.width], [(self._registers(i), i * apart) for i in range(self.values)]
        loads = "\n".join(f"  ld.global{kind} {registers}, [%rd6+{at}];" for registers, at in each)
        stores = "\n".join(f"  st.global{kind} [%rd7+{at}], {registers};" for registers, at in each)
        body = f"{_PLACE.format(step=apart * self.values, width=self.width)}{loads}\n{stores}\n  ret;"
        blocks, data = SIZE // (apart * self.values), [np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8)]
        made = build(kernel(body, 2, declared), data, grid=(blocks, 1, 1), block=(self.threads, 1, 1))
        tensors = (TensorSpec("x", DType.U8, (SIZE,)),), (TensorSpec("o", DType.U8, (SIZE,)),)
        return Workload("main", *tensors), replace(made, inputs=1)


def copies() -> Iterator[Copy]:
    for width, values, threads in product(_ACCESS, (1, 2, 4, 8), (64, 128, 256, 512, 1024)):
        yield Copy(width, values, threads)


def main(folder: Path) -> None:
    store_timed(folder, ((f"copy-{copy.width}", copy.name, *copy.program()) for copy in copies()))


if __name__ == "__main__":
    command_line(main)
