"""What eager PyTorch executes for a reference, compared with what was worked by hand."""

from __future__ import annotations

import random
import re
import textwrap

import pytest
import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.operations import Execution
from cutegen_lab.core.problem import Problem
from cutegen_lab.problems import read_text
from cutegen_lab.problems.executed import execution
from cutegen_lab.problems.traffic import Part, covered_bytes
from tests.problems.sol_by_hand import PROBLEMS, ByHand


def problem_of(text: str, inputs: str) -> Problem:
    names = ", ".join(re.findall(r"(\w+): ", inputs.partition(";")[0]))
    body = text if "return " in text else f"return {text}"
    return read_text(f"def reference({names}):\n{textwrap.indent(body, '    ')}\n", inputs_text=inputs)


def executed(text: str, inputs: str) -> Execution:
    problem = problem_of(text, inputs)
    return execution(problem, problem.workload)


@pytest.mark.parametrize("worked", PROBLEMS, ids=lambda worked: worked.name)
def test_bytes_and_flops_are_those_worked_by_hand(worked: ByHand) -> None:
    problem = problem_of(worked.text, worked.inputs)
    workload = problem.workload
    found = execution(problem, workload)
    nbytes = sum(found.input_bytes) + sum(spec.nbytes for spec in workload.outputs)
    assert (nbytes, found.flops) == (worked.nbytes, worked.flops)
    assert problem.flops == worked.flops and nbytes <= workload.compulsory_bytes
    assert worked.unfused in (None, found.bytes_moved), [
        (o.name, o.bytes_read, o.bytes_written) for o in found.operations
    ]


@pytest.mark.parametrize(
    ("text", "inputs", "plain", "special"),
    [
        ("x * 2 + 1", "x: f32[128,64]", 2 * 8192, 0),
        ("x.float()", "x: bf16[128,64]", 0, 0),  # a cast is no arithmetic
        ("x.sum(-1)", "x: f32[128,64]", 8192, 0),
        ("x.exp() + x.sin()", "x: f32[128,64]", 8192, 2 * 8192),
        ("x ** 2 + x ** 0.5", "x: f32[128,64]", 2 * 8192, 8192),
        ("F.silu(x)", "x: f32[128,64]", 8192, 8192),
        ("torch.softmax(x, -1)", "x: f32[128,64]", 4 * 8192, 8192),  # maximum, difference, sum, quotient
        ("F.layer_norm(x, (64,), w, w)", "x: f32[128,64], w: f32[64]", 7 * 8192, 0),
        ("F.rms_norm(x, (64,), w)", "x: f32[128,64], w: f32[64]", 4 * 8192, 0),
        ("x.cumsum(-1)", "x: f32[128,64]", 8192, 0),
        ("F.avg_pool2d(x, 3, 1)", "x: f32[2,8,16,16]", 9 * 2 * 8 * 14 * 14, 0),
        ("a @ b", "a: f32[64,32], b: f32[32,64]", 0, 0),
        # a softmax over the pairs of 8 heads
        (
            "F.scaled_dot_product_attention(q, q, q, is_causal=True)",
            "q: bf16[2,4,64,32]",
            4 * 8 * 64 * 65 // 2,
            8 * 64 * 65 // 2,
        ),
    ],
)
def test_arithmetic_outside_products_is_an_operation_per_element(
    text: str, inputs: str, plain: int, special: int
) -> None:
    found = executed(text, inputs)
    assert (found.vector_operations, found.special_functions) == (plain, special)


def test_an_operator_has_its_own_traffic() -> None:
    product, gelu = executed("F.gelu(a @ b)", "a: bf16[128,64], b: bf16[64,32]").operations
    assert (product.name, product.operand_dtype, product.flops) == ("aten.mm", DType.BF16, 2 * 128 * 64 * 32)
    assert (product.bytes_read, product.bytes_written) == (2 * (128 * 64 + 64 * 32), 2 * 128 * 32)
    assert (gelu.name, gelu.flops, gelu.bytes_moved) == ("aten.gelu", 0, 2 * 2 * 128 * 32)


def test_parameters_of_a_module_are_read() -> None:
    text = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.unused = nn.Linear(64, 32), nn.Linear(64, 32)
    def forward(self, x):
        return self.layer(x)
def get_inputs(): return [torch.rand(128, 64)]
def get_init_inputs(): return []
"""
    problem = read_text(text)
    found = execution(problem, problem.workload)
    assert found.input_bytes == (4 * 128 * 64, 4 * 64 * 32, 4 * 32, 0, 0)
    assert found.bytes_moved == 4 * (128 * 64 + 64 * 32 + 32 + 128 * 32)


def test_every_workload_is_counted() -> None:
    problem = problem_of("a @ b", "a: f32[64,32], b: f32[32,64]; a: f32[640,32], b: f32[32,64]")
    assert [execution(problem, w).flops for w in problem.workloads] == [2 * 64 * 32 * 64, 2 * 640 * 32 * 64]


def test_operators_without_a_result_or_without_strides_are_recorded() -> None:
    listed = executed("y = [x.clone(), x.clone()]\ntorch._foreach_mul_(y, 2)\nreturn y[0]", "x: f32[64,64]")
    assert listed.input_bytes == (4 * 64 * 64,) and len(listed.operations) == 3
    sparse = executed("torch.sparse.mm(x.to_sparse(), y)", "x: f32[64,64], y: f32[64,64]")
    assert sparse.input_bytes == (4 * 64 * 64, 4 * 64 * 64)


def test_what_slices_cover_together_is_as_counted_element_by_element() -> None:
    """Random slices with steps, of tensors of 2 and 4 bytes; seed 61."""
    draw = random.Random(61)  # noqa: S311
    for _ in range(200):
        shape = (draw.randint(1, 9), draw.randint(1, 12), draw.randint(1, 10))
        tensor = torch.zeros(shape, dtype=draw.choice((torch.float32, torch.bfloat16)))
        marks, views = torch.zeros(shape, dtype=torch.bool), []
        for _ in range(draw.randint(1, 3)):
            cut = tuple(slice(a := draw.randint(0, n - 1), draw.randint(a + 1, n), draw.randint(1, 2)) for n in shape)
            marks[cut] = True
            views.append(tensor[cut])
        expected = int(marks.sum()) * tensor.element_size()
        assert covered_bytes(tensor, list(map(Part.of, views))) == expected


def test_halves_of_a_tensor_of_gigabytes_are_the_whole() -> None:
    tensor = torch.empty((1 << 20, 1 << 12), device="meta", dtype=torch.bfloat16)
    first, second = tensor.chunk(2, -1)
    assert covered_bytes(tensor, [Part.of(first), Part.of(second)]) == tensor.numel() * 2
