"""Seconds until the emulator's verdict on honest kernels: in one process, and in as many as there are cores.

python -m benchmarks.judge.judge_processes [NAME ...]
"""

from __future__ import annotations

import tempfile
import threading
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from unittest.mock import patch

from loky import cpu_count

from benchmarks.harness import command_line, compiled, quiet, required, seconds
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import select_workloads
from cutegen_lab.problems import read_text
from cutegen_lab.session.factories import make_judge
from tests.honest.corpus import honest

NAMES = ("grid_stride_add", "online_softmax", "attention_one_warp", "quantize_int8", "matmul_shared_tiles")
TURNS = 3


def measured(name: str, compiler: CageCompiler) -> tuple[list[float], list[float]]:
    """(in one process, in several), in turns, when the other processes have started."""
    found, device, judge = honest(name), EmulatorDevice(), make_judge()
    problem = read_text(found.problem, name=name, inputs_text=found.inputs)
    cancel = threading.Event()
    artifact = required(name, compiled(compiler, found.source, {}, select_workloads(problem, device)))

    def check() -> None:
        verdict = judge.check(problem, artifact, device, quiet, cancel).verdict
        assert verdict is Verdict.PASSED, verdict

    check()  # the other processes start
    taken: tuple[list[float], list[float]] = ([], [])
    for times in taken * TURNS:
        with patch("cutegen_lab.judge.judge.can_fork", lambda *_: False) if times is taken[0] else nullcontext():
            times.append(seconds(check))
    return taken


def main(*names: str) -> None:
    cores = cpu_count()
    with tempfile.TemporaryDirectory() as folder, CageCompiler(Path(folder), cores) as compiler:
        for name in names or NAMES:
            one, several = map(median, measured(name, compiler))
            print(f"{name:24} {one:6.1f} s in one process, {several:5.1f} s on {cores} cores: {several / one:.2f}")


if __name__ == "__main__":
    command_line(main)
