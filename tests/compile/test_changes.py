"""A candidate that changes the DSL is found, whichever way it does; what the DSL itself changes is not taken for it."""

from __future__ import annotations

import pytest

from cutegen_lab.compile import CageCompiler, gate
from cutegen_lab.core.verdict import Verdict
from tests.compile.conftest import MATRIX, compile_one, fail_ungated
from tests.compile.sources import HEAD, SCALE, TMA, with_prologue

SAME = "def same(x, *more, **named):\n    return x\n"
# What a text does at its top level, and what of it is said. The first ones are let through by the gate today.
PATCHES = {
    "a tuple": ("for one in (cute.Tensor,):\n    one.to = same", "Tensor.to"),
    "unpacking": ("one, two = cute.arch, 1\none.thread_idx = same", "cutlass.cute.arch.thread_idx"),
    "a function": ("def change(one):\n    one.zipped_divide = same\nchange(cute)", "cutlass.cute.zipped_divide"),
    "a decorator": ("import dataclasses\ndataclasses.dataclass(cute.Tensor)", "Tensor.__"),
    "a comprehension": ("[None for cutlass.Int32.to in [same]]", "Int32.to"),
    "a default": ("def change(one=cutlass):\n    one.range = same\nchange()", "cutlass.range"),
    "one of Python's": ("import math\nfor one in (math,):\n    one.floor = same", "math.floor"),
    "a number": ("for one in (cute.arch,):\n    one.WARP_SIZE = 16", "WARP_SIZE"),
    "a name that is new": ("for one in (cute.arch,):\n    one.lane_idx_of = same", "lane_idx_of"),
    "a builtin that is new": ("for one in (cute.Tensor,):\n    one.size = len", "Tensor.size"),
    "deleting": ("for one in (cute.arch,):\n    del one.thread_idx", "cutlass.cute.arch.thread_idx"),
    "a loop's target": ("for cute.arch.block_idx in (same,): pass", "cutlass.cute.arch.block_idx"),
    "by the class itself": ("type.__setattr__(cutlass.Float32, 'to', same)", "Numeric.to|Float32.to"),
    "an object": (
        "import cutlass.base_dsl.dsl as dsl\nfor one in dsl.DSLSingletonMeta._instances.values():\n"
        "    one.compile_and_cache = same",
        "compile_and_cache",
    ),
    "code": ("cute.depth.__code__ = same.__code__", "depth"),
    "defaults": ("cute.make_layout.__kwdefaults__ = {'stride': 3}", "make_layout"),
    "a dictionary": ("cute.__dict__['size'] = same", "cutlass.cute.size"),
    "another module": ("import sys, types\nsys.modules['cutlass.cute.math'] = types.ModuleType('x')", "sys.modules"),
    "builtins": ("import builtins\nbuiltins.divmod = same", "builtins.divmod"),
    "the comparison": (
        "import cutegen_lab.compile.changes as changes\nchanges.Snapshot.changes = lambda self, own='': ()\n",
        "Snapshot.changes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", [*PATCHES])
def test_a_change_is_found_whichever_way_it_was_made(compiler: CageCompiler, way: str) -> None:
    code, said = PATCHES[way]
    failure = fail_ungated(compiler, with_prologue(f"{HEAD}{SAME}{code}"))
    assert failure.verdict is Verdict.CONTRACT, failure
    assert "it may change nothing that it imports" in failure.reason
    assert any(name in failure.reason for name in said.split("|")), failure.reason


WITH_TORCH = ("import cutlass.torch as cutlass_torch", "from cutlass import torch", "from cutlass.torch import dtype")


@pytest.mark.parametrize("imported", WITH_TORCH)
def test_what_torch_replaces_when_it_is_imported_is_not_the_candidates(compiler: CageCompiler, imported: str) -> None:
    """As NVIDIA's examples import it for their host code: torch replaces ``inspect.getfile``."""
    compile_one(compiler, SCALE.replace("import cutlass\n", f"import cutlass\n{imported}\n"))
    changed = with_prologue(
        f"{HEAD}{imported}\nimport inspect\nreal = inspect.getfile\ninspect.getfile = lambda x: real(x)\n"
    )
    failure = fail_ungated(compiler, changed)
    assert failure.verdict is Verdict.CONTRACT and "inspect.getfile" in failure.reason


def test_a_change_while_it_is_compiled_is_found(compiler: CageCompiler) -> None:
    source = SCALE.replace(
        "    n = x.shape[0]\n", "    for one in (cute.arch,):\n        one.lanes = 5\n    n = x.shape[0]\n"
    )
    assert source != SCALE
    failure = fail_ungated(compiler, source)
    assert failure.verdict is Verdict.CONTRACT and "cutlass.cute.arch.lanes" in failure.reason


def test_what_the_gate_lets_through_is_found_by_the_compiler(compiler: CageCompiler) -> None:
    source = with_prologue(f"{HEAD}{SAME}{PATCHES['a tuple'][0]}")
    assert gate.check(source) == []
    assert fail_ungated(compiler, source).verdict is Verdict.CONTRACT


def test_the_candidates_own_may_change(compiler: CageCompiler) -> None:
    code = (
        "from dataclasses import dataclass\nfrom enum import Enum\nfrom functools import lru_cache\nimport math\n"
        "class Mine(cute.Tensor):\n    pass\nMine.to = math.floor\n"
        "class Kind(Enum):\n    ONE = 1\n"
        "@dataclass\nclass Both:\n    kind: Kind = Kind.ONE\n"
        "@lru_cache\ndef cached(x):\n    return x\ncached(Both().kind)\n"
        "from cutlass.utils import blackwell_helpers\n"
    )
    assert compile_one(compiler, with_prologue(HEAD + code)).builds
    assert compile_one(compiler, TMA, MATRIX).builds


def test_the_dsls_own_jit_functions_are_rewritten_when_they_are_called(compiler: CageCompiler) -> None:
    stages = (
        "    stage = cutlass.pipeline.make_pipeline_state(cutlass.pipeline.PipelineUserType.Consumer, 2).clone()\n"
        "    stage.advance()\n    i = bidx * threads + tidx + stage.index - 1\n"
    )
    source = SCALE.replace("    i = bidx * threads + tidx\n", stages).replace(
        "import cutlass\n", "import cutlass\nimport cutlass.pipeline\n"
    )
    assert compile_one(compiler, source).builds
