"""Sets that have a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.problems import read_file
from cutegen_lab.suite.files import problem_files
from cutegen_lab.suite.named import folder_of
from cutegen_lab.templates.recognise import template_for


def test_sglang_is_three_kernels_that_templates_serve() -> None:
    files = problem_files([folder_of(Path("sglang"))])
    assert [file.name for file in files] == ["fused_add_rmsnorm", "merge_attn_states_lse", "silu_and_mul"]
    problems = [read_file(file.path) for file in files]
    assert [problem.workload.describe() for problem in problems] == [
        "(x: bf16[512,4096], residual: bf16[512,4096], weight: bf16[4096]) -> "
        "(out0: bf16[512,4096], out1: bf16[512,4096])",
        "(a: bf16[512,32,128], lse_a: f32[512,32], b: bf16[512,32,128], lse_b: f32[512,32]) -> "
        "(out0: bf16[512,32,128], out1: f32[512,32])",
        "(x: bf16[512,22016]) -> (out: bf16[512,11008])",
    ]
    assert {len(problem.workloads) for problem in problems} == {3} and not any(p.insensitive for p in problems)
    assert all(template_for(problem, "sm_90a").name for problem in problems)


def test_kernelbench_is_found_here_or_where_it_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"no KernelBench in .* Run `git clone https://\S+` here"):
        folder_of(Path("kernelbench"))
    (tmp_path / "KernelBench" / "KernelBench" / "level1").mkdir(parents=True)
    (tmp_path / "elsewhere" / "level1").mkdir(parents=True)
    assert folder_of(Path("kernelbench")) == Path("KernelBench/KernelBench")  # not its scripts
    assert folder_of(Path("kernelbench"), tmp_path / "elsewhere") == tmp_path / "elsewhere"
    with pytest.raises(InputError, match="no KernelBench in"):
        folder_of(Path("kernelbench"), tmp_path)
    assert folder_of(tmp_path / "kernelbench") == tmp_path / "kernelbench"  # a folder of that name
