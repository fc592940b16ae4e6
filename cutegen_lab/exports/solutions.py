"""A kernel as a solution of flashinfer-bench (0.1) and of SOL-ExecBench: JSON with its sources and how to call it.

Both schemas are pydantic models of a Solution: name, definition, author, spec and sources. They differ in the spec's
language (``language: "python"``; ``languages: ["cute_dsl"]``) and in the names of target hardware.
"""

from __future__ import annotations

import json
from typing import Any

from cutegen_lab.exports.dsl_text import dsl_module
from cutegen_lab.exports.header import under
from cutegen_lab.exports.subject import Subject

_AUTHOR = "cutegen-lab"
_RUN = '''_run = _kernel().into


def run({arguments}):
    """Writes the outputs, which are the last arguments."""
    _run([{inputs}], [{outputs}])
'''


def flashinfer_bench(subject: Subject) -> dict[str, bytes]:
    """The solution. It refers to a definition with the problem's name, which the trace set must contain."""
    spec = {"language": "python", "target_hardware": [subject.gpu], "dependencies": ["nvidia-cutlass-dsl"]}
    return _solution(subject, spec)


def sol_execbench(subject: Subject) -> dict[str, bytes]:
    """The solution, for the local GPU (its schema has a name for B200 only)."""
    hardware = ["B200", "LOCAL"] if subject.gpu == "B200" else ["LOCAL"]
    return _solution(subject, {"languages": ["cute_dsl"], "target_hardware": hardware, "dependencies": []})


def _solution(subject: Subject, spec: dict[str, Any]) -> dict[str, bytes]:
    inputs = subject.arguments
    outputs = tuple(f"output_{i}" for i, _ in enumerate(subject.problem.workload.outputs))
    run = _RUN.format(arguments=", ".join((*inputs, *outputs)), inputs=", ".join(inputs), outputs=", ".join(outputs))
    docstring = (
        f"Kernel {subject.candidate_id} of the cutegen-lab run {subject.run_id}. It compiles at the first call.\n"
    )
    data = {
        "name": f"{subject.name}_{subject.key}",
        "definition": subject.name,
        "author": _AUTHOR,
        "description": "\n".join(subject.claims),
        "spec": {"entry_point": "main.py::run", "destination_passing_style": True, **spec},
        "sources": [{"path": "main.py", "content": under(subject.claims, dsl_module(subject, docstring, [run]))}],
    }
    return {".json": (json.dumps(data, indent=1) + "\n").encode()}
