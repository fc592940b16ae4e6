"""Public kernels through the whole way: bundled, compiled, judged on the emulator.

    python -m benchmarks.public_kernels --quack DIR --flash-attention DIR --cutlass DIR [--only NAME…] [--out FILE.json]

Each DIR is a checkout (Dao-AILab/quack, Dao-AILab/flash-attention, NVIDIA/cutlass); cases of one that is not given are
left out. Where DIR is no git checkout, --commit quack=HASH names its commit. ``public_launches/NAME.py`` is the
``launch`` of a case, ``NAME.problem.txt`` what it computes; the kernels' own text is not changed, but for EDITS. Prints
a table; exit status 0 if every case has the verdict it is known for.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.harness import ARCH, command_line, compiled, conditions, quiet, say, write_json
from cutegen_lab.bundle import bundle
from cutegen_lab.compile import CageCompiler, gate
from cutegen_lab.core.artifact import CompileFailure
from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import StandardJudge, select_workloads
from cutegen_lab.problems import read_text

GPU, DSL = "H200", "nvidia-cutlass-dsl"
LAUNCHES = Path(__file__).with_name("public_launches")
_CUTE_DSL = "examples/python/CuTeDSL"
# NAME: (checkouts, files of them that say where imports are found, the verdict known today and why it is not "passed")
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...], str, str]] = {
    "quack_gemm_sm90": (("quack",), ("quack/gemm_sm90.py",), "passed", ""),
    "quack_gemm_sm90_pingpong": (("quack",), ("quack/gemm_sm90.py",), "passed", ""),
    "quack_softmax": (("quack",), ("quack/softmax.py",), "passed", ""),
    "quack_rmsnorm": (("quack",), ("quack/rmsnorm.py",), "passed", ""),
    "flash_fwd_sm80": (
        ("flash-attention", "quack"), ("flash_attn/cute/flash_fwd.py", "quack/utils.py"), "passed", "",
    ),
    "flash_fwd_sm90": (
        ("flash-attention", "quack"), ("flash_attn/cute/flash_fwd_sm90.py", "quack/utils.py"), "passed", "",
    ),
    "flash_fwd_sm90_varlen": (
        ("flash-attention", "quack"), ("flash_attn/cute/flash_fwd_sm90.py", "quack/utils.py"), "passed", "",
    ),
    "nvidia_tma_pipeline_warpspec": (
        ("cutlass",), (f"{_CUTE_DSL}/experimental/primitives/tma/tma_pipeline_warpspec.py",), "passed", "",
    ),
}  # fmt: skip
# What quack adds to the DSL's own tensor class by patching it, which no candidate may, spelled with what the DSL has.
EDITS = {
    r"^( *)(\w+) = (tRS_r\w+)\.to\(dtype\)$":
        r"\1\2 = cute.make_rmem_tensor_like(\3, dtype)\n\1\2.store(\3.load().to(dtype))",
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    name: str
    verdict: str
    known: str
    why: str
    definitions: int
    files: int
    bytes: int
    edits: int
    notices: int
    checks: int
    workloads: int
    compile_seconds: float
    judge_seconds: float
    reason: str


def judged(name: str, folders: dict[str, Path]) -> Outcome:
    checkouts, files, known, why = CASES[name]
    made = bundle([LAUNCHES / f"{name}.py", *(folders[c] / file for c, file in zip(checkouts, files, strict=True))])
    text, edits = made.text, 0
    for pattern, instead in EDITS.items():
        text, count = re.subn(pattern, instead, text, flags=re.M)
        edits += count
    size = (len(made.pieces), len(made.files), len(text.encode()), edits, len(made.notices))
    if refused := gate.check(text):
        first = refused[0]
        reason = f"{made.origin(first.line)}: {first.code}: {first.message}"
        return Outcome(name, "rejected_source", known, why, *size, 0, 0, 0.0, 0.0, reason)
    problem = read_text((LAUNCHES / f"{name}.problem.txt").read_text(), name=name)
    device, never = EmulatorDevice(), threading.Event()
    workloads = select_workloads(problem, device)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, CageCompiler(Path(folder)) as compiler:
        built = compiled(compiler, text, {}, problem.built_for(workloads))
    compile_seconds = time.perf_counter() - started
    if isinstance(built, CompileFailure):
        return Outcome(name, built.verdict.value, known, why, *size, 0, 0, compile_seconds, 0.0, built.reason[:300])
    trial = StandardJudge().check(problem, built, device, quiet, never)
    spent = time.perf_counter() - started - compile_seconds
    checks = trial.checks
    served = len({check.workload for check in checks})
    verdict = trial.verdict.value
    return Outcome(name, verdict, known, why, *size, len(checks), served, compile_seconds, spent, trial.reason[:300])


def head_commit(folder: Path) -> str:
    done = subprocess.run(  # noqa: S603
        ["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, check=False  # noqa: S607
    )  # fmt: skip
    return done.stdout.strip()


def main(
    *, quack: Path | None = None, flash_attention: Path | None = None, cutlass: Path | None = None,
    commit: tuple[str, ...] = (), only: tuple[str, ...] = tuple(CASES), out: Path | None = None,
) -> int:  # fmt: skip
    given = {"quack": quack, "flash-attention": flash_attention, "cutlass": cutlass}
    folders = {name: folder.resolve() for name, folder in given.items() if folder is not None}
    named = dict(words.split("=") for words in commit)
    commits = {name: named.get(name) or head_commit(folder) for name, folder in folders.items()}
    outcomes = []
    print("| kernel | verdict | checks | workloads | definitions | files | bytes | edits | compile s | judge s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in only:
        if not set(CASES[name][0]) <= set(folders):
            continue
        try:
            one = judged(name, folders)
        except CutegenError as error:
            one = Outcome(name, "not bundled", CASES[name][2], "", 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, str(error))
        outcomes.append(one)
        figures = [one.checks, one.workloads, one.definitions, one.files, one.bytes, one.edits]
        seconds = [round(one.compile_seconds), round(one.judge_seconds)]
        say("|", " | ".join(map(str, [name, one.verdict, *figures, *seconds])), "|")
        if one.verdict != one.known:
            say(f"    {one.reason}")
        if out is not None:
            about = {"arch": ARCH, "gpu": target_gpu(ARCH, GPU).name, "commits": commits, "dsl": version(DSL)}
            write_json(out, conditions("emulator"), **about, kernels=[asdict(outcome) for outcome in outcomes])
    return int(any(one.verdict != one.known for one in outcomes))


if __name__ == "__main__":
    command_line(main)
