"""`cutegen tune` on a real GPU, as a user runs it: whether the GPU is kept busy, whether a killed search goes on.

    python -m benchmarks.search.tune_on_gpu OUT.json   (needs the DSL, torch and a GPU)

What the searches say goes to OUT.log. Each times up to 40 configs and has the judge check the fastest. The RMSNorm's is
killed (SIGKILL) after 8 configs and started again; the plain softmax is a kernel without a TUNABLE, made a template
first.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, command_line, conditions, say, write_json

PROBLEMS = {
    "softmax": ("x", "x: bf16[16384, 4096]; x: bf16[4096, 16384]", "torch.softmax(x, dim=-1)"),
    "gemm": ("a, b", "a: bf16[2048,2048], b: bf16[2048,2048]; a: bf16[1000,1000], b: bf16[1000,1000]", "a @ b"),
    "rmsnorm": ("x, w", "x: bf16[16384, 8192], w: bf16[8192]", "torch.nn.functional.rms_norm(x, (8192,), w, 1e-6)"),
    "plain_softmax": ("x", "x: bf16[8192, 4096]", "torch.softmax(x, dim=-1)"),
}
PLAIN = ROOT / "benchmarks/softmax_kernel.py.txt"
KILLED_AFTER = 8  # configs
SECONDS = 240.0  # a search, its judging included


def main(out: Path) -> None:
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in PROBLEMS:
            rows.append(searched(written(name, Path(folder)), out.with_suffix(".log")))
            say(json.dumps(rows[-1]))
            write_json(out, conditions(rows[0]["device"]), searches=rows)


def written(name: str, folder: Path) -> Path:
    """The file of a problem."""
    arguments, inputs, expression = PROBLEMS[name]
    problem = folder / f"{name}.py"
    problem.write_text(f"import torch\n\n\ndef reference({arguments}):  # {inputs}\n    return {expression}\n")
    return problem


def searched(problem: Path, log: Path) -> dict[str, Any]:
    name, workdir = problem.stem, problem.with_suffix("")
    command = [sys.executable, "-m", "cutegen_lab", "tune", str(problem), "--device", "cuda", "--budget", "40",
               "--workdir", str(workdir)]  # fmt: skip
    if name == "plain_softmax":
        command[5:5] = [str(PLAIN), "--refactor"]
    killed = kill(command) if name == "rmsnorm" else 0
    with log.open("a") as said:
        done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, stderr=said, text=True, timeout=SECONDS)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"{name}: {log.read_text()[-2000:]}")
    found = json.loads(done.stdout)
    search = found["search"]
    return {
        "device": found["device"], "problem": name, "inputs": PROBLEMS[name][1],
        "kernel": found["kernel"].replace(str(PLAIN), PLAIN.name), "verdict": found["verdict"],
        "configs": found["space"]["configs"], "evaluated": search["evaluated"], "ruled_out": search["ruled_out"],
        "killed_after": killed, "from_cache": search["from_cache"], "prepare_s": round(found["prepare_s"], 1),
        "search_s": round(found["search_s"], 1), "gpu_busy": found["gpu_busy"],
        "best": found["best"], "workloads": found["workloads"],
    }  # fmt: skip


def kill(command: list[str]) -> int:
    """Ends a search by SIGKILL in the middle. How many configs it had timed."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as search:  # noqa: S603
        assert search.stderr is not None
        for line in search.stderr:
            if f" {KILLED_AFTER}/40 " in line:
                search.send_signal(signal.SIGKILL)
                return KILLED_AFTER
    raise SystemExit("the search ended before it could be killed")


if __name__ == "__main__":
    command_line(main)
