"""Reading problems: what is understood, and the one line said about what is not."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.problems import Reference, read_file, read_text

SOFTMAX = "def reference(x):\n    return torch.softmax(x, dim=-1)\n"
RMSNORM = """
def reference(x, w):  # x: bf16[64,512], w: bf16[512]
    v = x.float()
    return (v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w
"""
MODEL = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.fc = nn.Linear(n, m)
        self.norm = nn.BatchNorm1d(m)
    def forward(self, x, scale):
        return self.norm(self.fc(x)) * scale

def get_inputs():
    return [torch.rand(128, 64), 2.0]

def get_init_inputs():
    return [64, 32]
"""


@pytest.mark.parametrize(
    "line",
    [
        'torch.set_float32_matmul_precision("high")',
        "torch.backends.cuda.matmul.allow_tf32 = True",
        'torch.backends.cuda.matmul.fp32_precision = "tf32"',
    ],
)
def test_a_file_allows_tf32_as_it_allows_it_to_pytorch(line: str) -> None:
    plain = read_text(SOFTMAX, inputs_text="x: f32[8,8]")
    allowed = read_text(f"{line}\n{SOFTMAX}", inputs_text="x: f32[8,8]")
    assert allowed.tf32 and not plain.tf32 and allowed.key != plain.key
    assert replace(plain, tf32=True).key != plain.key
    assert torch.get_float32_matmul_precision() == "highest", "nothing else is computed so"
    with pytest.raises(ProblemError, match="allows TF32 while it runs"):
        read_text(SOFTMAX.replace("    return", f"    {line}\n    return"), inputs_text="x: f32[8,8]")
    assert torch.get_float32_matmul_precision() == "highest"


def test_what_a_session_allows_itself_is_no_problem_s() -> None:
    torch.set_float32_matmul_precision("high")
    try:
        assert not read_text(SOFTMAX, inputs_text="x: f32[8,8]").tf32
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


CONVOLVES = "def reference(x, w):\n    return F.conv1d(x, w)\n"
CONVOLVED = "x: {0}[2,3,20], w: {0}[4,3,5]"


def test_convolutions_are_in_tf32_unless_the_text_says_otherwise_as_in_pytorch() -> None:
    inputs = CONVOLVED.format("f32")
    problem = read_text(CONVOLVES, inputs_text=inputs)
    assert problem.tf32_convolutions and not problem.tf32
    assert replace(problem, tf32_convolutions=False).key != problem.key
    for line in ("torch.backends.cudnn.allow_tf32 = False", "torch.backends.cudnn.conv.fp32_precision = 'ieee'"):
        strict = read_text(f"{line}\n{CONVOLVES}", inputs_text=inputs)
        assert not strict.tf32_convolutions
        assert torch.backends.cudnn.allow_tf32, "nothing else is computed so"
    assert not read_text(CONVOLVES, inputs_text=CONVOLVED.format("bf16")).tf32_convolutions
    assert not read_text(SOFTMAX, inputs_text="x: f32[8,8]").tf32_convolutions


def test_what_a_session_forbids_convolutions_is_no_problem_s() -> None:
    torch.backends.cudnn.allow_tf32 = False
    try:
        assert read_text(CONVOLVES, inputs_text=CONVOLVED.format("f32")).tf32_convolutions
        assert not torch.backends.cudnn.allow_tf32
    finally:
        torch.backends.cudnn.allow_tf32 = True


def test_a_file_declares_that_launches_may_differ() -> None:
    assert read_text(SOFTMAX, inputs_text="x: f32[8,8]").deterministic
    lenient = read_text("deterministic = False\n" + SOFTMAX, inputs_text="x: f32[8,8]")
    assert not lenient.deterministic
    with pytest.raises(ProblemError, match="deterministic is 'no'"):
        read_text("deterministic = 'no'\n" + SOFTMAX, inputs_text="x: f32[8,8]")


def test_a_reference_must_not_roll_dice_even_where_launches_may_differ() -> None:
    dice = "deterministic = False\ndef reference(x):\n    return x + torch.rand_like(x)\n"
    with pytest.raises(ProblemError, match="different answers"):
        read_text(dice, inputs_text="x: f32[64,64]")


def test_inputs_option_gives_shapes_and_the_output_follows() -> None:
    problem = read_text(SOFTMAX, name="softmax", inputs_text="x: bf16[32768,8192]")
    assert problem.workload.describe() == "(x: bf16[32768,8192]) -> (out: bf16[32768,8192])"
    assert problem.workload.nbytes == 2 * 2 * 32768 * 8192


def test_several_workloads_are_separated_by_semicolons() -> None:
    problem = read_text(SOFTMAX, inputs_text="x: f32[64,128]; x: f32[2,8,100]")
    assert [w.name for w in problem.workloads] == ["main", "w2"]
    assert problem.workloads[1].outputs[0].shape == (2, 8, 100)


def test_a_comment_on_the_def_line_declares_inputs() -> None:
    assert [str(t) for t in read_text(RMSNORM).workload.inputs] == ["x: bf16[64,512]", "w: bf16[512]"]


def test_inputs_function_is_called_without_allocating() -> None:
    source = SOFTMAX + "def inputs():\n    return torch.randn(1 << 16, 1 << 16, dtype=torch.float16)\n"
    assert read_text(source).workload.inputs[0].nbytes == 1 << 33


def test_kernelbench_file_has_parameters_and_buffers_after_arguments(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    problem = read_file(path)
    assert problem.kind == "kernelbench"
    names = [t.name for t in problem.workload.inputs]
    assert names[:5] == ["x", "fc_weight", "fc_bias", "norm_weight", "norm_bias"]
    assert names[5:] == ["norm_running_mean", "norm_running_var", "norm_num_batches_tracked"]
    assert problem.flops == 2 * 128 * 64 * 32
    reference = Reference(problem)
    tensors = [torch.rand(128, 64), *reference.parameters.values()]
    (out,) = reference.run(tensors)
    weight, bias = reference.parameters["fc_weight"], reference.parameters["fc_bias"]
    rows = tensors[0] @ weight.T + bias
    variance = rows.var(0, correction=0)
    torch.testing.assert_close(out, (rows - rows.mean(0)) / (variance + 1e-5).sqrt() * 2.0, rtol=1e-4, atol=1e-4)


def test_float64_reference_ignores_casts_inside() -> None:
    reference = Reference(read_text(RMSNORM))
    x, w = torch.randn(4, 512).bfloat16(), torch.randn(512).bfloat16()
    (exact,) = reference.run_float64((x, w))
    xd, wd = x.double(), w.double()
    want = xd / (xd.square().mean(-1, keepdim=True) + 1e-6).sqrt() * wd
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact, want, rtol=1e-14, atol=1e-14)
    assert torch.get_default_dtype() == torch.float32


def test_derived_workloads_are_small_distinct_and_explained() -> None:
    problem = read_text(SOFTMAX, inputs_text="x: bf16[4096,8192]")
    checks = {w.name: w for w in problem.check_workloads}
    assert checks["real_row"].inputs[0].shape == (3, 8192)
    assert checks["one_row"].inputs[0].shape[0] == 1
    assert checks["prime"].inputs[0].shape[1] == 257
    assert checks["tail"].inputs[0].shape[1] % 8 == 0
    assert len({w.signature for w in checks.values()}) == len(checks) >= 5
    assert all(w.why and w.nbytes < 1 << 20 for w in checks.values())


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        ("x: bf16[64,8192]", {"real_row", "one_row", "prime", "tail", "long_prime", "one_column", "aligned"}),
        ("x: bf16[64,1009]", {"real_row", "one_row", "prime", "tail", "one_column", "aligned"}),  # not 2 rows of 1009
        ("x: bf16[64,130]", {"one_row", "prime", "tail", "one_column", "aligned"}),  # 17 rows of 130
        ("x: bf16[4,130]", {"real_row", "one_row", "prime", "one_column", "odd", "long"}),  # two are solved for
    ],
)
def test_few_rows_are_left_out_where_another_workload_has_more_of_the_same(inputs: str, names: set[str]) -> None:
    assert {workload.name for workload in read_text(SOFTMAX, inputs_text=inputs).check_workloads} == names


def test_a_layer_that_has_fused_kernels_is_not_given_other_lengths_than_its_own() -> None:
    """They take fake tensors of any length; the layer itself takes none but its own."""
    layer = "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    layer += "        self.a = nn.MultiheadAttention(32, 4, batch_first=True)\n"
    layer += "    def forward(self, x):\n        return self.a(x, x, x)[0]\n"
    layer += "def get_inputs():\n    return [torch.randn(2, 9, 32)]\ndef get_init_inputs():\n    return []\n"
    made = read_text(layer)
    assert made.check_workloads
    assert {workload.inputs[0].shape[-1] for workload in made.check_workloads} == {32}
    assert torch.backends.mha.get_fastpath_enabled()


def test_any_number_of_dimensions_is_shrunk() -> None:
    problem = read_text(SOFTMAX, inputs_text="x: bf16[2,3,2,3,2,3,2,3,2,64]")
    shapes = [w.inputs[0].shape for w in problem.check_workloads]
    assert shapes and all(len(shape) == 10 for shape in shapes)


@pytest.mark.parametrize(
    ("expression", "inputs", "shapes"),
    [
        ("a @ b", "a: bf16[2048,1024], b: bf16[1024,4096]", [(144, 208), (208, 272)]),
        ("a @ b", "a: bf16[4096,4096], b: bf16[4096,4096]", [(272, 272), (272, 272)]),
        ("torch.bmm(a, b)", "a: f16[16,2048,1024], b: f16[16,1024,4096]", [(2, 144, 208), (2, 208, 272)]),
    ],
)
def test_a_matrix_product_is_checked_on_several_tiles_that_tma_can_copy(
    expression: str, inputs: str, shapes: list[tuple[int, ...]]
) -> None:
    problem = read_text(f"def reference(a, b):\n    return {expression}\n", inputs_text=inputs)
    tiles = problem.workload_named("tiles")
    assert [t.shape for t in tiles.inputs] == shapes and tiles.derived
    assert all(t.shape[-1] % 16 == 0 for t in tiles.tensors)
    assert not problem.workload.derived


def test_only_matrix_products_have_that_workload() -> None:
    problem = read_text(SOFTMAX, inputs_text="x: bf16[4096,8192]")
    assert "tiles" not in [w.name for w in problem.check_workloads]


def test_derived_workloads_keep_what_ties_inputs_together() -> None:
    problem = read_text("def reference(a, b):\n    return a @ b\n", inputs_text="a: f32[256,256], b: f32[256,256]")
    assert problem.check_workloads
    for workload in problem.check_workloads:
        assert workload.inputs[0].shape[1] == workload.inputs[1].shape[0]


@pytest.mark.parametrize(
    ("source", "inputs", "says"),
    [
        ("", "x: f32[4]", r"the cell is empty\. Define"),
        ("# nothing", "x: f32[4]", r"only comments"),
        ("def reference(x:\n    pass", "x: f32[4]", r"syntax error at line 1"),
        ("def reference(x):\n    raise ValueError('no')", "x: f32[4]", r"raises ValueError at line 2: no"),
        ("def reference(x):\n    return 3", "x: f32[4]", r"is a int, not a tensor"),
        ("def reference(x):\n    return x, 'a'", "x: f32[4]", r"output 1 is a str"),
        ("def reference(x):\n    return x[x > 0]", "x: f32[4]", r"depend on data: .* at line 2"),
        ("def reference(x):\n    return x * x.sum().item()", "x: f32[4]", r"depend on data"),
        ("def reference(x):\n    return x.to(torch.complex64)", "x: f32[4]", r"unsupported dtype complex64"),
        (
            "def reference(x):\n    x += 1\n    return x",
            "x: f32[4]",
            r"modifies its input 'x' in place\. Work on a clone",
        ),
        ("def reference(x):\n    return torch.rand_like(x)", "x: f32[400]", r"different answers for the same inputs"),
        ("def reference(x):\n    return x", "x: f32[40_000_000_000]", r"149\.0 GiB; the limit is 16 GiB"),
        ("def f(x):\n    return x", "x: f32[4]", r"no reference found: it defines f"),
        ("def reference(x):\n    return x", "x: f32[4,0]", r"x: f32\[4,0\] has no elements\. Sizes must be at least 1"),
        ("def reference(x, y):\n    return x // y", "x: i32[4], y: i32[4]", r"never 0, as y\.clamp\(min=1\)"),
        ("def reference(x, y):\n    return x", "x: f32[4]", r"no input is declared for argument 'y'"),
        ("def reference(x):\n    return x", "z: f32[4]", r"'z' is not an argument of reference\(x\)"),
        ("def reference(x):\n    return x", "x: f99[4]", r"unknown dtype 'f99'"),
        ("def reference(x):\n    return x", "x = 3", r"cannot read input 'x = 3'"),
        ("def reference(x):\n    return x", "x: f32[_]", r"cannot read input 'x: f32\[_\]'"),
        ("def reference(x):\n    return x", "x: f32[4 4]", r"cannot read input 'x: f32\[4 4\]'"),
        ("def reference(x):\n    return x", "x: f32[4], x: f32[5]", r"input 'x' is declared twice\. Separate"),
        ("def reference(x):\n    return torch.nn.functional.swish(x)", "x: f32[4]", r"'swish'\. Did you mean 'silu'\?"),
        ("def reference(x):\n    return x.sigmod()", "x: f32[4]", r"'sigmod'\. Did you mean 'sigmoid'\?"),
        ("def reference(x):\n    exit(3)", "x: f32[4]", r"the reference raises SystemExit at line 2: 3"),
        ("def reference(x):\n    return x\nexit(3)", "x: f32[4]", r"the source raises SystemExit at line 3"),
        ("def reference(x):\n    return x", "", r"inputs of reference\(x\) are not declared\. Declare the inputs"),
        ("import not_there", "", r"raises ModuleNotFoundError at line 1"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(source: str, inputs: str, says: str) -> None:
    with pytest.raises(ProblemError, match=says) as raised:
        read_text(source, inputs_text=inputs)
    assert "\n" not in str(raised.value)
    assert raised.value.action


def test_warnings_of_pytorch_are_not_printed_while_a_problem_is_read() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        read_text("def reference(x):\n    return F.softmax(x)\n", inputs_text="x: f32[4,4]")  # without its dim=
        warnings.warn("after it they are", stacklevel=1)
    assert [str(one.message) for one in heard] == ["after it they are"]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"cannot read .*gone\.py: No such file"):
        read_file(tmp_path / "gone.py")


def test_torch_compile_finds_a_references_globals() -> None:
    problem = read_text("def reference(x):\n    return torch.softmax(x, -1)\n", inputs_text="x: f32[8,64]")
    inputs = [torch.randn(8, 64)]
    compiled = torch.compile(Reference(problem).run, dynamic=False, backend="eager")
    assert torch.equal(compiled(inputs)[0], torch.softmax(inputs[0], -1))


def test_8_bit_numbers_are_read_and_their_products_known_in_float64() -> None:
    source = "def reference(a, b, s, t):\n    return torch._scaled_mm(a, b.T, s, t, out_dtype=torch.bfloat16)\n"
    problem = read_text(source, inputs_text="a: float8_e4m3fn[32,48], b: f8e5m2[16,48], s: f32[1], t: f32[1]")
    assert problem.workload.describe().startswith("(a: f8e4m3fn[32,48], b: f8e5m2[16,48]")
    torch.manual_seed(0)
    a, b = torch.randn(32, 48).to(torch.float8_e4m3fn), torch.randn(16, 48).to(torch.float8_e5m2)
    s, t = torch.tensor([0.3]), torch.tensor([0.7])
    (result,) = Reference(problem).run_float64([a, b, s, t])
    assert result.dtype is torch.float64
    torch.testing.assert_close(result, (a.double() @ b.double().T) * s.double() * t.double(), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(("dtype", "name"), [("float8_e4m3fn", "f8e4m3fn"), ("float8_e5m2", "f8e5m2")])
def test_results_of_8_bits_are_read_and_not_rounded_in_float64(dtype: str, name: str) -> None:
    source = f"def reference(x):\n    return (x * 0.3).to(torch.{dtype})\n"
    problem = read_text(source, inputs_text="x: bf16[8,8]")
    assert str(problem.workload.outputs[0]) == f"out: {name}[8,8]"
    x = torch.randn(8, 8)
    torch.testing.assert_close(Reference(problem).run_float64([x])[0], x.double() * 0.3, rtol=1e-7, atol=0)
    assert Reference(problem).run([x])[0].dtype is getattr(torch, dtype)


def test_packed_numbers_are_read() -> None:
    nibbles = "def reference(w, s):\n    return torch.stack([w & 15, w >> 4], -1).flatten(1).to(torch.float16) * s\n"
    problem = read_text(nibbles, inputs_text="w: uint8[8,16], s: f16[32]")
    assert str(problem.workload.inputs[0]) == "w: u8[8,16]" and problem.workload.outputs[0].shape == (8, 32)
    bits = "def reference(x):\n    return x.view(torch.float8_e4m3fn).float()\n"
    every = torch.arange(256, dtype=torch.uint8).view(16, 16)
    wide = Reference(read_text(bits, inputs_text="x: u8[16,16]")).run_float64([every])[0]
    assert wide.dtype is torch.float64
    torch.testing.assert_close(wide, every.view(torch.float8_e4m3fn).double(), rtol=0, atol=0, equal_nan=True)


def test_attention_in_float64_is_its_formula() -> None:
    """PyTorch's fused kernel for CPUs makes a row of zeros of a query that holds a NaN."""
    problem = read_text(
        "def reference(q, k, v):  # q: bf16[1,2,5,8], k: bf16[1,2,7,8], v: bf16[1,2,7,8]\n"
        "    return F.scaled_dot_product_attention(q, k, v)\n"
    )
    q, k, v = (torch.randn(spec.shape, dtype=torch.bfloat16) for spec in problem.workload.inputs)
    q[0, 1, 3, 2] = math.nan
    (result,) = Reference(problem).run_float64([q, k, v])
    assert result[0, 1, 3].isnan().all() and result.isnan().sum() == 8


def test_shapes_that_only_fake_tensors_take_are_left_out() -> None:
    made = read_text(
        "def reference(i, x):\n    return torch.zeros(50, 8).index_add(0, i, x)\n",
        inputs_text="i: i64[64], x: f32[64,8]",
    )
    assert all(workload.inputs[1].shape[1] == 8 for workload in made.check_workloads)
