"""Calls an exported module with the real DSL, and the stand-in runtime in place of CUDA's: run as a script.

``python recorded.py STANDIN MODULE.py CALL``: CALL is a Python expression of ``module`` and ``torch``. It is evaluated
several times; printed are, as JSON, the PTX and for each call the addresses of all tensors and the launches.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

CALLS = 3


def main(standin_path: str, module_path: str, call: str) -> None:
    os.environ.update({"CUTE_DSL_ARCH": "sm_90a", "CUTE_DSL_LIBS": standin_path, "CUTE_DSL_NO_CACHE": "1",
                       "CUTE_DSL_DISABLE_FILE_CACHING": "1", "CUTE_DSL_KEEP_PTX": "1"})  # fmt: skip
    import cutlass.cute as cute
    import torch

    from cutegen_lab.compile import dsl, ptx
    from cutegen_lab.compile.record import StandIn
    from cutegen_lab.core.roofline import target_gpu

    standin = StandIn(standin_path, target_gpu("sm_90a"))
    torch.cuda.current_stream = lambda device=None: SimpleNamespace(cuda_stream=standin.stream)  # type: ignore[assignment]
    texts, calls, bases = [], [], list[int]()
    compile_once = cute.compile

    def compile(*arguments: Any, **named: Any) -> Any:
        compiled = compile_once(*arguments, **named, options="--keep-ptx --gpu-arch sm_90a")
        texts.append(compiled.artifacts.PTX)
        for entry in ptx.entries(compiled.artifacts.PTX):
            standin.declare(entry)
        dsl.load(compiled)  # calling it would ask CUDA for a device first

        def launch(*given: Any) -> None:
            *tensors, stream = given
            assert int(stream) == standin.stream
            bases[:] = [tensor.data_ptr for tensor in tensors]
            assert dsl.call(compiled, bases, standin.stream) == 0

        return launch

    cute.compile = compile  # type: ignore[assignment]
    spec = importlib.util.spec_from_file_location("temp_module", module_path)  # as KernelBench loads it
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    keep = []
    for number in range(CALLS):
        keep.append(torch.empty(1000 + 4096 * number))  # so that tensors lie elsewhere
        bases.clear()
        standin.reset()
        keep.append(eval(call, {"module": module, "torch": torch}))  # noqa: S307
        calls.append({"bases": list(bases), "log": standin.log()})
    print(json.dumps({"ptx": texts, "calls": calls}))


if __name__ == "__main__":
    main(*sys.argv[1:])
