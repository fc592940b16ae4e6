"""How long the emulator takes for softmax bf16[4096, 8192], beside torch.softmax on the same CPU in the same run.

Usage: ``python -m benchmarks.emulator_softmax [ROWS]``. Prints seconds (best of three, counters on), the ratio, and the
error of both against float64.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.devices.emulator import EmulatorDevice

COLUMNS = 8192
SOURCE = Path(__file__).with_name("softmax_kernel.py.txt")


def best(function: Callable[[], object], times: int = 3) -> float:
    found = []
    for _ in range(times):
        started = time.perf_counter()
        function()
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    specs = tuple(TensorSpec.parse(f"{name}: bf16[{rows},{COLUMNS}]") for name in "xo")
    with tempfile.TemporaryDirectory() as cache:
        compiler = CageCompiler(Path(cache), workers=1)
        workload = Workload("main", specs[:1], specs[1:])
        artifact = compiler.compile(SOURCE.read_text(), {}, [workload], "sm_90a", print, threading.Event())
        compiler.close()
    if not hasattr(artifact, "builds"):
        sys.exit(str(artifact))
    build = artifact.builds["main"]
    torch.manual_seed(0)
    x = (torch.randn(rows, COLUMNS) * 3).bfloat16()
    out = torch.full_like(x, float("nan"))
    views = [memoryview(t.view(torch.uint8).reshape(-1).numpy()) for t in (x, out)]
    device = EmulatorDevice()

    def emulate() -> None:
        fault = device.execute(build, specs, views, threading.Event()).fault
        if fault:
            sys.exit(str(fault))

    emulated, native = best(emulate), best(lambda: torch.softmax(x, -1))
    exact = torch.softmax(x.double(), -1)
    errors = [float((t.double() - exact).norm() / exact.norm()) for t in (out, torch.softmax(x, -1))]
    print(f"emulator {emulated:.3f} s, torch on {torch.get_num_threads()} threads {native:.3f} s, "
          f"ratio {emulated / native:.1f}; error to float64 {errors[0]:.3e}, torch's {errors[1]:.3e}")  # fmt: skip


if __name__ == "__main__":
    main()
