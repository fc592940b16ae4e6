"""Inputs that are not row-major and dense: what is read, shrunk, told and placed in memory."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.artifact import Build, LaunchPlan
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import ProblemError, ProviderError
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.execution.buffers import Buffers
from cutegen_lab.judge.execution.placement import Placement
from cutegen_lab.problems import Reference, read_text
from cutegen_lab.problems.tensors import empty, laid_out, placed, storage
from cutegen_lab.templates.frontend.reader import read

COLUMNS = TensorSpec("x", DType.F32, (4, 3), (1, 6))  # column-major, two elements between columns
SLICED = "def reference(x):\n    return x.sum(-1)\n\ndef inputs():\n    return torch.randn(64, 300)[:, 4:204].t()\n"


def test_a_layout_is_read_and_told_as_cute_writes_it() -> None:
    assert TensorSpec.parse("x: f32[4,3]:(1,6)") == COLUMNS
    assert str(COLUMNS) == "x: f32[4,3]:(1,6)"
    assert TensorSpec.from_dict(COLUMNS.to_dict()) == COLUMNS
    assert (COLUMNS.nbytes, COLUMNS.cosize, COLUMNS.storage_bytes) == (48, 16, 64)


@pytest.mark.parametrize("strides", [(3, 1), (), (3, 1)])
def test_row_major_needs_no_strides(strides: tuple[int, ...]) -> None:
    assert TensorSpec("x", DType.F32, (4, 3), strides).strides == ()
    assert TensorSpec("x", DType.F32, (1, 3), (99, 1)).strides == ()
    assert TensorSpec("x", DType.F32, (0, 3), (1, 7)).strides == ()


@pytest.mark.parametrize(("shape", "strides"), [((4, 3), (0, 1)), ((4, 3), (2, 1)), ((4, 3), (1,)), ((4,), (-1,))])
def test_elements_may_not_share_memory(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"overlap|strides for"):
        TensorSpec("x", DType.F32, shape, strides)


def test_the_problem_s_own_layout_is_kept_and_part_of_what_is_compiled() -> None:
    problem = read_text(SLICED)
    assert problem.workload.describe() == "(x: f32[200,64]:(1,300)) -> (out: f32[200])"
    dense = read_text(SLICED.replace(".t()", ".t().contiguous()"))
    assert dense.workload.signature == "f32[200,64];f32[200]" != problem.workload.signature
    declared = read_text("def reference(x, y):\n    return x + y\n", inputs_text="x: f32[4,3]:(1,6), y: f32[4,3]")
    assert declared.workload.inputs[0] == COLUMNS


def test_small_workloads_keep_the_order_in_memory_and_the_gaps() -> None:
    inputs = [w.inputs[0] for w in read_text(SLICED).check_workloads]
    assert len(inputs) > 3
    for x in inputs:
        rows, columns = x.shape
        assert x.strides == ((1, rows + 100) if columns > 1 else ())


def test_an_expanded_input_is_refused() -> None:
    with pytest.raises(ProblemError, match="several elements at one address"):
        read_text("def reference(x):\n    return x * 2\n\ndef inputs():\n    return torch.randn(3, 1).expand(3, 8)\n")


def test_the_templates_say_that_they_need_row_major_inputs() -> None:
    with pytest.raises(ProviderError, match="not row-major and dense"):
        read(read_text(SLICED))


def test_draws_are_laid_out_as_the_workload_says() -> None:
    workload = Workload("w", (COLUMNS,), (TensorSpec("out", DType.F32, (4,)),))
    (x,) = draw(workload, "normal", 7)
    assert x.stride() == COLUMNS.strides == empty(COLUMNS).stride()
    (dense,) = draw(Workload("w", (TensorSpec("x", DType.F32, (4, 3)),), workload.outputs), "normal", 7)
    assert torch.equal(x, dense), "the values do not depend on the layout"


def test_memory_and_tensor_are_two_views_of_one_thing() -> None:
    values = torch.arange(12.0).reshape(4, 3)
    x = placed(values, COLUMNS)
    assert torch.equal(x, values)
    assert storage(x, COLUMNS).tolist() == [0, 3, 6, 9, 0, 0, 1, 4, 7, 10, 0, 0, 2, 5, 8, 11]
    assert torch.equal(laid_out(storage(x, COLUMNS).view(torch.uint8), COLUMNS), values)


def test_gaps_hold_noise_that_no_kernel_may_change() -> None:
    workload = Workload("w", (COLUMNS,), (TensorSpec("out", DType.F32, (4,)),))
    build = Build(workload.signature, "sm_90a", b"", "", (), LaunchPlan(()))
    values = placed(torch.zeros(4, 3), COLUMNS)
    places = None, Placement((0, 1), (32, 16), 64)
    one, two = (
        Buffers(workload, build, [values], poison, p, 3) for poison, p in zip((0xFF, 0x7B), places, strict=True)
    )
    memory = bytes(one.views[0])
    assert len(memory) == COLUMNS.storage_bytes and memory[16:24] != bytes(8)
    assert memory == bytes(two.views[0])[32:-64], "the same in both runs: a kernel that uses them is wrong, not random"
    assert one.modified_input() is None
    one.views[0][17] ^= 1
    assert one.modified_input() == "x"


def test_a_reference_gets_its_inputs_as_it_declared_them() -> None:
    problem = read_text(
        "def reference(x):\n    return x.t().view(-1)\n\ndef inputs():\n    return torch.randn(3, 5).t()\n"
    )
    (out,) = Reference(problem).run(draw(problem.workload, "normal", 1))
    assert out.shape == (15,)
