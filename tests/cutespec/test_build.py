"""Specs become kernels of the templates, and what cannot is told before anything is compiled."""

from __future__ import annotations

import pytest

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import SpecError
from cutegen_lab.cutespec import GRAMMAR
from cutegen_lab.cutespec.build import Kernel, compile_for, compile_text
from tests.harness.checking import Compiler, built, right

HEAD = "kernel k\nin x: bf16[M, N]\nin w: bf16[N]\n"
SIZE = "size M=64, N=512\nsize M=3, N=100\n"


def spec(statements: str) -> str:
    return f"{HEAD}{statements}\n{SIZE}"


def compiled(compiler: Compiler, kernel: Kernel) -> Artifact:
    workloads = kernel.problem.workloads + kernel.problem.check_workloads
    return built(compiler, kernel.source, workloads, kernel.arch, kernel.config)


@pytest.mark.parametrize(
    ("statements", "family", "config"),
    [
        ("out y: bf16[M, N] = gelu(x * w, approximate=\"tanh\")\nwith vec=4, threads=128", "elementwise chain",
         {"vec": 4, "threads": 128}),
        ("s = x * 0.125\nout y: bf16 = softmax(s, dim=-1)\nwith threads_per_row=32\nwith rows_per_block=2",
         "row reduction", {"threads_per_row": 32, "rows_per_block": 2}),
        ("step wide\ntmp h: f32 = x.T\nwith vec=2\nstep norm\ntmp n: f32[M, N] = softmax(h.T * w, dim=-1)\nalign 4\n"
         "step total\nout y: f32[N] = sum(n, dim=0)",
         "elementwise chain, then row reduction, then column reduction", {"wide_vec": 2, "norm_vec": 2}),
        ("out y: f32[N] = sum(x, dim=0)", "column reduction", {}),
    ],
)  # fmt: skip
def test_a_spec_becomes_a_right_kernel(
    compiler: Compiler, statements: str, family: str, config: dict[str, int]
) -> None:
    kernel = compile_text(spec(statements))
    assert kernel.family == family
    assert {name: kernel.config[name] for name in config} == config
    assert set(kernel.chosen) == set(kernel.config) - set(config)
    assert [len(w.inputs) for w in kernel.problem.workloads] == [2, 2]
    right(compiler, kernel.problem, compiled(compiler, kernel))


@pytest.mark.parametrize(
    ("statements", "line", "says"),
    [
        ("out y: bf16 = x * w\nwith vec=3", 5, "vec is 3; it may be 1, 2, 4, 8, 16. The nearest is 4."),
        (
            "out y: bf16 = x * w\nwith vec=16, loads=8",
            5,
            "loads=8 with vec=16: 128 values in a thread's registers (at most 64)",
        ),
        ("out y: bf16 = x * w\nwith vec=16, loads=8", 5, "The nearest that fits is loads=4."),
        ("out y: bf16 = softmax(x, dim=9) * w", 4, "PyTorch raises IndexError: Dimension out of range"),
        ("out y: bf16 = x * w\nwith veq=16", 5, "has no veq. Did you mean 'vec'? The template has: vec, threads"),
        ("out y: bf16 = x * w\nwith vec=4\nwith vec=8", 6, "vec is set twice. It is first set on line 5."),
        ("out y: bf16 = x * w\ntile 64x64", 5, "has no tile"),
        ("out y: bf16[N, M] = x * w", 4, "y is declared as [512, 64], but its expression gives [64, 512]"),
        ("out y: bf16 = x @ x", 4, "RuntimeError"),
        ("out y: f8e5m2 = x * w", 4, "y is f8e5m2, which only inputs may be"),
        ("out y: bf16[M, L] = x * w", 4, "the size of L is not given"),
        (
            "step a\ntmp h: f32[N, M] = x * w\nstep b\nout y: bf16 = h * 2",
            5,
            "h is declared as [512, 64], but its expression gives [64, 512]",
        ),
        ("out y: bf16 = softmax(x, dim=-1)\ncluster 1x2", 5, "has no cluster. Did you mean 'cluster_n'?"),
        ("out y: bf16 = gelu(x @ x.T) @ x\ntile 64x64", 5, "The spec takes several kernels: name each by a `step`"),
        ("out y: bf16 = amax(x, dim=0) + amax(x, dim=1)", 4, ""),
        ("step a\nd = x * w\ntmp h: bf16 = d\nstep b\nout y: f32 = sum(d, dim=1)", 8, "d is a value inside the step a"),
        ("step a\ntmp h: bf16 = x * w\nstep b\nout y: f32 = sum(x, dim=1)", 5, "no result depends on the step a"),
        ("step a\ntmp h: bf16 = x\nstep b\nout y: f32 = sum(h, dim=1)", 5, "the step a returns an input unchanged"),
        ("step a\ntmp h: bf16 = x * w\nstep a_b\nout y: f32 = sum(h, dim=1)", 6, "a and a_b are too alike"),
        ("step a\ntmp h: bf16 = x * w\nstep b\nout y: bf16 = softmax(sum(h, dim=1), dim=0)", 7, ""),
        ("step a\ntmp h: bf16 = x * w\nwith vec=4\nstep b\nout y: f32 = sum(h, dim=1)\nwith vec=5", 9, "vec is 5"),
        ("out y: bf16 = x * w\nalign 32", 5, "since tensors begin at multiples of 16. The nearest is 16."),
        ("out y: bf16 = x * w\nalign 16", 5, "rows of x: bf16[3,100] begin every 200 bytes. The nearest is 8."),
    ],
)
def test_what_cannot_be_is_told_with_its_place(statements: str, line: int, says: str) -> None:
    with pytest.raises(SpecError) as error:
        compile_text(spec(statements))
    assert error.value.line == line, error.value
    assert says in str(error.value)


def test_products_of_8_bits_with_their_scales(compiler: Compiler) -> None:
    kernel = compile_text(
        "kernel k\nin x: f8e4m3fn[M, 256]\nin w: f8e5m2[N, 256]\nin sx: f32[M, 1]\nin sw: f32[N]\n"
        "out y: bf16[M, N] = (x @ w.T) * sx * sw\ntile 64x64x128\nsize M=40, N=72\n"
    )
    assert kernel.family == "matrix product" and "f8" in str(kernel.problem.workload.inputs[0])
    right(compiler, kernel.problem, compiled(compiler, kernel))


PROJECTED = "kernel k\nin x: bf16[M, 64]\nin w: bf16[N, 64]\nin r: bf16[M, N]\n{}\nsize M=72, N={}\n"


def test_a_product_and_a_reduction_in_one_step() -> None:
    text = PROJECTED.format("step one\nout y: bf16 = softmax(x @ w.T + r, dim=-1)\n{}", 700)
    kernel = compile_text(text.format("tile 64x192\ncluster 2x4"))
    assert kernel.family == "matrix product and row reduction"
    assert [kernel.config[name] for name in ("tile_n", "cluster_m", "cluster_n")] == [192, 2, 4]
    with pytest.raises(SpecError) as error:
        compile_text(text.format("tile 64x64\ncluster 2x4"))
    assert error.value.line == 7
    assert "rows of 700 are wider than the tiles of a cluster, 256 (4 × 64" in str(error.value)
    with pytest.raises(SpecError, match=r"cluster_n is 5; it may be 1, 2, 3, 4, 6, 8. The nearest is 6"):
        compile_text(text.format("tile 64x192\ncluster 1x5"))
    with pytest.raises(SpecError, match=r"rows of 4,096 are wider than the tiles of a cluster, 2,048"):
        compile_text(text.replace("N=700", "N=4096").format(""))
    assert "then" in compile_text(PROJECTED.format("out y: bf16 = softmax(x @ w.T + r, dim=-1)", 4096)).family


def test_products_in_tf32() -> None:
    text = "kernel k for sm_90a{}\nin x: f32[64, 160]\nin w: f32[72, 160]\nout y: f32 = linear(x, w)\ntile 64x64x{}\n"
    kernel = compile_text(text.format(" in tf32", 32))
    assert (kernel.family, kernel.problem.tf32) == ("matrix product in TF32", True)
    assert "cutlass.TFloat32" in kernel.source
    exact = compile_text(text.format("", 64))
    assert (exact.family, exact.problem.tf32) == ("matrix product", False)
    with pytest.raises(SpecError, match="has no matrix product of f32 tensors"):
        compile_text("kernel k for sm_90a in tf32\nin x: f32[8, 64]\nout y: f32 = softmax(x, dim=-1)\n")
    with pytest.raises(SpecError, match="the spec is in tf32, which the problem does not allow"):
        compile_for(exact.problem, "sm_90a", text.format(" in tf32", 32))
    assert compile_for(kernel.problem, "sm_90a", text.format("", 64)).family == "matrix product"


def test_an_unknown_architecture_is_named() -> None:
    with pytest.raises(SpecError, match=r"line 3, column 14: .*sm_100a.*Write `for` with one of: sm_90a"):
        compile_text("# of another GPU\n\n" + spec("out y: bf16 = x * w").replace("kernel k", "kernel k for sm_100a"))


def test_the_grammars_own_examples_compile() -> None:
    comments = [line[2:].removeprefix(" ") for line in GRAMMAR.read_text().splitlines() if line.startswith("//")]
    examples = "\n".join(line.strip() if line.startswith("    ") else "" for line in comments).split("kernel ")[1:]
    families = [compile_text(f"kernel {example}").family for example in examples]
    assert families == ["matrix product", "row reduction, then matrix product"]


def test_overlapping_strides_are_named_without_options_of_commands() -> None:
    with pytest.raises(SpecError) as error:
        compile_text("kernel k\nin x: f32[4, 4]:(1, 1)\nout y: f32 = x * 2\n")
    assert (error.value.line, "overlap" in str(error.value), "--inputs" in str(error.value)) == (2, True, False)


def test_each_architecture_has_its_own_template_for_products() -> None:
    text = "kernel k for sm_80\nin x: bf16[64, 64]\nin w: bf16[64, 64]\nout y: bf16 = x @ w.T\ntile 64x32\n"
    kernel = compile_text(text)
    assert kernel.family == "matrix product by mma.sync" and kernel.config["tile_n"] == 32
    assert compile_text(text.replace("sm_80", "sm_90a")).family == "matrix product"
    with pytest.raises(SpecError, match=r"line 6, column 1: sm_80 has no clusters of blocks"):
        compile_text(text + "cluster 2x1\n")
    with pytest.raises(SpecError, match=r"schedule.*The template has: tile_m"):
        compile_text(text + "schedule pingpong\n")
    with pytest.raises(SpecError, match=r"shared memory \(at most 101,376\)"):
        compile_text(
            text.replace("sm_80", "sm_89").replace("tile 64x32", "tile 128x128x64\nwith warps_m=2, warps_n=4")
            + "stages 4\n"
        )


def test_blocks_share_no_row_where_there_are_no_clusters(compiler: Compiler) -> None:
    text = "kernel k for sm_80\nin x: f32[512, 65536]\nout y: f32 = x / sum(x, dim=-1, keepdim=true)\n"
    kernel = compile_text(text)
    assert kernel.config["cluster_n"] == 1
    built(compiler, kernel.source, kernel.problem.workloads, "sm_80", kernel.config)
    assert compile_text(text.replace("sm_80", "sm_90a")).config["cluster_n"] > 1
    with pytest.raises(SpecError, match="cluster_n is 4; it may be 1"):
        compile_text(text + "with cluster_n=4\n")
