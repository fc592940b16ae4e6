"""The part of the corpus that the templates write: every family, three dtypes, tails, primes, one row, odd configs."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_lab.core.candidate import Config
from cutegen_lab.problems import read_text
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for


@dataclass(frozen=True)
class Case:
    """``config`` holds the parameters that differ from the family's defaults."""

    problem: str
    inputs: str
    config: Config = field(default_factory=dict)


def _case(expression: str, inputs: str, **config: int) -> Case:
    arguments = ", ".join(part.split(":")[0].strip() for part in inputs.split("], "))
    return Case(f"def reference({arguments}):\n    return {expression}\n", inputs, config)


CASES = {
    "generated_avg_pool2d": _case("F.relu(F.avg_pool2d(x, 3, 2, 1))", "x: f16[2,5,33,48]", outputs=4),
    # Rows: fused reductions, at every width of vector and number of threads a row.
    "generated_softmax": _case("torch.softmax(x, -1)", "x: bf16[64,1000]"),
    "generated_softmax_prime": _case("torch.softmax(x, -1)", "x: f32[31,1009]"),
    "generated_softmax_many_rows_a_block": _case(
        "torch.softmax(x, -1)", "x: bf16[100,64]", vec=4, threads_per_row=8, rows_per_block=16
    ),
    "generated_softmax_cluster": _case(
        "torch.softmax(x, -1)", "x: bf16[6,4096]", vec=8, threads_per_row=64, rows_per_block=2, cluster_n=4
    ),
    "generated_softmax_in_steps": _case(
        "torch.softmax(x, -1)", "x: f32[5,3001]", vec=1, threads_per_row=32, rows_per_block=1, loads=2
    ),
    "generated_rms_norm": _case("F.rms_norm(x, w.shape, w, 1e-6)", "x: bf16[33,768], w: bf16[768]"),
    "generated_layer_norm": _case(
        "F.layer_norm(x, w.shape, w, b)", "x: f16[9,321], w: f16[321], b: f16[321]", threads_per_row=64
    ),
    "generated_row_argmax": _case("x.argmax(-1)", "x: bf16[17,1031]"),
    "generated_l1_normalize": _case("F.normalize(x, p=1, dim=-1)", "x: f32[16,500]", rows_per_block=2),
    # Columns: the reduced dimension is not the last.
    "generated_column_sum": _case("x.sum(0)", "x: f32[301,97]"),
    "generated_column_mean_one_slice": _case("x.mean(0)", "x: bf16[64,200]", vec=2, threads=32, slices=1, loads=1),
    "generated_middle_softmax": _case("torch.softmax(x, 1)", "x: f16[3,53,40]", slices=16),
    # Elementwise chains, with and without broadcasting.
    "generated_gelu_gate": _case("F.gelu(x) * torch.sigmoid(g)", "x: bf16[50,512], g: bf16[512]"),
    "generated_silu_and_mul": _case("F.silu(x) * y", "x: f16[31,77], y: f16[31,77]", vec=2, threads=64, loads=4),
    "generated_row_bias": _case("x + b[:, None]", "x: bf16[60,101], b: bf16[60]", loads=8),
}


def write(name: str, case: Case) -> str:
    """The kernel's text."""
    problem = read_text(case.problem, name=name, inputs_text=case.inputs)
    graph = read(problem)
    family = family_for(graph)
    config = {**family.default_config(graph, problem.workload), **case.config}
    assert not family.why_not(graph, config), f"{name}: {config} is not feasible"
    return family.write(problem, graph, config)
