"""Fails when the installed DSL no longer has what the cage leans on."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from cutegen_lab.compile import dsl

ROOT = Path(__file__).resolve().parents[2]
PROBE = """
import inspect, json, sys
sys.path.insert(0, sys.argv[1])
from cutegen_lab.compile import dsl
from cutlass._mlir_helpers import op
from cutlass.base_dsl.compiler import Compiler
plain = op._fast_frameinfo
jit, levels = inspect.signature(Compiler.jit), []
dsl.warm_up()
class Levels:
    execution_engine = property(lambda self: self)
    def ExecutionEngine(self, module, opt_level, shared_libs):
        levels.append(opt_level)
Compiler.jit(Levels(), None, 2, ())
def places():
    frame = sys._getframe()
    return [op._fast_frameinfo(frame) == plain(frame), op._fast_frameinfo(frame) == plain(frame)]
from cutlass.cutlass_dsl.cuda_jit_executor import CudaDialectJitCompiledFunction as compiled
from cutlass.base_dsl.jit_executor import JitFunctionArtifacts as artifacts
from cutlass.cute import runtime
print(json.dumps({
    "archs": dsl.known_archs(),
    "set_up": hasattr(compiled, "_get_cuda_init_and_load"),
    "artifacts": sorted({"PTX", "CUBIN"} & set(artifacts.__dataclass_fields__)),
    "fake": list(inspect.signature(runtime.make_fake_tensor).parameters),
    "places": places() + places(),
    "jit": list(jit.parameters),
    "levels": levels,
    "torch": "torch" in sys.modules,
    "missing": sorted(dsl.missing_names([
        "cutlass.cute.maximum", "cutlass.cute.where", "cutlass.utils.SmemAllocator", "cutlass.Float32.mlir_type.x",
    ])),
}))
"""


def test_the_dsl_has_what_the_cage_uses() -> None:
    assert version(dsl.DISTRIBUTION).startswith("4.8."), "read cutegen_lab/compile/dsl.py against the new version"
    done = subprocess.run(  # noqa: S603 - our own probe
        [sys.executable, "-I", "-c", PROBE, str(ROOT)], capture_output=True, text=True, check=True, timeout=60
    )
    found = json.loads(done.stdout)
    assert "sm_90a" in found["archs"]
    assert found["set_up"] and found["artifacts"] == ["CUBIN", "PTX"]
    assert {"stride", "assumed_align"} <= set(found["fake"])
    assert found["places"] == [True] * 4, "a place in the source is not what it is without being remembered"
    assert found["jit"] == ["self", "module", "opt_level", "shared_libs"] and found["levels"] == [0]
    assert not found["torch"], "the warm server must not carry torch"
    assert found["missing"] == ["cutlass.cute.maximum"]
