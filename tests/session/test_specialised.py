"""The text for one config is written only with a proof; else the general one, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cutegen_lab.core.artifact import Artifact, Build, CompileFailure, Launch, LaunchPlan
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import CageError, SetupError
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.verdict import Diagnostic, Verdict
from cutegen_lab.session.kernels import for_one_config, is_unmodified, read_kernel, written_text
from cutegen_lab.session.specialised import Written, specialised
from cutegen_lab.templates.emit.observe import REPORT
from tests.harness.checking import problem_of

SOURCE = """
TUNABLE = {"vec": (2, 4)}


def launch(x, y, stream, vec=4):
    pass
"""
PROBLEM = problem_of("x * 2", "x: f32[64,64]")


class Scripted:
    """Reports ``report`` of what has probes; of the text without TUNABLE, ``ptx`` and ``grid`` are what comes out."""

    def __init__(self, report: str = "?" * 20, ptx: str = "ret;", grid: int = 1) -> None:
        self.report, self.ptx, self.grid = report, ptx, grid

    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Any, cancel: Any
    ) -> Artifact | CompileFailure:
        if REPORT in source:
            return CompileFailure(Verdict.COMPILE_ERROR, "", (Diagnostic("error", REPORT, self.report, 1),))
        general = "TUNABLE" in source
        launch = Launch("general" if general else "one", (1 if general else self.grid, 1, 1), (32, 1, 1), (1, 1, 1),
                        0, (), ())  # fmt: skip
        ptx = "ret;" if general else self.ptx
        builds = {w.name: Build(w.signature, arch, b"", ptx, (), LaunchPlan((launch,))) for w in workloads}
        return Artifact("", config, arch, "", builds)


class Raises:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def compile(self, *_: Any) -> Artifact:
        raise self.error


def test_with_a_proof() -> None:
    written = specialised(Scripted(), PROBLEM, SOURCE, {"vec": 2}, "sm_90a")
    assert written == Written("def launch(x, y, stream):\n    pass\n", {}, {"vec": 2}, lines={6: 2})
    text = written_text(["# by cutegen-lab"], written)
    assert '# for this config only: {"vec": 2}\n' in text and for_one_config(text) and is_unmodified(text)
    assert read_kernel(text) == (written.source, {})


@pytest.mark.parametrize(
    ("compiler", "why"),
    [
        (Scripted(ptx="exit;"), "compiles to other PTX for prime, tail, main"),
        (Scripted(grid=2), "compiles to other PTX for prime, tail, main"),
        (Scripted(report=""), "has too many branches"),
        (Raises(SetupError("no compiler", "")), "nothing could be compiled here (no compiler)"),
        (Raises(CageError("no walls", "")), "nothing could be compiled here (no walls)"),
    ],
)
def test_without_one(compiler: Any, why: str) -> None:
    written = specialised(compiler, PROBLEM, SOURCE, {"vec": 2}, "sm_90a")
    assert (written.source, written.config, written.folded) == (SOURCE, {"vec": 2}, None)
    assert why in written.note and written.note_line.startswith("written with its parameters")
    assert not for_one_config(written_text([], written))


def test_a_kernel_without_parameters_is_left_alone() -> None:
    source = "def launch(x, y, stream):\n    pass\n"
    assert specialised(Raises(SetupError("no compiler", "")), PROBLEM, source, {}, "sm_90a") == Written(source, {})
