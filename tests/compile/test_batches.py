"""One process builds a candidate for several workloads, and each is built as if it were alone."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler, CompileJob, Limits
from cutegen_lab.compile.outcome import read_ending
from cutegen_lab.compile.reply import Failed
from cutegen_lab.compile.watch import Ending, Endings
from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.verdict import Verdict
from tests.compile.conftest import ARCH, workload
from tests.compile.sources import COLUMN_SUM, SCALE, with_prologue

pytestmark = pytest.mark.kernel
WORKS = [workload(f"x: f32[{n}]", f"y: f32[{n}]", f"w{n}") for n in (1000, 1, 257, 64)]
# Counts the builds of a process, as a module can: workspace() is asked once a build.
COUNTING = """
built = []


def workspace(workload, config):
    built.append(workload.name)
    {}
    return []
"""


def compiled(folder: Path, source: str, works: list[Workload], **limits: float) -> Artifact | CompileFailure:
    with CageCompiler(folder, workers=1, limits=Limits(**limits)) as compiler:  # type: ignore[arg-type]
        return compiler.compile_ungated(CompileJob(source, {}, tuple(works), ARCH), print)


@pytest.mark.parametrize(
    ("source", "works"),
    [(SCALE, WORKS), (COLUMN_SUM, [workload(f"x: f32[{m},32]", "y: f32[32]", f"w{m}") for m in (64, 8, 128)])],
)
def test_a_build_is_the_same_beside_others_as_alone(tmp_path: Path, source: str, works: list[Workload]) -> None:
    together = compiled(tmp_path / "together", source, works)
    assert isinstance(together, Artifact), together
    with CageCompiler(tmp_path / "alone") as compiler:
        alone = [compiler.compile(source, {}, [work], ARCH, print, threading.Event()) for work in works]
    for work, artifact in zip(works, alone, strict=True):
        assert isinstance(artifact, Artifact)
        mine, other = together.builds[work.name], artifact.builds[work.name]
        assert (mine.ptx, mine.cubin, mine.plan) == (other.ptx, other.cubin, other.plan)
        assert (mine.kernels, mine.lines, mine.notes) == (other.kernels, other.lines, other.notes)


def test_the_first_build_that_ends_the_process_is_the_one_that_failed(tmp_path: Path) -> None:
    source = SCALE + COUNTING.format("if len(built) == 3: import os; os._exit(3)")
    failure = compiled(tmp_path, source, WORKS)
    assert isinstance(failure, CompileFailure) and failure.verdict is Verdict.COMPILE_CRASH
    assert "for workload 'w257'" in failure.reason and "exit status 3" in failure.reason


@pytest.mark.parametrize("why", ["", "ragged"])
def test_sizes_that_the_judge_chose_are_told_and_how_to_leave_them_out(tmp_path: Path, why: str) -> None:
    fixed = SCALE + COUNTING.format("assert workload.inputs[0].shape[0] == 1000, '1000 elements'")
    failure = compiled(tmp_path, fixed, [WORKS[0], replace(WORKS[2], why=why)])
    assert isinstance(failure, CompileFailure) and "1000 elements" in failure.reason
    assert ("'w257' (x: f32[257]) -> (y: f32[257]), whose sizes the judge chose" in failure.reason) == bool(why)


def test_each_build_has_as_much_time_as_a_build_has(tmp_path: Path) -> None:
    patient = SCALE + COUNTING.format("import time; time.sleep(1.0)")
    assert isinstance(compiled(tmp_path, patient, WORKS[:3], wall_seconds=2.5), Artifact)
    endless = SCALE + COUNTING.format("while len(built) > 1: pass")
    failure = compiled(tmp_path, endless, WORKS[:3], wall_seconds=1.5)
    assert isinstance(failure, CompileFailure) and failure.verdict is Verdict.COMPILE_TIMEOUT
    assert "for workload 'w1'" in failure.reason


def test_each_build_has_as_much_cpu_time_as_a_build_has(tmp_path: Path) -> None:
    busy = "import time; end = time.process_time() + 0.7\n    while time.process_time() < end: pass"
    assert isinstance(compiled(tmp_path, SCALE + COUNTING.format(busy), WORKS[:2], cpu_seconds=1), Artifact)
    endless = SCALE + COUNTING.format("while len(built) > 1: pass")
    failure = compiled(tmp_path, endless, WORKS[:3], cpu_seconds=1, wall_seconds=20.0)
    assert isinstance(failure, CompileFailure) and failure.verdict is Verdict.COMPILE_TIMEOUT
    assert "1 s of CPU" in failure.reason


def test_what_a_build_prints_is_its_own(tmp_path: Path) -> None:
    """ptxas' remarks come with the output: a build of the third workload spills, those before it do not."""
    remark = "remark[ptxas]: it said so\\n"
    source = SCALE + COUNTING.format(f"len(built) == 3 and print({remark!r}, flush=True)")
    artifact = compiled(tmp_path, source.replace("\\\\n", "\\n"), WORKS)
    assert isinstance(artifact, Artifact), artifact
    said = {
        name: [note.message for note in build.notes if note.code == "PTXAS"] for name, build in artifact.builds.items()
    }
    assert [name for name, notes in said.items() if any("it said so" in note for note in notes)] == ["w257"]


FORGE = """
import json, os, struct
def send(message):
    body = json.dumps(message).encode()
    for fd in range(3, 32):
        try: os.write(fd, struct.pack(">cI", b"W", len(body)) + body)
        except OSError: pass
"""


@pytest.mark.parametrize("message", [1, 7, "x", True, None])
def test_builds_that_were_not_asked_for_are_refused(tmp_path: Path, message: object) -> None:
    """Each would give a candidate more time; and none may answer for another."""
    failure = compiled(tmp_path, with_prologue(f"{FORGE}\nsend({message!r})"), WORKS)
    assert isinstance(failure, CompileFailure) and failure.verdict is Verdict.COMPILE_CRASH
    assert "it begins build" in failure.reason


def test_an_answer_stands_for_no_build_that_did_not_begin() -> None:
    """As when the process is killed between two builds."""
    ended = Endings([Ending(reply={"cubin": "of the first"}, wait_status=0)])
    assert ended.of(0).reply == {"cubin": "of the first"} and ended.of(1).reply is None
    failed = read_ending(ended.of(1), (), Limits())
    assert isinstance(failed, Failed) and "gave no answer" in failed.reason


def test_known_builds_are_not_built_again(tmp_path: Path) -> None:
    said: list[str] = []
    with CageCompiler(tmp_path, workers=1) as compiler:
        compiler.compile(SCALE, {}, WORKS[:2], ARCH, print, threading.Event())
        artifact = compiler.compile(SCALE, {}, WORKS, ARCH, said.append, threading.Event())
    assert isinstance(artifact, Artifact) and list(artifact.builds) == [work.name for work in WORKS]
    assert [line.split()[1] for line in said if line.startswith("compiling ")] == ["w257", "w64"]
    assert [line.split(":")[0] for line in said if "from the cache" in line] == ["w1000", "w1"]


def test_strings_have_one_order_in_every_process(tmp_path: Path) -> None:
    """A set's order follows from hashes, which Python draws anew for each process unless told otherwise."""
    words = "{'alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta'}"
    order = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", f"print(list({words}).index('beta'))"],
        env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    source = SCALE.replace("x[i] * 2.0", "x[i] * FACTOR") + f"\nFACTOR = 100.0 + list({words}).index('beta')\n"
    built = compiled(tmp_path, source, WORKS[:1])
    assert isinstance(built, Artifact), built
    expected = struct.pack(">f", 100.0 + int(order)).hex().upper()
    assert f"0f{expected}" in built.builds["w1000"].ptx
