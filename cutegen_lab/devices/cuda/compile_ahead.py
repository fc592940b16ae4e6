"""A process that compiles the reference with torch.compile while candidates are checked.

It fills torch.compile's cache on disk, so that the worker need not compile between checks or after them. Its inputs
are zeros and its memory is not shared, so that no candidate finds an answer there.
``compile_ahead.py INDEX`` reads one request on stdin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress

from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.devices.cuda.worker_protocol import problem_from_request, problem_to_request

MODULE = "cutegen_lab.devices.cuda.compile_ahead"
_SHARE = 1 / 32  # fraction of the free GPU memory for the tensors
_FEWEST_CORES = 4  # with fewer cores it would slow the checks down
_NICENESS = 5
_LAST_SECONDS = 1.0  # maximum seconds that timing waits for the compilation


class CompileAhead:
    """The parent's half. Starts the process immediately, since importing torch.compile's modules takes seconds."""

    def __init__(self, index: int, module: str = MODULE) -> None:
        self._process: subprocess.Popen[str] | None = None
        if len(os.sched_getaffinity(0)) >= _FEWEST_CORES:
            self._process = subprocess.Popen(  # noqa: S603 - this package's own module
                [sys.executable, "-m", module, str(index)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, text=True, start_new_session=True,
            )  # fmt: skip

    def compile(self, problem: Problem) -> None:
        """Sends the first problem; later ones are not compiled ahead."""
        process = self._process
        pipe = process.stdin if process else None
        if pipe is None or pipe.closed:
            return
        specs = {kind: [s.to_dict() for s in getattr(problem.workload, kind)] for kind in ("inputs", "outputs")}
        with suppress(BrokenPipeError):
            pipe.write(json.dumps({"problem": problem_to_request(problem), **specs}) + "\n")
            pipe.close()

    def end(self) -> None:
        """Waits up to a second if the process is compiling, then kills it: nothing else may use the GPU during
        timing."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LAST_SECONDS if process.stdin.closed else 0.0)
        process.kill()
        process.wait()
        process.stdin.close()


def main() -> None:
    os.nice(_NICENESS)
    import torch

    from cutegen_lab.devices.cuda.rotating_buffers import RotatingBuffers
    from cutegen_lab.devices.cuda.subjects import ReferenceSubject, import_compiler

    torch.cuda.set_device(int(sys.argv[1]))
    import_compiler()
    if not (line := sys.stdin.readline()):
        return
    request = json.loads(line)
    inputs, outputs = ([TensorSpec.from_dict(s) for s in request[kind]] for kind in ("inputs", "outputs"))
    if sum(spec.storage_bytes for spec in (*inputs, *outputs)) > torch.cuda.mem_get_info()[0] * _SHARE:
        return
    masters = [torch.zeros(spec.storage_bytes, dtype=torch.uint8, device="cuda") for spec in inputs]
    sets = RotatingBuffers(inputs, outputs, masters, 1)
    sets.refresh(0)
    ReferenceSubject(problem_from_request(request["problem"]), "compile", sets)


if __name__ == "__main__":
    main()
    os._exit(0)  # timing waits for this process, and PyTorch's shutdown would take a second
