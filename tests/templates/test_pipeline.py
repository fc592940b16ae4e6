"""References that take several kernels: where they are cut, and that the module is right, judged on the emulator."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from cutegen_lab.core.artifact import PROGRAMMATIC
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.problems import read_text
from cutegen_lab.templates.emit.bundle import kernel_file
from cutegen_lab.templates.pipeline import Pipeline
from cutegen_lab.templates.pipeline.module import Module, definitions, renamed
from cutegen_lab.templates.pipeline.sizes import fitted
from cutegen_lab.templates.recognise import template_for
from cutegen_lab.templates.template import Single, Template
from cutegen_lab.tuning import read_tunables
from tests.harness.checking import Compiler, passed, problem_of

ARCH = "sm_90a"


def problem(body: str, inputs: str, checks: int | None = 0) -> Problem:
    """``body`` ends in a return statement; ``checks`` derived workloads are kept (None: all)."""
    arguments = ", ".join(part.split(":")[0].strip() for part in inputs.split("], "))
    lines = "\n".join(f"    {line}" for line in body.split("; "))
    made = read_text(f"def reference({arguments}):\n{lines}\n", name="work", inputs_text=inputs)
    return replace(made, check_workloads=made.check_workloads[:checks])


def steps(template: Template) -> list[tuple[str, list[str], list[str]]]:
    """Of each: its name, what it reads and what it writes."""
    assert isinstance(template, Pipeline)
    return [(s.name, [str(t) for t in s.inputs], [str(t) for t in s.outputs]) for s in template.steps]


LINEAR = "x: bf16[64,128], w: bf16[256,128]"
WIDE = "x: bf16[64,128], w: bf16[4096,128]"  # rows that no cluster of blocks holds


@pytest.mark.parametrize(
    ("body", "inputs", "cut"),
    [
        ("return F.linear(F.gelu(F.linear(x, w)), v)", f"{LINEAR}, v: bf16[64,256]",
         ["gemm1 > h1: bf16[64,256]", "gemm2"]),
        ("return F.linear(x, w).softmax(-1)", WIDE, ["gemm > h1: bf16[64,4096]", "row"]),
        ("return F.rms_norm(F.linear(x, w) + r, (4096,), g)", f"{WIDE}, r: bf16[64,4096], g: bf16[4096]",
         ["gemm > h1: bf16[64,4096]", "row"]),
        ("return F.linear(F.linear(x, w).softmax(-1), v)", f"{LINEAR}, v: bf16[64,256]",
         ["gemm1 > h1: bf16[64,256]", "gemm2"]),
        ("return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v",
         "q: f32[2,8,16], k: f32[2,8,16], v: f32[2,8,16]",
         ["gemm1 > h1: f32[2,8,8]", "row > h2: f32[2,8,8]", "gemm2"]),
        ("return (x + b) @ w.T", f"{LINEAR}, b: bf16[128]", ["elementwise > h1: bf16[64,128]", "gemm"]),
        ("return torch.softmax(x - x.mean(0), -1)", "x: f32[64,100]", ["column > h1: f32[100]", "row"]),
        # A few numbers are kept exact: that costs nothing.
        ("return torch.softmax(x - x.mean(0), -1)", "x: bf16[64,100]", ["column > h1: f32[100]", "row"]),
        ("return (x.mean(0) * g) @ w.T", "x: bf16[64,128], g: bf16[128], w: bf16[32,128]",
         ["column > h1: bf16[128]", "gemm"]),
        ("return x.amax(0), torch.softmax(x, 1)", "x: f32[64,100]", ["column > out0: f32[100]", "row"]),
        ("y = F.linear(x, w) * 2 + x[:, :1]; y = y.clamp(-1, 1).logsumexp(1, keepdim=True); return y * F.mish(y)",
         LINEAR, ["gemm > h1: bf16[64,256]", "row"]),
        # What PyTorch keeps in fp32 stays so; what it rounds to is where the cut is, for fewer bytes cross there.
        ("y = x.float(); return (y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) @ w.T", LINEAR,
         ["row > h1: bf16[64,128]", "gemm"]),
        # One memory in two shapes: views cost nothing.
        ("return F.linear(x, w).view(64, 4, 64).softmax(-1)", LINEAR, ["gemm > h1: bf16[64,256]", "row"]),
        ("return F.linear(torch.relu(x.sum(1)), w).view(-1)", "x: f32[4,3,16], w: f32[8,16]",
         ["column > h1: f32[4,16]", "gemm"]),
        ("return F.scaled_dot_product_attention(q, q, q, is_causal=True)", "q: bf16[2,48,32]",
         ["gemm1 > h1: f32[2,48,48]", "row > h2: bf16[2,48,48]", "gemm2"]),
        ("y = F.group_norm(x, 8, w, w); return y.amin(1)", "x: f32[9,64], w: f32[64]",
         ["row1 > y: f32[9,64]", "row2"]),
        ("return x + x.T", "x: f32[32,32]", ["elementwise1 > h1: f32[32,32]", "elementwise2"]),
    ],
)  # fmt: skip
def test_it_is_cut_where_the_fewest_bytes_cross(body: str, inputs: str, cut: list[str]) -> None:
    found = steps(template_for(problem(body, inputs), ARCH))
    *before, (last, _, _) = found
    assert [f"{name} > {', '.join(results)}" for name, _, results in before] + [last] == cut


@pytest.mark.parametrize("body", ["F.gelu(F.linear(x, w))", "F.linear(x, w).softmax(-1)"])
def test_what_one_kernel_serves_is_no_pipeline(body: str) -> None:
    assert isinstance(template_for(problem(f"return {body}", LINEAR), ARCH), Single)


@pytest.mark.parametrize(
    ("body", "inputs", "checks"),
    [
        ("return F.linear(F.gelu(F.linear(x, w)), v)", "x: bf16[40,64], w: bf16[72,64], v: bf16[48,72]", 1),
        ("return F.layer_norm(F.linear(x, w) + r, (40,), g, g)",
         "x: f32[9,20], w: f32[40,20], r: f32[9,40], g: f32[40]", 0),
        ("return torch.softmax(x - x.mean(0), -1), x.amin()", "x: bf16[40,100]", 2),
        ("h = F.linear(x, w).view(2, 8, 4, 16).transpose(1, 2); return (h.softmax(-1) @ h.mT).flatten(1)",
         "x: f32[2,8,20], w: f32[64,20]", 0),
        ("return F.scaled_dot_product_attention(q, k, v, is_causal=True)",
         "q: bf16[2,2,48,32], k: bf16[2,2,48,32], v: bf16[2,2,48,32]", 0),
        ("return F.scaled_dot_product_attention(q, k, v, m)",
         "q: f16[40,32], k: f16[48,32], v: f16[48,32], m: bool[40,48]", 0),
        ("return F.cross_entropy(x, t)", "x: f32[3,16,4,8], t: i64[3,4,8]", 0),
        ("return F.nll_loss(x, t)", "x: bf16[24,40], t: i64[24]", 0),
    ],
)  # fmt: skip
def test_the_module_is_right(compiler: Compiler, body: str, inputs: str, checks: int | None) -> None:
    asked = problem(body, inputs, checks)
    template = template_for(asked, ARCH)
    assert isinstance(template, Pipeline)
    config = template.default_config()
    assert template.feasible(config) and set(config) == set(template.domains)
    source = template.write(config)
    assert read_tunables(source).default == config
    artifact = passed(compiler, asked, source)
    assert len(artifact.builds["main"].plan.launches) >= len(template.steps)


def test_parameters_stand_behind_their_steps_names() -> None:
    template = template_for(problem("return F.linear(x, w).softmax(-1)", WIDE), ARCH)
    assert {"gemm_tile_m", "row_threads_per_row"} <= set(template.domains)
    assert template.knobs["row_vec", 1].startswith("row: ")
    config = dict(template.default_config())
    assert not template.feasible({**config, "row_threads_per_row": 8, "row_rows_per_block": 1})
    changed = template.write({**config, "row_loads": 2})
    assert "row_loads: cutlass.Constexpr = 2" in changed


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return torch.sort(x @ x).values + 1", r"aten\.sort\.default at line 2: return torch\.sort"),
        ("y = torch.relu(x).sum(0); return y.median(-1).values", r"aten\.median\.dim at line 3"),
    ],
)
def test_what_no_cut_helps_is_named(body: str, says: str) -> None:
    with pytest.raises(ProviderError, match=f"{says}.*another provider"):
        template_for(problem(body, "x: f32[32,32]"), ARCH)


def test_sizes_follow_from_the_inputs_in_every_workload() -> None:
    def of(*shape: int) -> Workload:
        return Workload("w", (TensorSpec.parse(f"x: f32[{','.join(map(str, shape))}]"),), ())

    names = ["x"]
    workloads = [of(4, 6, 64), of(3, 5, 32)]
    cases = [((6, 5), "x.shape[1]"), ((7, 7), "7"), ((8, 4), "x.shape[2] // 8"), ((24, 15), "x.shape[0] * x.shape[1]"),
             ((128, 64), "x.shape[2] * 2")]  # fmt: skip
    for sizes, text in cases:
        assert fitted(list(zip(workloads, sizes, strict=True))).text(names) == text
    with pytest.raises(ProviderError, match="no formula for the size of a tensor between two kernels"):
        fitted(list(zip(workloads, (17, 23), strict=True)))


def test_modules_share_what_is_the_same_and_keep_apart_what_is_not() -> None:
    first = (
        "def plus(a, b):\n    return a + b\n\ndef fold(x):\n    return plus(x, 1)\n\ndef put(x):\n    return fold(x)\n"
    )
    second = first.replace("plus(x, 1)", "plus(x, 2)")
    written = definitions([Module("a", first), Module("b", second)], ())
    names = [node.name for text in written for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert names == ["plus", "a_fold", "a_put", "b_fold", "b_put"]
    assert "return b_fold(x)" in written[-1]


def test_a_step_takes_no_name_of_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the functions that pass each step its parameters had a name that kernels' sums have."""
    monkeypatch.setitem(kernel_file("pipeline").definitions, "plus", "def plus():\n    pass")
    made = problem_of("torch.softmax(x - x.mean(0), -1)", "x: f32[64,100]", checks=())
    template = template_for(made, ARCH)
    text = template.write(template.default_config())
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert "column_plus" in names and "plus" not in names and len(set(names)) == len(names)


def test_only_names_themselves_are_renamed() -> None:
    text = "def fetch(x, fetch=1):\n    # fetch\n    return x.fetch(fetch, put=fetch, fetch=2), 'fetch'"
    assert renamed(text, {"fetch": "a_fetch"}) == (
        "def a_fetch(x, fetch=1):\n    # fetch\n    return x.fetch(a_fetch, put=a_fetch, fetch=2), 'fetch'"
    )


def test_rows_of_a_view_between_steps_that_has_a_size_of_one(compiler: Compiler) -> None:
    """As attention's packed projections are taken apart, for a batch of one."""
    text = "F.linear(x, w).unflatten(-1, (3, 8))[..., 1, :].contiguous() + 1"
    problem = problem_of(text, "x: f32[4,1,16], w: f32[24,16]", checks=())
    template = template_for(problem, "sm_90a")
    passed(compiler, problem, template.write(template.default_config()))


@pytest.mark.parametrize(
    ("expression", "inputs", "kernels"),
    [
        ("torch.softmax(x - x.mean(0), -1)", "x: f32[64,100]", 2),
        ("(x + b) @ w.T", f"{LINEAR}, b: bf16[128]", 2),
        ("torch.softmax(x / x.abs().sum(), 0)", "x: f32[64,1024]", 3),  # two of them waited already
    ],
)
def test_kernels_start_while_the_one_before_ends(
    compiler: Compiler, expression: str, inputs: str, kernels: int
) -> None:
    made = problem_of(expression, inputs, checks=())
    template = template_for(made, ARCH)
    text = template.write(template.default_config())
    build = passed(compiler, made, text).builds["main"]
    assert [set(launch.attributes) for launch in build.plan.launches] == [{PROGRAMMATIC}] * kernels
    assert build.ptx.count("griddepcontrol.wait") == build.ptx.count("griddepcontrol.launch_dependents") == kernels


def test_nothing_waits_behind_a_product(compiler: Compiler) -> None:
    made = problem_of("F.linear(x, w).softmax(-1)", WIDE, checks=())
    template = template_for(made, ARCH)
    build = passed(compiler, made, template.write(template.default_config())).builds["main"]
    assert len(build.plan.launches) > 1 and "griddepcontrol" not in build.ptx
    assert not any(launch.attributes for launch in build.plan.launches)


@pytest.mark.parametrize(
    ("expression", "inputs", "name"),
    [
        ("x / x.sum()", "x: f32[4096,4096]", "total, then elementwise chain"),
        ("x / torch.norm(x, p='fro')", "x: bf16[4096,4096]", "total, then elementwise chain"),
        ("x / x.sum()", "x: f32[64,1024]", "row reduction"),  # too small for two launches
        ("F.layer_norm(x, (1048576,))", "x: f32[1,1048576]", "row reduction"),  # one operation: nothing to cut
        ("F.layer_norm(x, (65536,))", "x: f32[64,65536]", "row reduction"),  # blocks enough
    ],
)
def test_few_rows_are_not_left_to_few_blocks(expression: str, inputs: str, name: str) -> None:
    assert template_for(problem_of(expression, inputs, checks=()), ARCH).name == name
