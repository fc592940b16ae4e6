"""Every family's module, written for its default config: the same PTX and launches as with its parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from cutegen_lab.compile import gate
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.problem import Problem
from cutegen_lab.session.specialised import specialised
from cutegen_lab.templates.pipeline.pipeline import Pipeline
from cutegen_lab.templates.recognise import template_for
from cutegen_lab.templates.registry import families
from cutegen_lab.templates.template import Single
from cutegen_lab.tuning.refactor.template import same_machine_code
from tests.harness.checking import ARCH, NEVER, Compiler, problem_of

pytestmark = pytest.mark.kernel


@dataclass(frozen=True)
class Case:
    """``lines`` at most, of the text for one config; ``config`` changes the default."""

    expression: str
    inputs: str
    lines: int
    arch: str = ARCH
    config: tuple[tuple[str, int | str], ...] = ()
    tf32: bool = False

    def problem(self) -> Problem:
        return replace(problem_of(self.expression, self.inputs), tf32=self.tf32)


LINEAR = "x: bf16[512,1024], w: bf16[1024,1024], b: bf16[1024]"
CASES = {
    "softmax": Case("torch.softmax(x, -1)", "x: bf16[4096,8192]", 163),
    "softmax of a cluster": Case("torch.softmax(x, -1)", "x: bf16[256,8192]", 214, config=(("cluster_n", 2),)),
    "online rows": Case("torch.softmax(x, -1)", "x: f32[64,530001]", 326),
    "moments": Case("F.layer_norm(x, w.shape, w, b)", "x: bf16[4096,4096], w: bf16[4096], b: bf16[4096]", 231),
    "RMSNorm": Case("F.rms_norm(x, w.shape, w)", "x: bf16[4096,4096], w: bf16[4096]", 218),
    "argmax": Case("x.argmax(-1)", "x: f32[128,1000]", 150),
    "loss": Case("F.cross_entropy(x, t)", "x: bf16[512,32000], t: i64[512]", 287),
    "elementwise": Case("F.gelu(x * s) + b[:, None]", "x: bf16[64,4096], s: bf16[4096], b: f32[64]", 84),
    "columns": Case("x.sum(0)", "x: bf16[65536,512]", 157),
    "softmax of columns": Case("torch.softmax(x, 1)", "x: f32[4,500,72]", 186),
    "total": Case("F.mse_loss(x, y)", "x: bf16[1024,4096], y: bf16[1024,4096]", 164),
    "scan of rows": Case("x.cumsum(-1)", "x: f32[64,5000]", 158),
    "scan of columns": Case("x.cumsum(0)", "x: f32[5000,64]", 122),
    "average pooling": Case("F.relu(F.avg_pool2d(x, 3, 2, 1))", "x: bf16[16,32,64,64]", 82),
    "few rows": Case("F.linear(x, w, b)", "x: bf16[4,4096], w: bf16[4096,4096], b: bf16[4096]", 275),
    "gemm": Case("x @ w", "x: bf16[1024,1024], w: bf16[1024,1024]", 438),
    "gemm with epilogue": Case("F.gelu(F.linear(x, w, b))", LINEAR, 487),
    "gemm of parts": Case("F.gelu(F.linear(x, w, b))", LINEAR, 530, config=(("split_k", 2),)),
    "gemm reduced": Case("torch.softmax(a @ b, -1)", "a: bf16[1024,512], b: bf16[512,1024]", 620),
    "gemm of 8 bits": Case("(a.float() @ b.float().T).bfloat16()",
                           "a: f8e4m3fn[1024,1024], b: f8e4m3fn[1024,1024]", 442),
    "gemm of fp32": Case("a @ b", "a: f32[1024,1024], b: f32[1024,1024]", 750),
    "gemm gated": Case("F.silu(x @ g.T) * (x @ u.T)", "x: bf16[512,1024], g: bf16[1024,1024], u: bf16[1024,1024]", 488),
    "mma": Case("F.relu(F.linear(x, w, b))", "x: f16[1024,1024], w: f16[1024,1024], b: f16[1024]", 303, "sm_80"),
    "TF32": Case("a @ b", "a: f32[1024,1024], b: f32[1024,1024]", 535, tf32=True),
    "attention": Case("F.scaled_dot_product_attention(q, k, v)",
                      "q: bf16[2,8,256,64], k: bf16[2,8,256,64], v: bf16[2,8,256,64]", 1104),
    "two steps": Case("torch.softmax(x - x.mean(0), -1)", "x: f32[64,100]", 328),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_text_for_one_config_compiles_to_the_same(name: str, compiler: Compiler) -> None:
    case = CASES[name]
    problem = case.problem()
    template = template_for(problem, case.arch)
    config = {**template.default_config(), **dict(case.config)}
    text = template.write(config)
    written = specialised(compiler, problem, text, config, case.arch)
    assert not written.note and written.folded == config and written.config == {}, written.note
    assert not gate.check(written.source)
    assert "TUNABLE" not in written.source and len(written.source.splitlines()) <= case.lines < len(text.splitlines())
    assert _long(written.source) <= _long(text)
    workloads = problem.check_workloads + problem.workloads
    old, new = (
        compiler.compile(source, given, workloads, case.arch, lambda _: None, NEVER)
        for source, given in ((text, config), (written.source, {}))
    )
    assert isinstance(old, Artifact) and isinstance(new, Artifact) and old.unserved == new.unserved
    assert all(same_machine_code(old.builds[each], new.builds[each]) for each in old.builds)


def test_every_family_is_here_and_so_are_several_kernels() -> None:
    served = [template_for(case.problem(), case.arch) for case in CASES.values()]
    several = [each for each in served if isinstance(each, Pipeline)]
    alone = [each for each in served if isinstance(each, Single)] + [
        step.kernel for each in several for step in each.steps
    ]
    assert {each.family.name for each in alone} == {f.name for arch in (ARCH, "sm_80") for f in families(arch)}
    assert several


def _long(text: str) -> int:
    return sum(len(line) > 120 for line in text.splitlines())


def test_without_a_proof_the_general_text_is_given_back(compiler: Compiler) -> None:
    problem = problem_of("x * 2", "x: f32[64,64]")
    text = template_for(problem, ARCH).write(template_for(problem, ARCH).default_config())
    broken = text.replace("cute.make_layout", "cute.make_layouts")
    written = specialised(compiler, problem, broken, {}, ARCH)
    assert (written.source, written.folded) == (broken, None) and "does not compile" in written.note
    assert "no top-level function launch" in specialised(compiler, problem, "x = 1\n", {}, ARCH).note
    plain = text.replace("TUNABLE", "DOMAINS")
    assert specialised(compiler, replace(problem, check_workloads=()), plain, {}, ARCH).folded is not None
