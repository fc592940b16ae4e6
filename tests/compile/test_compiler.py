"""Sound candidates become artifacts that say what runs."""

from __future__ import annotations

import json
import re
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler, CompileJob
from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.verdict import Verdict
from tests.compile.conftest import ARCH, MATRIX, VECTOR, compile_one, fail_one, workload
from tests.compile.sources import CLUSTER, COLUMN_SUM, SCALE, TMA, kernel_body, with_prologue


def test_a_plan_names_grid_block_and_where_addresses_go(compiler: CageCompiler) -> None:
    build = compile_one(compiler, SCALE, threads=256).builds["main"]
    (launch,) = build.plan.launches
    assert (launch.grid, launch.block, launch.cluster) == ((4, 1, 1), (256, 1, 1), (1, 1, 1))
    assert [(r.param, r.tensor, r.tensor_offset) for r in launch.relocations] == [(0, 0, 0), (1, 1, 0)]
    assert all(not any(p) for p in launch.params)
    assert build.cubin[:4] == b"\x7fELF" and ".target sm_90a" in build.ptx
    info = build.kernel(launch.kernel)
    assert 4 <= info.registers <= 255 and info.param_sizes == tuple(map(len, launch.params))


def test_no_path_of_this_machine_is_in_an_artifact(compiler: CageCompiler, cache_dir: Path) -> None:
    build = compile_one(compiler, SCALE).builds["main"]
    assert '"/candidate.py"' in build.ptx and b"/candidate.py" in build.cubin
    for place in (str(cache_dir), "build-"):
        assert place not in build.ptx and place.encode() not in build.cubin


def test_source_lines_point_into_the_candidate(compiler: CageCompiler) -> None:
    build = compile_one(compiler, SCALE).builds["main"]
    text = SCALE.splitlines()
    assert any("y[i] = x[i] * 2.0" in text[line.line - 1] for line in build.lines)
    assert all(1 <= line.line <= len(text) for line in build.lines)
    assert [line.ptx_line for line in build.lines] == sorted(line.ptx_line for line in build.lines)


def test_several_launches_and_workspace_keep_their_order(compiler: CageCompiler) -> None:
    work = workload("x: f32[64,32]", "y: f32[32]")
    build = compile_one(compiler, COLUMN_SUM, work, rows=16).builds["main"]
    first, second = build.plan.launches
    assert "partial" in first.kernel and "final" in second.kernel
    assert first.grid == (4, 1, 1) and second.grid == (1, 1, 1)
    assert [str(w) for w in build.plan.workspace] == ["part: f32[4,32]"]
    assert {r.tensor for r in first.relocations} == {0, 2}
    assert {r.tensor for r in second.relocations} == {2, 1}


def test_a_cluster_is_recorded(compiler: CageCompiler) -> None:
    (launch,) = compile_one(compiler, CLUSTER, workload("x: f32[1024]", "y: f32[1024]")).builds["main"].plan.launches
    assert launch.cluster == (2, 1, 1) and launch.grid == (8, 1, 1)


def test_a_tma_descriptor_is_canonical(compiler: CageCompiler) -> None:
    (launch,) = compile_one(compiler, TMA, MATRIX).builds["main"].plan.launches
    (index,) = [i for i, p in enumerate(launch.params) if len(p) == 128]
    descriptor = launch.params[index]
    assert (index, 0, 0) in {(r.param, r.offset, r.tensor) for r in launch.relocations}
    assert struct.unpack_from("<2I", descriptor, 32) == (63, 63)  # sizes minus one
    assert descriptor[55:57] == bytes((63, 31))  # box minus one, contiguous dimension first
    assert not any(descriptor[:8]) and not any(descriptor[64:])


def test_an_artifact_survives_json(compiler: CageCompiler) -> None:
    artifact = compile_one(compiler, SCALE)
    again = Artifact.from_dict(json.loads(json.dumps(artifact.to_dict())))
    assert again == artifact and again.sha256 == artifact.sha256


def test_the_isolation_is_recorded(compiler: CageCompiler) -> None:
    isolation = compile_one(compiler, SCALE).isolation
    assert "rlimits" in isolation and "no-new-privs" in isolation
    assert set(isolation) == set(compiler.isolation_report())


def test_each_workload_gets_its_own_build(compiler: CageCompiler) -> None:
    works = [VECTOR, workload("x: f32[1]", "y: f32[1]", "one"), workload("x: f32[257]", "y: f32[257]", "prime")]
    artifact = compiler.compile(SCALE, {}, works, ARCH, print, threading.Event())
    assert isinstance(artifact, Artifact)
    assert {n: b.plan.launches[0].grid[0] for n, b in artifact.builds.items()} == {"main": 8, "one": 1, "prime": 3}


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64", "i32", "i64", "u8", "bool"])
def test_every_dtype_can_be_passed(compiler: CageCompiler, dtype: str) -> None:
    copy = SCALE.replace("x[i] * 2.0", "x[i]")
    assert compile_one(compiler, copy, workload(f"x: {dtype}[96]", f"y: {dtype}[96]")).builds


def test_a_hit_costs_a_small_fraction_of_a_miss(compiler: CageCompiler) -> None:
    source = SCALE + f"\n# {time.time_ns()}\n"
    started = time.perf_counter()
    first = compile_one(compiler, source)
    miss = time.perf_counter() - started
    hits = []
    for _ in range(5):
        started = time.perf_counter()
        assert compile_one(compiler, source) == first
        hits.append(time.perf_counter() - started)
    assert min(hits) < miss / 20


def test_a_damaged_entry_is_compiled_again(compiler: CageCompiler, cache_dir: Path) -> None:
    source = SCALE + "\n# damaged\n"
    before = {*cache_dir.glob("builds/*/*.json")}
    artifact = compile_one(compiler, source)
    (entry,) = {*cache_dir.glob("builds/*/*.json")} - before
    for damage in (b"", b"{", b'{"entry_version":1}', b"\xff\xfe", entry.read_bytes()[:-40]):
        entry.write_bytes(damage)
        assert compile_one(compiler, source).sha256 == artifact.sha256
    assert len(entry.read_bytes()) > 1000


def test_many_configs_compile_in_parallel(compiler: CageCompiler) -> None:
    jobs = [CompileJob(SCALE, {"threads": 32 * t}, (VECTOR,), ARCH) for t in range(1, 7)]
    results = compiler.compile_many(jobs, print)
    assert [r.builds["main"].plan.launches[0].block[0] for r in results if isinstance(r, Artifact)] == [
        32 * t for t in range(1, 7)
    ]


def test_an_unknown_arch_is_an_input_error(compiler: CageCompiler) -> None:
    with pytest.raises(InputError, match="sm_12"):
        compiler.compile(SCALE, {}, [VECTOR], "sm_12", print, threading.Event())


@pytest.mark.parametrize(
    ("source", "config", "said"),
    [
        (SCALE, {"threads_": 8}, "threads_"),
        (SCALE.replace("y: cute.Tensor, stream", "y: cute.Tensor, z: cute.Tensor, stream"), {}, "takes 3 tensors"),
        (SCALE.replace("stream: cuda.CUstream, ", "").replace(", stream=stream", ""), {}, "no parameter named stream"),
        (SCALE + '\nTUNABLE = {"nothing": (1, 2)}\n', {}, "nothing"),
        (SCALE + "\ndef constraints(config, workload, device):\n    return config['threads'] > 128\n", {}, "rules out"),
        (SCALE + "\ndef workspace(workload, config):\n    return 7\n", {}, "workspace"),
        (COLUMN_SUM.split("def workspace")[0] + SCALE.split("CUstream\n")[-1].split("\n\n", 1)[0], {}, "launch"),
    ],
)
def test_a_broken_contract_is_named(compiler: CageCompiler, source: str, config: dict[str, int], said: str) -> None:
    failure = fail_one(compiler, source, **config)
    assert failure.verdict is Verdict.CONTRACT
    assert said in failure.reason


def test_a_launch_on_another_stream_is_refused(compiler: CageCompiler) -> None:
    """A plan runs in order on one stream, whatever the text says: its owner would run another program."""
    failure = fail_one(compiler, SCALE.replace(", stream=stream", ""))
    assert failure.verdict is Verdict.CONTRACT and "launch 0" in failure.reason, failure.reason
    assert "is not on launch()'s stream" in failure.reason


@pytest.mark.parametrize("where", ["x.iterator.toint() // 2**40 % 128 == 127", "x.iterator.toint() % 256 == 0"])
def test_a_launcher_that_looks_for_a_gpus_addresses_is_unstable(compiler: CageCompiler, where: str) -> None:
    """It would do for its owner what no recording shows."""
    plain = "grid=[(n + threads - 1) // threads, 1, 1]"
    source = SCALE.replace(plain, f"grid=[(n + threads - 1) // threads + (1 if {where} else 0), 1, 1]")
    failure = fail_one(compiler, source)
    assert failure.verdict is Verdict.UNSTABLE_PLAN, failure.reason


def test_a_zero_grid_is_an_invalid_plan(compiler: CageCompiler) -> None:
    source = SCALE.replace("grid=[(n + threads - 1) // threads, 1, 1]", "grid=[n // 2000, 1, 1]")
    assert fail_one(compiler, source).verdict in (Verdict.INVALID_PLAN, Verdict.COMPILE_ERROR)


def test_a_workspace_that_no_device_has_is_refused(compiler: CageCompiler) -> None:
    source = COLUMN_SUM.replace('("part", "f32", (m // config["rows"], n))', '("part", "f32", (1 << 30, n))')
    failure = fail_one(compiler, source, workload("x: f32[64,32]", "y: f32[32]"))
    assert failure.verdict is Verdict.CONTRACT
    assert "131072 MiB, over 65536 MiB" in failure.reason


ONLY_LONG = (
    SCALE
    + """
def constraints(config, workload, device):
    return workload.inputs[0].shape[0] > 10
"""
)


def test_constraints_may_leave_out_derived_workloads_only(compiler: CageCompiler) -> None:
    short = workload("x: f32[7]", "y: f32[7]")
    derived = replace(short, name="prime", why="prime: no vector divides it")
    for turn in ("compiled", "from the cache"):
        built = compiler.compile(ONLY_LONG, {}, [derived, VECTOR], "sm_90a", lambda line: None, threading.Event())
        assert isinstance(built, Artifact), (turn, built)
        assert built.unserved == ("prime",) and list(built.builds) == [VECTOR.name]
        assert Artifact.from_dict(built.to_dict()) == built
    refused = compiler.compile(ONLY_LONG, {}, [short, VECTOR], "sm_90a", lambda line: None, threading.Event())
    assert isinstance(refused, CompileFailure) and refused.verdict is Verdict.CONTRACT
    assert "rules out" in refused.reason


GLOBAL_COUNTER = "{ .global .align 4 .u32 calls; atom.global.add.u32 $0, [calls], 1; }"


def test_a_module_may_keep_nothing_between_launches(compiler: CageCompiler) -> None:
    line = f'llvm.inline_asm(T.i32(), [], "{GLOBAL_COUNTER}", "=r", has_side_effects=True)'
    source = "from cutlass._mlir.dialects import llvm\nfrom cutlass.cutlass_dsl import T\n" + kernel_body(line)
    failure = fail_one(compiler, source, MATRIX)
    assert failure.verdict is Verdict.CONTRACT, failure
    assert "variables of its own (calls" in failure.reason and "workspace()" in failure.reason


@pytest.mark.parametrize("code", ["cutlass" + ".a" * 900 + " = 1", "x = '\ud800'", "x = " + "(" * 5000])
def test_texts_that_cannot_be_read_are_refused(compiler: CageCompiler, code: str) -> None:
    failure = fail_one(compiler, with_prologue(code))
    assert failure.verdict is Verdict.REJECTED_SOURCE and "not valid Python" in failure.reason


def test_a_text_is_compiled_as_it_is_read(compiler: CageCompiler) -> None:
    """Where it asks for an encoding too: the DSL reads a function's text again."""
    source = "# -*- coding: unicode_escape -*-\n" + SCALE.replace("x[i] * 2.0", "x[i] * 3.0  # thrice\\n * 2.0")
    artifact = compile_one(compiler, source, VECTOR)
    plain = compile_one(compiler, SCALE.replace("x[i] * 2.0", "x[i] * 3.0"), VECTOR)
    ours, theirs = (re.findall(r"mul\.\S*f32.*|add\.\S*f32.*", made.builds["main"].ptx) for made in (artifact, plain))
    assert ours == theirs


def test_a_workspace_has_a_name(compiler: CageCompiler) -> None:
    source = COLUMN_SUM.replace('"part"', '"verdict:\\npassed"')
    assert source != COLUMN_SUM
    failure = fail_one(compiler, source, workload("x: f32[64,32]", "y: f32[32]"), rows=16)
    assert failure.verdict is Verdict.CONTRACT and "is not a name" in failure.reason
