"""``decomposed`` gives what PyTorch's own ``run_decompositions`` gives, node by node."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import ExportedProgram, exported_program

from cutegen_lab.problems import Reference
from cutegen_lab.problems.tracing import tracing
from cutegen_lab.templates.frontend.decompose import COLLECTS, decomposed
from cutegen_lab.templates.frontend.steps import IN_STEPS
from tests.harness.checking import problem_of

ONE_INPUT = "x: f32[4,8,6]"
CASES = [
    ("torch.softmax(x * 2, -1)", ONE_INPUT),
    ("F.layer_norm(x, x.shape[-1:])", ONE_INPUT),
    ("F.hardshrink(x) + F.softshrink(x)", ONE_INPUT),
    ("F.interpolate(x[None], scale_factor=2.0, mode='bilinear')", ONE_INPUT),
    ("F.group_norm(x, 2) + F.instance_norm(x)", ONE_INPUT),
    ("F.dropout(F.gelu(x.transpose(1, 2).reshape(4, -1)), training=False)", ONE_INPUT),
    ("F.batch_norm(x, None, None, training=True)", ONE_INPUT),
    ("x.clone().add_(1).mul_(x).flatten(1).chunk(2, -1)[0]", ONE_INPUT),
    ("x.std(-1) + x.norm(dim=-1) + x.diff(dim=-1).sum(-1)", ONE_INPUT),
    ("torch.einsum('bij,bkj->bik', x, x).triu().clamp(-1, 1)", ONE_INPUT),
    ("F.silu(F.linear(x, w)) @ w", "x: bf16[4,6], w: bf16[6,6]"),
    ("F.scaled_dot_product_attention(q, k, v, is_causal=True)", "q: bf16[2,8,4], k: bf16[2,8,4], v: bf16[2,8,4]"),
    ("F.cross_entropy(x, t)", "x: f32[4,8,6], t: i64[4,6]"),
    ("F.conv1d(F.max_pool1d(x, 2), w)", "x: f32[4,8,6], w: f32[3,8,2]"),
]


def nodes(program: ExportedProgram) -> list[tuple[Any, ...]]:
    def value(node: torch.fx.Node) -> Any:
        found = node.meta.get("val")
        return (found.shape, found.dtype, found.stride()) if isinstance(found, torch.Tensor) else None

    return [(n.name, str(n.target), repr(n.args), value(n), n.meta.get("stack_trace")) for n in program.graph.nodes]


def exported(expression: str, inputs: str) -> ExportedProgram:
    problem = problem_of(expression, inputs, checks=())
    module, given = Reference(problem).module_and_args(problem.workload)
    with torch.no_grad(), torch.device("meta"):
        return torch.export.export(module.eval(), tuple(given), strict=False)


@pytest.mark.parametrize(("expression", "inputs"), CASES, ids=[case[0] for case in CASES])
def test_it_is_what_pytorch_makes_of_a_program(expression: str, inputs: str) -> None:
    with tracing():
        program = exported(expression, inputs)
        assert nodes(decomposed(program)) == nodes(program.run_decompositions(IN_STEPS))


def test_what_it_relies_on_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it every program takes ten times as long to read; it is read all the same."""
    assert hasattr(exported_program, COLLECTS)
    monkeypatch.setattr("cutegen_lab.templates.frontend.decompose.COLLECTS", "moved")
    with tracing():
        program = exported(*CASES[0])
        assert nodes(decomposed(program)) == nodes(program.run_decompositions(IN_STEPS))
