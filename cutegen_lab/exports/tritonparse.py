"""A kernel as a trace of tritonparse: one compilation and one launch for each launch of the plan, as lines of JSON.

tritonparse reads comments in PTX that Triton writes and the CuTe DSL does not. They are added here at the ends of
existing lines, so that line numbers stay the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cutegen_lab.core.artifact import Build, Launch
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.problem import Workload
from cutegen_lab.exports.shapes import torch_name
from cutegen_lab.exports.subject import Subject

_FILE = "/candidate.py"  # path of the candidate's text in the PTX
_WARP = 32
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FILE_LINE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"\n]+)"', re.MULTILINE)


def trace(subject: Subject) -> dict[str, bytes]:
    """The trace. Python lines refer to the text that was compiled."""
    events = [event for workload, build in subject.builds for event in _events(subject, workload, build)]
    return {".ndjson": "".join(json.dumps(event) + "\n" for event in events).encode()}


def _events(subject: Subject, workload: Workload, build: Build) -> Iterator[dict[str, Any]]:
    for launch in build.plan.launches:
        metadata = _metadata(subject, build, launch)
        name = f"{launch.kernel}.ptx"
        source = {
            "file_path": _FILE, "start_line": 1, "end_line": len(subject.judged_source.splitlines()),
            "code": subject.judged_source,
        }  # fmt: skip
        payload = {
            "metadata": metadata, "file_path": {name: f"/{name}"}, "python_source": source,
            "file_content": {name: _marked(build.ptx, launch.kernel)},
        }  # fmt: skip
        yield {"event_type": "compilation", "pid": 0, "stack": [], "payload": payload}
        yield {
            "event_type": "launch", "pid": 0, "stack": [], "name": launch.kernel, "grid": list(launch.grid),
            "compilation_metadata": metadata, "extracted_args": _arguments(workload, build),
        }  # fmt: skip


def _metadata(subject: Subject, build: Build, launch: Launch) -> dict[str, Any]:
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
    arch = int("".join(filter(str.isdigit, build.arch)))
    return {
        "name": launch.kernel, "hash": sha256(build.cubin + launch.kernel.encode()), "backend_name": "cuda",
        "target": {"backend": "cuda", "arch": arch, "warp_size": _WARP}, "arch": build.arch,
        "num_warps": -(-threads // _WARP), "num_ctas": blocks, "cluster_dims": list(launch.cluster),
        "shared": launch.dynamic_smem_bytes + build.kernel(launch.kernel).static_smem_bytes,
        "cutegen_lab": list(subject.claims),
    }  # fmt: skip


def _arguments(workload: Workload, build: Build) -> dict[str, Any]:
    return {
        spec.name: {
            "type": "tensor", "shape": list(spec.shape), "dtype": f"torch.{torch_name(spec)}", "device": "cuda:0",
            "stride": list(spec.stride), "numel": spec.numel, "element_size": spec.dtype.itemsize,
            "is_contiguous": not spec.strides,
        }
        for spec in (*workload.tensors, *build.plan.workspace)
    }  # fmt: skip


def _marked(ptx: str, kernel: str) -> str:
    """PTX with the comments that tritonparse reads: begin and end of the function, and the source line of each
    ``.loc``."""
    lines, begun = ptx.split("\n"), False
    files = {found[1]: found[2] for found in _FILE_LINE.finditer(ptx)}
    entry = re.compile(rf"\.entry\s+{re.escape(kernel)}(?![\w$])")
    for number, line in enumerate(lines):
        if not begun and entry.search(line):
            begun = True
            lines[number] += f" // -- Begin function {kernel}"
        elif begun and line.startswith("}"):
            lines[number] += " // -- End function"
            break
        elif begun and (at := _LOC.match(line)) and at[1] in files and "//" not in line:
            lines[number] += f" // {files[at[1]]}:{at[2]}:{at[3]}"
    return "\n".join(lines)
