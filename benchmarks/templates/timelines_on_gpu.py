"""Timelines of warps on a GPU: how much the stamps slow a kernel down, and where its warps wait.

    python -m benchmarks.templates.timelines_on_gpu write FOLDER             (needs the DSL; no GPU)
    python -m benchmarks.templates.timelines_on_gpu record FOLDER OUT.json   (a GPU)

``write`` compiles the default config of each problem. ``record`` writes a summary of each launch's block, and every
span to ``NAME.trace.json`` beside OUT.json, for Perfetto.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    command_line,
    compiled,
    conditions,
    default_kernel,
    for_each,
    read_json,
    required,
    say,
    write_json,
)  # fmt: skip
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.timeline import Timeline, trace_events
from cutegen_lab.devices.cuda import CudaDevice
from cutegen_lab.judge.profile import timelines
from cutegen_lab.problems import read_text

PROBLEMS: Mapping[str, str] = {
    "product": "def reference(a, b):  # a: bf16[4096,4096], b: bf16[4096,4096]\n    return a @ b.T\n",
    "linear-gelu": "def reference(x, w, b):  # x: bf16[2048,1024], w: bf16[4096,1024], b: bf16[4096]\n"
    "    return F.gelu(F.linear(x, w, b))\n",
    "softmax": "def reference(x):  # x: bf16[4096,8192]\n    return torch.softmax(x, -1)\n",
    "column-sum": "def reference(x):  # x: f32[65536,8192]\n    return x.sum(0)\n",
    "total": "def reference(x):  # x: bf16[8192,8192]\n    return x.sum()\n",
    "gelu": "def reference(x):  # x: bf16[8192,8192]\n    return F.gelu(x)\n",
}


def write(folder: Path) -> None:
    def one(name: str, compiler: CageCompiler) -> None:
        problem = read_text(PROBLEMS[name], name=name)
        built = compiled(compiler, *default_kernel(problem), [problem.workload])
        write_json(folder / f"{name}.json", required(name, built).to_dict())
        say(name)

    for_each(PROBLEMS, folder, one)


def summary(timeline: Timeline) -> dict[str, Any]:
    """Shares of the warps' time by what they wait at."""
    kinds = Counter[str]()
    for span in timeline.spans:
        kinds[span.label or "executes"] += span.end - span.start
    whole = sum(kinds.values())
    return {
        "block": timeline.block, "cycles": timeline.length, "warps": timeline.warps, "spans": len(timeline.spans),
        "cut": timeline.cut, "shares": {name: round(count / whole, 3) for name, count in kinds.most_common()},
        "clock_mhz": timeline.per_us, "what": timeline.what,
    }  # fmt: skip


def record(folder: Path, out: Path) -> None:
    rows: dict[str, Any] = {}
    with closing(CudaDevice()) as device:
        head = conditions(device.name)
        for name, text in PROBLEMS.items():
            artifact = Artifact.from_dict(read_json(folder / f"{name}.json"))
            found = timelines(read_text(text, name=name), artifact, device, 1, threading.Event())
            if isinstance(found, str):
                rows[name] = {"reason": found}
            else:
                rows[name] = [summary(timeline) for timeline in found]
                (out.parent / f"{name}.trace.json").write_text(json.dumps(trace_events(found)))
            say(name, json.dumps(rows[name]))
    write_json(out, head, problems=rows)


if __name__ == "__main__":
    command_line(write, record)
