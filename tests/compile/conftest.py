from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler, CompileJob, Limits
from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.problem import TensorSpec, Workload

ARCH = "sm_90a"


def workload(inputs: str, outputs: str, name: str = "main") -> Workload:
    def parse(text: str) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec.parse(part) for part in text.split(";"))

    return Workload(name, parse(inputs), parse(outputs))


VECTOR = workload("x: f32[1000]", "y: f32[1000]")
MATRIX = workload("x: f32[64,64]", "y: f32[64,64]")


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cage")


@pytest.fixture(scope="session")
def compiler(cache_dir: Path) -> Iterator[CageCompiler]:
    limits = Limits(wall_seconds=6.0, memory_bytes=512 << 20)
    with CageCompiler(cache_dir, limits=limits) as compiler:
        yield compiler


def compile_one(compiler: CageCompiler, source: str, work: Workload = VECTOR, **config: int) -> Artifact:
    result = compiler.compile(source, config, [work], ARCH, print, threading.Event())
    assert isinstance(result, Artifact), result
    return result


def fail_one(compiler: CageCompiler, source: str, work: Workload = VECTOR, **config: int) -> CompileFailure:
    result = compiler.compile(source, config, [work], ARCH, print, threading.Event())
    assert isinstance(result, CompileFailure), "it compiled"
    return result


def fail_ungated(compiler: CageCompiler, source: str, work: Workload = VECTOR) -> CompileFailure:
    result = compiler.compile_ungated(CompileJob(source, {}, (work,), ARCH), print)
    assert isinstance(result, CompileFailure), "it compiled"
    return result
