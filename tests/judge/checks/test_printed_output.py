"""Kernels that print: told what they printed, and never accepted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import StandardJudge
from cutegen_lab.problems import read_text
from tests.judge.torch_device import TorchDevice

KERNEL = """
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def double(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    t, _, _ = cute.arch.thread_idx()
    if t < n:
        if t == 0:
            cute.printf("first of %d is %f", n, x[t])
        y[t] = x[t] * FACTOR


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    double(x, y, x.shape[0]).launch(grid=[1, 1, 1], block=[256, 1, 1], stream=stream)
"""
PROBLEM = read_text("def reference(x):\n    return x * 2\n", inputs_text="x: f32[200]")


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CageCompiler]:
    with CageCompiler(tmp_path_factory.mktemp("cache")) as made:
        yield made


def build(compiler: CageCompiler, factor: str) -> Artifact:
    source, workloads = KERNEL.replace("FACTOR", factor), PROBLEM.workloads + PROBLEM.check_workloads
    built = compiler.compile(source, {}, workloads, "sm_90a", lambda line: None, threading.Event())
    assert isinstance(built, Artifact), built
    return built


def test_right_answers_do_not_make_it_pass(compiler: CageCompiler) -> None:
    artifact = build(compiler, "2.0")
    assert all(b.prints for b in artifact.builds.values())
    assert Artifact.from_dict(artifact.to_dict()) == artifact
    result = StandardJudge().check(PROBLEM, artifact, EmulatorDevice(), lambda line: None, threading.Event())
    assert result.verdict is Verdict.CONTRACT
    assert "leave printf out" in result.reason and "\nfirst of 127 is " in result.reason


def test_a_wrong_one_is_wrong_and_told_what_the_failing_run_printed(compiler: CageCompiler) -> None:
    judge = StandardJudge()
    result = judge.check(PROBLEM, build(compiler, "3.0"), EmulatorDevice(), lambda line: None, threading.Event())
    assert result.verdict is Verdict.WRONG_RESULT
    assert "It printed:\nfirst of " in result.reason


def test_no_gpu_runs_it(compiler: CageCompiler, tmp_path: Path) -> None:
    artifact = build(compiler, "2.0")
    gpu = TorchDevice(lambda *tensors: pytest.fail("ran there"), kind="cuda")
    judge = StandardJudge(make_emulator=EmulatorDevice)
    result = judge.check(PROBLEM, artifact, gpu, lambda line: None, threading.Event())
    assert result.verdict is Verdict.CONTRACT and "It printed" in result.reason
    result = StandardJudge().check(PROBLEM, artifact, gpu, lambda line: None, threading.Event())
    assert result.verdict is Verdict.CONTRACT and "was not run" in result.reason
