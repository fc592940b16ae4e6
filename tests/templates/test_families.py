"""From reference to a judged kernel: every family, two dtypes, awkward shapes; compiled, emulated, against float64."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import StandardJudge, select_workloads
from cutegen_lab.problems import read_text
from cutegen_lab.templates.reader import read
from cutegen_lab.templates.registry import family_for
from tests.templates.judging import wide_loads


def body(expression: str, arguments: str = "x") -> str:
    return f"def reference({arguments}):\n    return {expression}\n"


CASES = [
    ("softmax", body("torch.softmax(x, -1)"), "x: {}[16,1024]", "row reduction"),
    ("log_softmax", body("F.log_softmax(x, dim=1)"), "x: {}[16,1000]", "row reduction"),
    ("scaled softmax", body("torch.softmax(x * 0.125 + m, -1)", "x, m"), "x: {0}[8,4,96], m: {0}[96]", "row reduction"),
    ("rms_norm", body("F.rms_norm(x, w.shape, w, 1e-6)", "x, w"), "x: {0}[16,768], w: {0}[768]", "row reduction"),
    ("layer_norm", body("F.layer_norm(x, w.shape, w, b)", "x, w, b"), "x: {0}[9,320], w: {0}[320], b: {0}[320]",
     "row reduction"),
    ("sum", body("x.sum(-1)"), "x: {}[33,257]", "row reduction"),
    ("mean of relu", body("torch.relu(x).mean(-1)"), "x: {}[16,512]", "row reduction"),
    ("max", body("x.amax(-1)"), "x: {}[16,512]", "row reduction"),
    ("argmax", body("x.argmax(-1)"), "x: {}[16,512]", "row reduction"),
    ("max of a pair", body("torch.maximum(x, y).amax(-1)", "x, y"), "x: {0}[16,40], y: {0}[16,40]", "row reduction"),
    ("l1", body("F.normalize(x, p=1, dim=-1)"), "x: {}[16,512]", "row reduction"),
    ("l2", body("F.normalize(x, dim=-1)"), "x: {}[16,512]", "row reduction"),
    ("gelu gate", body("F.gelu(x) * torch.sigmoid(g)", "x, g"), "x: {0}[64,500], g: {0}[500]", "elementwise chain"),
    ("silu and mul", body("F.silu(x) * y", "x, y"), "x: {0}[31,77], y: {0}[31,77]", "elementwise chain"),
    ("two ranks", "def reference(x, y, z):\n    return x + y + z, y.exp(), z * 2\n",
     "x: {0}[3,6,20], y: {0}[6,1], z: {0}[3,1,1]", "elementwise chain"),
    ("glu", body("F.glu(x)"), "x: {}[9,64]", "elementwise chain"),
    ("bias over rows", body("x + b[:, None]", "x, b"), "x: {0}[64,96], b: {0}[64]", "elementwise chain"),
    ("sum over 0", body("x.sum(0)"), "x: {}[200,96]", "column reduction"),
    ("softmax over 1", body("torch.softmax(x, 1)"), "x: {}[4,50,72]", "column reduction"),
    ("mean over 0", body("x.mean(0)"), "x: {}[77,33]", "column reduction"),
]  # fmt: skip


def judged(compiler: CageCompiler, problem: Problem, config: dict[str, int] | None = None) -> tuple[str, Verdict, str]:
    graph = read(problem)
    family = family_for(graph)
    source = family.write(problem, graph, config or family.default_config(graph, problem.workload))
    device, cancel = EmulatorDevice(), threading.Event()
    workloads = select_workloads(problem, device)
    artifact = compiler.compile(source, {}, workloads, "sm_90a", lambda line: None, cancel)
    assert isinstance(artifact, Artifact), f"{artifact}\n{source}"
    result = StandardJudge().check(problem, artifact, device, lambda line: None, cancel)
    return family.NAME, result.verdict, result.reason


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(("name", "source", "inputs", "family"), CASES, ids=[c[0] for c in CASES])
def test_the_default_is_right(
    compiler: CageCompiler, name: str, source: str, inputs: str, family: str, dtype: str
) -> None:
    problem = read_text(source, name=name.replace(" ", "_"), inputs_text=inputs.format(dtype))
    seen, verdict, reason = judged(compiler, problem)
    assert (seen, verdict) == (family, Verdict.PASSED), reason


@pytest.mark.parametrize(
    "config",
    [
        {"vec": 1, "threads_per_row": 32, "rows_per_block": 4, "cluster_n": 1, "loads": 64},
        {"vec": 4, "threads_per_row": 8, "rows_per_block": 16, "cluster_n": 1, "loads": 64},
        {"vec": 16, "threads_per_row": 1024, "rows_per_block": 1, "cluster_n": 1, "loads": 64},
        {"vec": 2, "threads_per_row": 128, "rows_per_block": 8, "cluster_n": 1, "loads": 64},
        {"vec": 4, "threads_per_row": 64, "rows_per_block": 2, "cluster_n": 2, "loads": 64},
        {"vec": 8, "threads_per_row": 32, "rows_per_block": 4, "cluster_n": 8, "loads": 64},
        {"vec": 1, "threads_per_row": 32, "rows_per_block": 1, "cluster_n": 1, "loads": 2},
        {"vec": 2, "threads_per_row": 8, "rows_per_block": 4, "cluster_n": 2, "loads": 4},
    ],
)
def test_other_configs_are_right_too(compiler: CageCompiler, config: dict[str, int]) -> None:
    problem = read_text(body("torch.softmax(x, -1)"), name="softmax", inputs_text="x: f16[20,256]")
    small = problem.check_workloads[1:2] + problem.check_workloads[3:4]
    chosen = replace(problem, check_workloads=tuple(w for w in small if w.inputs[0].shape[-1] <= 512))
    _, verdict, reason = judged(compiler, chosen, config)
    assert verdict is Verdict.PASSED, reason


KERNELBENCH = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.scale = nn.Parameter(torch.rand(features))
        self.register_buffer("shift", torch.rand(features))
        self.limit = torch.tensor(3.0)

    def forward(self, x):
        return torch.minimum(self.norm(x) * self.scale + self.shift, self.limit)

def get_inputs():
    return [torch.rand(64, 320)]

def get_init_inputs():
    return [320]
"""


def test_a_kernelbench_model_with_parameters_and_buffers(compiler: CageCompiler) -> None:
    problem = read_text(KERNELBENCH, name="scaled_norm")
    assert [t.name for t in problem.workload.inputs] == ["x", "scale", "norm_weight", "norm_bias", "shift"]
    seen, verdict, reason = judged(compiler, problem)
    assert (seen, verdict) == ("row reduction", Verdict.PASSED), reason


def test_single_numbers_alone_are_named() -> None:
    for expression, inputs in (("torch.exp(x)", "x: f32[]"), ("x[3]", "x: f32[8]")):
        problem = read_text(body(expression), inputs_text=inputs)
        with pytest.raises(ProviderError, match="no template family serves a computation of single numbers"):
            family_for(read(problem))


def test_rows_too_long_for_a_cluster_are_right(compiler: CageCompiler) -> None:
    for dtype, n in (("bf16", 600_000), ("f32", 530_001)):
        problem = read_text(body("torch.softmax(x, -1)"), inputs_text=f"x: {dtype}[2,{n}]")
        assert read(problem) and family_for(read(problem)).default_config(read(problem), problem.workload)["loads"] < 64
        _, verdict, reason = judged(compiler, problem)
        assert verdict is Verdict.PASSED, reason


@pytest.mark.parametrize("reference", ["torch.softmax(x, -1)", "F.layer_norm(x, x.shape[-1:])"])
@pytest.mark.parametrize(("rows", "n"), [(4096, 65536), (64, 262144)])
def test_a_long_row_stays_in_the_registers_of_a_cluster(
    compiler: CageCompiler, reference: str, rows: int, n: int
) -> None:
    problem = read_text(body(reference), inputs_text=f"x: f32[{rows},{n}]")
    graph = read(problem)
    family = family_for(graph)
    config = family.default_config(graph, problem.workload)
    source = family.write(problem, graph, config)
    artifact = compiler.compile(source, {}, (problem.workload,), "sm_90a", lambda line: None, threading.Event())
    assert isinstance(artifact, Artifact)
    (kernel,) = artifact.builds["main"].kernels
    values = n // (int(config["threads_per_row"]) * int(config["cluster_n"]))
    assert int(config["cluster_n"]) > 1 and kernel.spill_store_bytes == 0
    assert wide_loads(artifact) == values // 4, "a thread's values are read once"


@pytest.mark.parametrize(("n", "threads"), [(1, 1), (3, 4), (8, 2)])
def test_a_short_row_has_as_many_threads_as_vectors(compiler: CageCompiler, n: int, threads: int) -> None:
    problem = read_text(body("torch.softmax(x, -1)"), inputs_text=f"x: f32[70,{n}]")
    problem = replace(problem, check_workloads=())
    assert family_for(read(problem)).default_config(read(problem), problem.workload)["threads_per_row"] == threads
    assert judged(compiler, problem)[1] is Verdict.PASSED


def test_wide_loads(compiler: CageCompiler) -> None:
    problem = read_text(body("torch.softmax(x, -1)"), inputs_text="x: bf16[4096,8192]")
    graph = read(problem)
    family = family_for(graph)
    source = family.write(problem, graph, family.default_config(graph, problem.workload))
    artifact = compiler.compile(source, {}, (problem.workload,), "sm_90a", lambda line: None, threading.Event())
    assert isinstance(artifact, Artifact)
    assert wide_loads(artifact) == 4 and "b16" not in "".join(re.findall(r"ld\.global\S*", artifact.builds["main"].ptx))
    assert artifact.builds["main"].kernels[0].spill_store_bytes == 0


def test_the_example_in_the_prompts_is_right(compiler: CageCompiler) -> None:
    source = (Path(__file__).parents[2] / "prompts" / "example_softmax.py").read_text()
    problem = read_text(body("torch.softmax(x, -1)"), inputs_text="x: bf16[32,2048]")
    device, cancel = EmulatorDevice(), threading.Event()
    workloads = select_workloads(problem, device)
    artifact = compiler.compile(source, {}, workloads, "sm_90a", lambda line: None, cancel)
    assert isinstance(artifact, Artifact), artifact
    result = StandardJudge().check(problem, artifact, device, lambda line: None, cancel)
    assert result.verdict is Verdict.PASSED, result.reason
