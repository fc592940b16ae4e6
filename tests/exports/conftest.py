"""A run that ended with an accepted kernel, made by the real parts on the emulator; a clustered kernel as a build."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cutegen_lab.core.artifact import PROGRAMMATIC, Artifact
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.exports import Subject
from cutegen_lab.problems import read_text
from cutegen_lab.session import Session
from cutegen_lab.session.handle import RunHandle
from cutegen_lab.session.kernels import claims
from tests.exports.launched import FakeCuda
from tests.harness.keeping import BUILDS

REFERENCE = "import torch\n\n\ndef reference(x):  # x: bf16[16, 256]\n    return torch.softmax(x, dim=-1)\n"
MODEL = """import torch


class Model(torch.nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((128,), 0.5))
        self.scale = scale

    def forward(self, x):
        return torch.relu(x * self.weight * self.scale)


def get_inputs():
    return [torch.randn(32, 128)]


def get_init_inputs():
    return [1.5]
"""


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    patch = pytest.MonkeyPatch()
    patch.setenv("CUTEGEN_CACHE", os.environ[BUILDS])
    with Session.open(tmp_path_factory.mktemp("exports")) as opened:
        yield opened
    patch.undo()


def accepted(session: Session, source: str, name: str) -> RunHandle:
    settings = RunSettings(auto=True, device="emulator", budget=Budget(max_steps=1))
    handle = session.start(read_text(source, name=name), settings)
    assert handle.wait(200).outcome == "accepted", (handle.state.step, handle.log)
    return handle


@pytest.fixture(scope="session")
def run(session: Session) -> RunHandle:
    return accepted(session, REFERENCE, "soft max")


@pytest.fixture(scope="session")
def model(session: Session) -> RunHandle:
    return accepted(session, MODEL, "scaled")


def subject_of(handle: RunHandle) -> Subject:
    """Its accepted kernel, with parameters."""
    state = handle.state
    chosen = state.incumbent_id or ""
    candidate, (_, artifact) = state.candidates[chosen], handle._compiled(chosen)
    return Subject(
        state.problem, handle.run_id, chosen, candidate.source, candidate.source, candidate.config,
        claims(state, chosen), artifact, candidate.provider == "templates", state.sol.gpu,
    )  # fmt: skip


@pytest.fixture(scope="session")
def subject(run: RunHandle) -> Subject:
    return subject_of(run)


@pytest.fixture(scope="session")
def clustered(subject: Subject) -> Subject:
    """As ``subject``, launched twice, with clusters, attributes, an offset and more shared memory: what few kernels
    have."""
    build = subject.artifact.builds["main"]
    launch = build.plan.launches[0]
    moved = replace(launch.relocations[0], tensor_offset=32)
    first = replace(launch, attributes={PROGRAMMATIC: b"\x01\0\0\0"}, cluster=(2, 1, 1))
    second = replace(
        first, cluster=(16, 1, 1), dynamic_smem_bytes=150_000, relocations=(moved, *launch.relocations[1:])
    )
    plan = replace(build.plan, launches=(first, second))
    builds = {**subject.artifact.builds, "main": replace(build, plan=plan)}
    artifact: Artifact = dataclasses.replace(subject.artifact, builds=builds)
    return replace(subject, artifact=artifact)


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory: pytest.TempPathFactory) -> FakeCuda:
    return FakeCuda.built(tmp_path_factory.mktemp("libcuda"))
