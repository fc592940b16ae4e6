"""``cutegen spec check|compile FILE``: the spec language on the command line; ``-`` is standard input."""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutegen_lab.cli.judge import OTHER_VERDICT
from cutegen_lab.cli.output import Output
from cutegen_lab.cli.run import told
from cutegen_lab.core.artifact import CompileFailure
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.roofline import speed_of_light, target_gpu
from cutegen_lab.loop.steps import resources
from cutegen_lab.session import Session
from cutegen_lab.views.units import microseconds

if TYPE_CHECKING:
    from cutegen_lab.cutespec.build import Kernel


def execute(arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.cutespec.build import compile_text

    kernel = compile_text(_read(arguments.file))
    facts = _report(kernel, output)
    if arguments.verb == "check":
        output.result(facts)
        return 0
    return _compile(kernel, facts, arguments, output)


def _read(file: str) -> str:
    """Text of the file. Raises InputError."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}", "Check the path.") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{file} is not UTF-8 text", "Give a spec: cutegen_lab/cutespec/grammar.lark has its grammar."
        ) from None


def _report(kernel: Kernel, output: Output) -> dict[str, Any]:
    problem = kernel.problem
    bound = speed_of_light(problem, target_gpu(kernel.arch))
    output.line(f"{problem.name}: {problem.workload.describe()}")
    wide = max(15, *map(len, kernel.config))
    output.line(f"  {'template':{wide}} {kernel.family}")
    for name, value in kernel.config.items():
        output.line(f"  {name:{wide}} {value}{'  (chosen by the template)' if name in kernel.chosen else ''}")
    output.line(f"  {'speed of light':{wide}} {microseconds(bound.time_us)} on {bound.gpu}, {bound.limiter} bound")
    return {
        "problem": problem.name, "template": kernel.family, "arch": kernel.arch, "config": dict(kernel.config),
        "chosen": list(kernel.chosen), "workloads": [w.describe() for w in problem.workloads],
        "reference": problem.source, "sol_us": bound.time_us,
    }  # fmt: skip


def _compile(kernel: Kernel, facts: dict[str, Any], arguments: argparse.Namespace, output: Output) -> int:
    """Writes the kernel's text to ``--out``, and reports the compiler's result for every workload of the spec."""
    from cutegen_lab.session.kernels import with_header, written_text
    from cutegen_lab.session.outputs import may_write, write_out

    out = Path(arguments.out or f"{kernel.problem.name}.py")
    problem = out.with_name(f"{out.stem}_problem.py")
    for path in (out, problem):
        may_write(path, arguments.file)
    with Session.open(arguments.workdir) as session:
        built = session.services.compiler().compile(
            kernel.source, kernel.config, kernel.problem.workloads, kernel.arch, lambda line: None, threading.Event()
        )
        if isinstance(built, CompileFailure):
            output.line(f"verdict: {built.verdict.value} ({built.reason})")
            output.result({**facts, "verdict": built.verdict.value, "reason": built.reason})
            return OTHER_VERDICT
        written = session.texts.written(
            kernel.problem, kernel.source, kernel.config, kernel.arch, general=arguments.general, say=told
        )
    uses = resources(built, kernel.problem.workload.name)
    output.line(f"  registers       {uses.registers} a thread")
    output.line(f"  shared memory   {uses.smem_bytes:,} B a block")
    by = f"# {kernel.problem.name}: {kernel.family}, from a spec, by cutegen-lab"
    write_out(out, written_text([by], written))
    write_out(problem, with_header([f"{by}: what it means in PyTorch"], problem_text(kernel)))
    output.line(f"{out} is the kernel; prove it by: cutegen judge {problem} {out}")
    output.result(
        {
            **facts,
            "kernel": str(out),
            "problem_file": str(problem),
            "registers": uses.registers,
            "smem_bytes": uses.smem_bytes,
        }
    )
    return 0


def problem_text(kernel: Kernel) -> str:
    """The PyTorch meaning of the spec, as a file for ``cutegen judge`` and ``cutegen run``."""
    workloads = [", ".join(str(t) for t in w.inputs) for w in kernel.problem.workloads]
    text = "; ".join(workloads)
    first, rest = kernel.problem.source.split("\n", 1)
    return f"{first}  # {text}\n{rest}"
