"""The CUDA device: what can be shown without a GPU, and the real thing where there is one."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import PROGRAMMATIC, Artifact, Launch, LaunchPlan, Relocation
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.cuda import CudaDevice, gpu_count
from cutegen_lab.devices.cuda.driver import DriverError, verdict_of
from cutegen_lab.devices.cuda.launching import _aligned, _relocate
from cutegen_lab.judge import StandardJudge, reference_device
from cutegen_lab.judge.profile import timelines
from cutegen_lab.judge.timing.interleaved import Effort
from cutegen_lab.judge.timing.timed_outputs import inputs_for
from cutegen_lab.problems import Reference, read_text
from cutegen_lab.problems.tensors import to_bytes
from tests.devices import kernels

needs_gpu = pytest.mark.skipif(
    gpu_count() == 0, reason="needs a CUDA device; benchmarks/judge/judge_on_gpu.py does more"
)
CANCEL = threading.Event()


@pytest.mark.skipif(gpu_count() > 0, reason="this machine has a GPU: the refusal cannot be shown")
def test_without_a_gpu_the_error_says_what_to_do() -> None:
    with pytest.raises(SetupError, match=r"no CUDA device is visible.*Use the emulator"):
        CudaDevice()


def test_relocations_put_device_addresses_into_parameters_and_leave_the_plan_alone() -> None:
    params = (bytes(16), bytes(8))
    relocations = (Relocation(0, 8, 1, 0x40), Relocation(1, 0, 0, 0))
    launch = Launch("k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, params, relocations)
    first, second = _relocate(launch, [0x7000, 0x9000])
    assert bytes(first) == bytes(8) + struct.pack("<Q", 0x9040)
    assert bytes(second) == struct.pack("<Q", 0x7000)
    assert launch.params == (bytes(16), bytes(8))


def test_a_call_never_begins_before_the_one_before_it_ends() -> None:
    overlapping = {PROGRAMMATIC: (1).to_bytes(4, "little"), 1: b"other"}
    launch = Launch("k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, (), (), overlapping)
    first, second = LaunchPlan((launch, launch)).one_call
    assert first.attributes == {1: b"other"} and second.attributes == overlapping
    assert LaunchPlan(()).one_call == ()


def test_parameters_are_aligned_as_tma_descriptors_need() -> None:
    owner, address = _aligned(bytearray(b"\x01" * 128))
    assert address % 64 == 0
    assert bytes(owner).count(b"\x01") == 128


@pytest.mark.parametrize(
    ("code", "verdict"),
    [(700, Verdict.OUT_OF_BOUNDS), (716, Verdict.MISALIGNED), (2, Verdict.OUT_OF_MEMORY), (999, Verdict.DEVICE_ERROR)],
)
def test_driver_errors_become_verdicts(code: int, verdict: Verdict) -> None:
    error = DriverError("cuLaunchKernelEx", code, "some text")
    assert verdict_of(error) is verdict
    assert str(code) in str(error)


@pytest.fixture(scope="module")
def gpu() -> Iterator[CudaDevice]:
    device = CudaDevice()
    yield device
    device.close()


@pytest.fixture(params=["through the host", "lent"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where tensors lie while they are checked: what is large, the device lends its memory to."""
    monkeypatch.setattr(reference_device, "LARGE_BYTES", 0 if request.param == "lent" else 1 << 60)
    return str(request.param)


def compiled(name: str, folder: Path) -> tuple[Problem, Artifact]:
    source, inputs = kernels.problem(name)
    problem = replace(read_text(source, name=name, inputs_text=inputs), check_workloads=())
    with CageCompiler(folder) as compiler:
        built = compiler.compile(kernels.source(name), {}, problem.workloads, "sm_90a", lambda line: None, CANCEL)
    assert isinstance(built, Artifact), built
    return problem, built


def timed(gpu: CudaDevice, problem: Problem, artifact: Artifact, incumbent: Artifact | None = None) -> Timing | Fault:
    judge = StandardJudge()
    judge.effort = Effort(seconds=2.0, references=("eager",))
    peak = target_gpu(artifact.arch, gpu.name)
    return judge.time(problem, artifact, gpu, peak, lambda line: None, CANCEL, incumbent=incumbent)[0]


def checked(gpu: CudaDevice, problem: Problem, artifact: Artifact) -> Verdict:
    return StandardJudge().check(problem, artifact, gpu, lambda line: None, CANCEL).verdict


@needs_gpu
def test_memory_is_lent_where_it_is_asked_for(gpu: CudaDevice) -> None:
    first, second = (torch.as_tensor(given) for given in gpu.lend([12, 4 << 20]) or ())
    assert first.is_cuda and (first.numel(), second.numel()) == (12, 4 << 20)
    assert first.data_ptr() % 256 == second.data_ptr() % 256 == 0


@needs_gpu
@pytest.mark.kernel
def test_a_kernel_beside_itself_is_the_same(gpu: CudaDevice, tmp_path: Path) -> None:
    problem, artifact = compiled("plus_one", tmp_path)
    assert checked(gpu, problem, artifact) is Verdict.PASSED
    found = timed(gpu, problem, artifact, incumbent=artifact)
    assert isinstance(found, Timing), found
    against = found.against("incumbent")
    assert against is not None and against.answer in ("same", "ambiguous"), against
    assert found.baselines.keys() == {"incumbent", "copy of the compulsory bytes"}
    assert "PyTorch was not timed: the candidate is not faster than the accepted kernel" in found.notes


@needs_gpu
@pytest.mark.kernel
def test_stamps_tell_what_warps_do_and_when(gpu: CudaDevice, tmp_path: Path) -> None:
    problem, artifact = compiled("plus_one", tmp_path)
    found = timelines(problem, artifact, gpu, 1, CANCEL)
    assert not isinstance(found, str), found
    (timeline,) = found
    assert timeline.unit == "cycles" and timeline.per_us > 100 and "measured on cuda:0" in timeline.what
    waits = [span for span in timeline.spans if span.kind == "wait"]
    assert waits and all(span.label.startswith("ld.global") for span in waits)
    assert 0 < max(span.end for span in timeline.spans) <= timeline.length and not timeline.cut
    assert checked(gpu, problem, artifact) is Verdict.PASSED, "and the worker goes on"


@needs_gpu
@pytest.mark.usefixtures("memory")
@pytest.mark.kernel
@pytest.mark.parametrize(("name", "verdict"), [("hang", Verdict.HANG), ("illegal_address", Verdict.OUT_OF_BOUNDS)])
def test_the_device_survives_a_kernel_that_harms_it(
    gpu: CudaDevice, tmp_path: Path, name: str, verdict: Verdict
) -> None:
    assert checked(gpu, *compiled(name, tmp_path)) is verdict
    found = timed(gpu, *compiled(name, tmp_path))
    assert isinstance(found, Fault) and found.verdict is verdict
    assert checked(gpu, *compiled("plus_one", tmp_path)) is Verdict.PASSED


@needs_gpu
def test_indices_are_valid_whenever_a_subject_is_called(gpu: CudaDevice) -> None:
    """A copy's turn leaves other bytes in the tensors, on which PyTorch would assert."""
    text = "def reference(x, t):  # x: f32[300,1000], t: i64[300]\n    return F.cross_entropy(x, t, reduction='none')\n"
    problem = read_text(text, name="loss")
    specs = problem.workload.tensors
    given = inputs_for(problem, Reference(problem), 1)
    watch = gpu.stopwatch(specs, to_bytes(given, problem.workload.inputs), CANCEL)
    assert not isinstance(watch, Fault), watch
    with closing(watch):
        for added in (watch.add_copy("copy"), watch.add_reference("eager", problem, "eager")):
            assert not isinstance(added, Fault), added
        for mode in watch.modes:
            for name in ("copy", "eager"):
                assert not isinstance(found := watch.sample(name, mode, 2, 5), Fault), (mode, found)


@needs_gpu
def test_a_reference_is_compiled_before_it_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    text = "def reference(x, i):  # x: f32[300,1000], i: i64[300]\n    return torch.softmax(x, -1)[i]\n"
    problem = read_text(text, name="rows")
    with closing(CudaDevice()) as device:
        device.prepare(problem)
        device._ahead._process.wait(60)
        given = inputs_for(problem, Reference(problem), 1)
        watch = device.stopwatch(problem.workload.tensors, to_bytes(given, problem.workload.inputs), CANCEL)
        assert not isinstance(watch, Fault), watch
        with closing(watch):
            before = {path.name for path in (tmp_path / "fxgraph").rglob("*") if path.is_file()}
            assert not isinstance(added := watch.add_reference("compiled", problem, "compile"), Fault), added
            assert before and before == {path.name for path in (tmp_path / "fxgraph").rglob("*") if path.is_file()}


@needs_gpu
@pytest.mark.kernel
def test_a_time_that_its_bytes_do_not_allow_is_quarantined(gpu: CudaDevice, tmp_path: Path) -> None:
    found = timed(gpu, *compiled("unread", tmp_path))
    assert isinstance(found, Fault) and found.verdict is Verdict.TOO_FAST


@needs_gpu
@pytest.mark.kernel
def test_an_artifact_for_another_architecture_is_refused(gpu: CudaDevice, tmp_path: Path) -> None:
    problem, artifact = compiled("plus_one", tmp_path)
    build = replace(artifact.builds["main"], arch="sm_100a")
    views = [memoryview(bytearray(spec.nbytes)) for spec in problem.workload.tensors]
    fault = gpu.execute(build, problem.workload.tensors, views, CANCEL).fault
    assert fault is not None and fault.verdict is Verdict.UNSUPPORTED and "sm_100a" in fault.message


@needs_gpu
def test_a_gpu_that_is_not_there_is_named() -> None:
    with pytest.raises(SetupError, match="cuda:99 is not visible"):
        CudaDevice(index=99)
