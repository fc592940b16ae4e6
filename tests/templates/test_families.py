"""From reference to a judged kernel: every family, two dtypes, awkward shapes; compiled, emulated, against float64."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.problems import read_text
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.harness.checking import Compiler, compiled, judged, load_width, problem_of, read_times

CASES = [
    ("softmax", "torch.softmax(x, -1)", "x: {}[16,1024]", "row reduction"),
    ("log_softmax", "F.log_softmax(x, dim=1)", "x: {}[16,1000]", "row reduction"),
    ("scaled softmax", "torch.softmax(x * 0.125 + m, -1)", "x: {0}[8,4,96], m: {0}[96]", "row reduction"),
    ("rms_norm", "F.rms_norm(x, w.shape, w, 1e-6)", "x: {0}[16,768], w: {0}[768]", "row reduction"),
    ("layer_norm", "F.layer_norm(x, w.shape, w, b)", "x: {0}[9,320], w: {0}[320], b: {0}[320]",
     "row reduction"),
    ("sum", "x.sum(-1)", "x: {}[33,257]", "row reduction"),
    ("mean of relu", "torch.relu(x).mean(-1)", "x: {}[16,512]", "row reduction"),
    ("max", "x.amax(-1)", "x: {}[16,512]", "row reduction"),
    ("argmax", "x.argmax(-1)", "x: {}[16,512]", "row reduction"),
    ("max of a pair", "torch.maximum(x, y).amax(-1)", "x: {0}[16,40], y: {0}[16,40]", "row reduction"),
    ("l1", "F.normalize(x, p=1, dim=-1)", "x: {}[16,512]", "row reduction"),
    ("l2", "F.normalize(x, dim=-1)", "x: {}[16,512]", "row reduction"),
    ("gelu gate", "F.gelu(x) * torch.sigmoid(g)", "x: {0}[64,500], g: {0}[500]", "elementwise chain"),
    ("silu and mul", "F.silu(x) * y", "x: {0}[31,77], y: {0}[31,77]", "elementwise chain"),
    ("two ranks", "def reference(x, y, z):\n    return x + y + z, y.exp(), z * 2\n",
     "x: {0}[3,6,20], y: {0}[6,1], z: {0}[3,1,1]", "elementwise chain"),
    ("glu", "F.glu(x)", "x: {}[9,64]", "elementwise chain"),
    ("bias over rows", "x + b[:, None]", "x: {0}[64,96], b: {0}[64]", "elementwise chain"),
    ("sum over 0", "x.sum(0)", "x: {}[200,96]", "column reduction"),
    ("softmax over 1", "torch.softmax(x, 1)", "x: {}[4,50,72]", "column reduction"),
    ("mean over 0", "x.mean(0)", "x: {}[77,33]", "column reduction"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(("name", "expression", "inputs", "family"), CASES, ids=[c[0] for c in CASES])
def test_the_default_is_right(
    compiler: Compiler, name: str, expression: str, inputs: str, family: str, dtype: str
) -> None:
    assert judged(compiler, problem_of(expression, inputs.format(dtype), checks=None))[0] == family


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
def test_other_configs_are_right_too(compiler: Compiler, config: dict[str, int]) -> None:
    problem = problem_of("torch.softmax(x, -1)", "x: f16[20,256]", checks=None)
    small = problem.check_workloads[1:2] + problem.check_workloads[3:4]
    chosen = replace(problem, check_workloads=tuple(w for w in small if w.inputs[0].shape[-1] <= 512))
    judged(compiler, chosen, **config)


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


def test_a_kernelbench_model_with_parameters_and_buffers(compiler: Compiler) -> None:
    problem = read_text(KERNELBENCH, name="scaled_norm")
    assert [t.name for t in problem.workload.inputs] == ["x", "scale", "norm_weight", "norm_bias", "shift"]
    assert judged(compiler, problem)[0] == "row reduction"


def test_a_kernelbench_model_s_batch_norm_normalises_by_the_batch(compiler: Compiler) -> None:
    norm = KERNELBENCH.replace("nn.LayerNorm(features)", "nn.BatchNorm1d(features)").replace("320", "96")
    problem = read_text(norm, name="batch_norm")
    assert "norm_running_mean" in [t.name for t in problem.workload.inputs]
    judged(compiler, problem)


def test_single_numbers_alone_are_named() -> None:
    for expression, inputs in (("torch.exp(x)", "x: f32[]"), ("x[3]", "x: f32[8]")):
        problem = problem_of(expression, inputs, checks=None)
        with pytest.raises(ProviderError, match="no template family serves a computation of single numbers"):
            family_for(read(problem))


def test_rows_too_long_for_a_cluster_are_right(compiler: Compiler) -> None:
    for dtype, n in (("bf16", 600_000), ("f32", 530_001)):
        problem = problem_of("torch.softmax(x, -1)", f"x: {dtype}[1,{n}]", checks=())
        graph = compiler.graph(problem)
        assert family_for(graph).default_config(graph, problem.workload)["loads"] < 64
        judged(compiler, problem)


@pytest.mark.parametrize("reference", ["torch.softmax(x, -1)", "F.layer_norm(x, x.shape[-1:])"])
@pytest.mark.parametrize(("rows", "n"), [(4096, 65536), (64, 262144)])
def test_a_long_row_stays_in_the_registers_of_a_cluster(compiler: Compiler, reference: str, rows: int, n: int) -> None:
    problem = problem_of(reference, f"x: f32[{rows},{n}]", checks=())
    graph = compiler.graph(problem)
    config = family_for(graph).default_config(graph, problem.workload)
    few = problem_of(reference, f"x: f32[4,{n}]", checks=())  # that the emulator counts
    _, artifact = compiled(compiler, few, **config)
    (kernel,) = artifact.builds["main"].kernels
    assert int(config["cluster_n"]) > 1 and kernel.spill_store_bytes == 0
    assert (read_times(few, artifact), load_width(few, artifact)) == (1, 512)


@pytest.mark.parametrize(("n", "threads"), [(1, 1), (3, 4), (8, 2)])
def test_a_short_row_has_as_many_threads_as_vectors(compiler: Compiler, n: int, threads: int) -> None:
    problem = problem_of("torch.softmax(x, -1)", f"x: f32[70,{n}]", checks=())
    graph = compiler.graph(problem)
    assert family_for(graph).default_config(graph, problem.workload)["threads_per_row"] == threads
    judged(compiler, problem)


def test_a_row_is_read_once_in_full_vectors(compiler: Compiler) -> None:
    problem = problem_of("torch.softmax(x, -1)", "x: bf16[4096,8192]", checks=())
    _, artifact = compiled(compiler, problem)
    assert (read_times(problem, artifact), load_width(problem, artifact)) == (1, 512)
    assert artifact.builds["main"].kernels[0].spill_store_bytes == 0
