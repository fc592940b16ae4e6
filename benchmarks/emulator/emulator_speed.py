"""How long the emulator takes for two kernels, beside PyTorch on the same CPU in the same run.

    python -m benchmarks.emulator.emulator_speed                      (both)
    python -m benchmarks.emulator.emulator_speed softmax [ROWS ...]   (bf16[ROWS, 8192]; 4096 rows)
    python -m benchmarks.emulator.emulator_speed gemm [SIZE ...]      (bf16, SIZE³; 1024 and 4096)

The GEMM is persistent and warp-specialised (TMA, wgmma, clusters). Prints seconds with counters on (the best of three,
of one for a GEMM from 2048 up), the ratio to PyTorch's (for the GEMM a float32 product), errors against float64, and
the most memory that the process has taken so far. Uninitialised reads are looked for, as on every full workload; races
are looked for in the softmax alone.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import torch

from benchmarks.harness import ROOT, best, command_line, compiled, required, say
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options

COLUMNS = 8192
SOFTMAX = ROOT / "benchmarks/softmax_kernel.py.txt"
GEMM = ROOT / "tests/honest/kernels/gemm_tma_wgmma.py"
GEMM_CONFIG = {"clusters": 66}  # of two blocks: one block for each multiprocessor of an H200
CHECKED_ROWS = 256


def emulation(
    source: Path, config: Config, specs: Sequence[TensorSpec], tensors: Sequence[torch.Tensor], options: Options
) -> Callable[[], None]:
    """A run of the kernel on ``tensors``, of which the last is the output."""
    workload = Workload("main", tuple(specs[:-1]), tuple(specs[-1:]))
    with tempfile.TemporaryDirectory() as cache, CageCompiler(Path(cache), workers=1) as compiler:
        made = required(source.stem, compiled(compiler, source.read_text(), config, [workload]))
    build, device = made.builds["main"], EmulatorDevice(options)
    views = [memoryview(t.view(torch.uint8).reshape(-1).numpy()) for t in tensors]

    def emulate() -> None:
        if fault := device.execute(build, specs, views, threading.Event()).fault:
            sys.exit(str(fault))

    return emulate


def softmax(rows: int) -> str:
    specs = [TensorSpec.parse(f"{name}: bf16[{rows},{COLUMNS}]") for name in "xo"]
    x = (torch.randn(rows, COLUMNS) * 3).bfloat16()
    out = torch.full_like(x, float("nan"))
    emulated = best(emulation(SOFTMAX, {}, specs, [x, out], Options()))
    native = best(lambda: torch.softmax(x, -1))
    exact = torch.softmax(x.double(), -1)
    return f"softmax, {rows} rows: {told(emulated, native)}; " + (
        f"error to float64 {error(out, exact):.3e}, PyTorch's {error(torch.softmax(x, -1), exact):.3e}"
    )


def gemm(size: int) -> str:
    specs = [TensorSpec.parse(f"{name}: bf16[{size},{size}]") for name in "abc"]
    a, b = (torch.randn(size, size).bfloat16() for _ in range(2))
    out = torch.full_like(a, float("nan"))
    emulate = emulation(GEMM, GEMM_CONFIG, specs, [a, b, out], Options(races=False))
    emulated, native = best(emulate, 3 if size < 2048 else 1), best(lambda: a.float() @ b.float())
    rows = torch.linspace(0, size - 1, CHECKED_ROWS).long()
    off = error(out[rows], a[rows].double() @ b.double())
    return f"GEMM, {size}³: {told(emulated, native)}; error to float64 {off:.3e}"


def told(emulated: float, native: float) -> str:
    return (
        f"emulator {emulated:.2f} s, PyTorch on {torch.get_num_threads()} threads {native:.3f} s, "
        f"ratio {emulated / native:.1f}"
    )


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


CASES: Mapping[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "softmax": (softmax, (4096,)), "gemm": (gemm, (1024, 4096)),
}  # fmt: skip


def main(kernel: Literal["both", "softmax", "gemm"] = "both", *sizes: int) -> None:
    torch.manual_seed(0)
    for name in CASES if kernel == "both" else [kernel]:
        measure, usual = CASES[name]
        for size in sizes or usual:
            line = measure(size)
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            say(f"{line}; peak memory {most:.0f} MiB")


if __name__ == "__main__":
    command_line(main)
