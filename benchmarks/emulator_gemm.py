"""How long the emulator takes for a persistent warp-specialised GEMM (TMA, wgmma, clusters), beside PyTorch's own.

Usage: ``python -m benchmarks.emulator_gemm [SIZE ...]`` (1024 and 4096). Prints for each size, bf16 size³: seconds
(counters on; the best of three below 2048, else one), the ratio to a float32 product of the same operands on the same
CPU in the same run, the error of the result against float64, and the most memory the process has taken so far.
Reads of bytes never written are looked for, as on every full workload; races are not, as on none.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import threading
from pathlib import Path

import torch

from benchmarks.emulator_softmax import best
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options

SIZES = (1024, 4096)
SOURCE = Path(__file__).parents[1] / "tests" / "honest" / "kernels" / "gemm_tma_wgmma.py"
CONFIG = {"clusters": 66}  # of two blocks: one block for each multiprocessor of an H200
CHECKED_ROWS = 256


def measure(size: int, compiler: CageCompiler) -> str:
    specs = tuple(TensorSpec.parse(f"{name}: bf16[{size},{size}]") for name in "abc")
    workload = Workload(f"n{size}", specs[:2], specs[2:])
    artifact = compiler.compile(SOURCE.read_text(), CONFIG, [workload], "sm_90a", print, threading.Event())
    if not hasattr(artifact, "builds"):
        sys.exit(str(artifact))
    build = artifact.builds[workload.name]
    torch.manual_seed(0)
    a, b = (torch.randn(size, size).bfloat16() for _ in range(2))
    out = torch.full_like(a, float("nan"))
    views = [memoryview(t.view(torch.uint8).reshape(-1).numpy()) for t in (a, b, out)]
    device = EmulatorDevice(Options(races=False))

    def emulate() -> None:
        fault = device.execute(build, specs, views, threading.Event()).fault
        if fault:
            sys.exit(str(fault))

    emulated, native = best(emulate, 3 if size < 2048 else 1), best(lambda: a.float() @ b.float())
    rows = torch.linspace(0, size - 1, CHECKED_ROWS).long()
    exact = a[rows].double() @ b.double()
    error = float((out[rows].double() - exact).norm() / exact.norm())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{size}³: emulator {emulated:.2f} s, torch float32 on {torch.get_num_threads()} threads {native:.3f} s, "
        f"ratio {emulated / native:.1f}; error to float64 {error:.3e}; peak memory {memory:.0f} MiB"
    )


def main() -> None:
    sizes = [int(n) for n in sys.argv[1:]] or SIZES
    with tempfile.TemporaryDirectory() as cache:
        compiler = CageCompiler(Path(cache), workers=1)
        for size in sizes:
            print(measure(size, compiler), flush=True)
        compiler.close()


if __name__ == "__main__":
    main()
