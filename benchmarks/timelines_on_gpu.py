"""Timelines of warps on a GPU: how much the stamps slow a kernel down, and where its warps wait.

    python -m benchmarks.timelines_on_gpu write FOLDER           (needs the DSL; no GPU)
    python -m benchmarks.timelines_on_gpu record FOLDER OUT.json   (a GPU)

``write`` compiles the default config of each problem. ``record`` writes a summary of each launch's block, and every
span to ``NAME.trace.json`` beside OUT.json, for Perfetto.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from cutegen_lab.bench.record import about
from cutegen_lab.compile import CageCompiler, CompileJob
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
    from cutegen_lab.templates.recognise import template_for

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache, closing(CageCompiler(Path(cache))) as compiler:
        for name, text in PROBLEMS.items():
            problem = read_text(text, name=name)
            template = template_for(problem, "sm_90a")
            config = dict(template.default_config())
            job = CompileJob(template.write(config), config, (problem.workload,), "sm_90a")
            built = compiler.compile_many([job], lambda _: None)[0]
            if not isinstance(built, Artifact):
                raise SystemExit(f"{name}: {built.reason}")
            (folder / f"{name}.json").write_text(json.dumps(built.to_dict()))
            print(name, flush=True)


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
        head = about(device.name)
        for name, text in PROBLEMS.items():
            artifact = Artifact.from_dict(json.loads((folder / f"{name}.json").read_text()))
            found = timelines(read_text(text, name=name), artifact, device, 1, threading.Event())
            if isinstance(found, str):
                rows[name] = {"reason": found}
            else:
                rows[name] = [summary(timeline) for timeline in found]
                (out.parent / f"{name}.trace.json").write_text(json.dumps(trace_events(found)))
            print(name, json.dumps(rows[name]), flush=True)
    out.write_text(json.dumps(head | {"problems": rows}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("verb", choices=("write", "record"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    arguments = parser.parse_args()
    if arguments.verb == "write":
        write(arguments.folder)
    elif arguments.out is None:
        parser.error("record needs OUT.json")
    else:
        record(arguments.folder, arguments.out)


if __name__ == "__main__":
    main()
