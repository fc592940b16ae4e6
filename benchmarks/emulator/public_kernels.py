"""Public kernels through the whole way: bundled, compiled, judged on the emulator.

    python -m benchmarks.emulator.public_kernels --quack DIR --flash-attention DIR --cutlass DIR
        [--only NAME…] [--out FILE.json]

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
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.harness import ARCH, ROOT, command_line, compiled, conditions, quiet, say, write_json
from cutegen_lab.bundle import bundle
from cutegen_lab.compile import CageCompiler, gate
from cutegen_lab.core.artifact import CompileFailure
from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import StandardJudge, select_workloads
from cutegen_lab.problems import read_text

GPU, DSL = "H200", "nvidia-cutlass-dsl"
LAUNCHES = ROOT / "benchmarks/public_launches"
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


FIGURES = ("checks", "workloads", "definitions", "files", "bytes", "edits", "compile_seconds", "judge_seconds")


def judged(name: str, folders: dict[str, Path]) -> dict[str, Any]:
    """Verdict, reason and :data:`FIGURES` of one case, as far as it came."""
    checkouts, files, _, _ = CASES[name]
    try:
        made = bundle([LAUNCHES / f"{name}.py", *(folders[c] / file for c, file in zip(checkouts, files, strict=True))])
    except CutegenError as error:
        return {"verdict": "not bundled", "reason": str(error)}
    text, edits = made.text, 0
    for pattern, instead in EDITS.items():
        text, count = re.subn(pattern, instead, text, flags=re.M)
        edits += count
    row: dict[str, Any] = {
        "definitions": len(made.pieces), "files": len(made.files), "bytes": len(text.encode()), "edits": edits,
        "notices": len(made.notices),
    }  # fmt: skip
    if refused := gate.check(text):
        reason = f"{made.origin(refused[0].line)}: {refused[0].code}: {refused[0].message}"
        return row | {"verdict": "rejected_source", "reason": reason}
    problem = read_text((LAUNCHES / f"{name}.problem.txt").read_text(), name=name)
    device, started = EmulatorDevice(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, CageCompiler(Path(folder)) as compiler:
        built = compiled(compiler, text, {}, problem.built_for(select_workloads(problem, device)))
    row["compile_seconds"] = round(time.perf_counter() - started, 1)
    if isinstance(built, CompileFailure):
        return row | {"verdict": built.verdict.value, "reason": built.reason[:300]}
    started = time.perf_counter()
    trial = StandardJudge().check(problem, built, device, quiet, threading.Event())
    row["judge_seconds"] = round(time.perf_counter() - started, 1)
    row |= {"checks": len(trial.checks), "workloads": len({check.workload for check in trial.checks})}
    return row | {"verdict": trial.verdict.value, "reason": trial.reason[:300]}


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
    rows: list[dict[str, Any]] = []
    print(f"| kernel | verdict | {' | '.join(FIGURES).replace('_', ' ')} |", "|---" * 10 + "|", sep="\n")
    for name in only:
        checkouts, _, known, why = CASES[name]
        if not set(checkouts) <= set(folders):
            continue
        rows.append({"name": name, "known": known, "why": why, **judged(name, folders)})
        say("|", " | ".join(str(rows[-1].get(key, "")) for key in ("name", "verdict", *FIGURES)), "|")
        if rows[-1]["verdict"] != known:
            say(f"    {rows[-1]['reason']}")
        if out is not None:
            about = {"arch": ARCH, "gpu": target_gpu(ARCH, GPU).name, "commits": commits, "dsl": version(DSL)}
            write_json(out, conditions("emulator"), **about, kernels=rows)
    return int(any(row["verdict"] != row["known"] for row in rows))


if __name__ == "__main__":
    command_line(main)
