"""The table of export formats, from which the command line, the magic and the widget's menu are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.exports.subject import Subject

Files = Mapping[str, bytes]
"""Contents by suffix of the file's name, which the caller chooses; a key without a leading dot is a whole name."""


@dataclass(frozen=True)
class Format:
    """One export format."""

    name: str
    """Name, as ``--format`` takes it."""
    suffix: str
    """Suffix of the file's name."""
    help: str
    """A short description, as a noun phrase."""
    needs: str
    """Requirements of its user."""
    of: Literal["kernel", "run"] = "kernel"
    """Whether it holds one kernel or the whole run."""
    made_by: str = ""
    """``module:function`` in this package that makes it from a :class:`Subject`; empty if the session does."""
    machine_code: bool = False
    """Whether it has machine code, which is not exported for a run read from a file."""

    def make(self, subject: Subject) -> Files:
        """The files of the format. Raises InputError for a kernel that it does not support."""
        module, _, function = self.made_by.partition(":")
        made: Callable[[Subject], Any] = getattr(import_module(f"cutegen_lab.exports.{module}"), function)
        files: Files = made(subject)
        return files


_ALL = (
    Format("kernel", ".py", "the kernel", "nvidia-cutlass-dsl"),
    Format(
        "torch-op", ".py", "the kernel as an operator of torch.library, with its machine code in the file",
        "torch and the GPU it was compiled for", made_by="torch_op:torch_op", machine_code=True,
    ),
    Format(
        "wheel", ".whl", "the kernel as a package for pip: the operator, the text and tests",
        "torch and the GPU it was compiled for", made_by="wheel:wheel", machine_code=True,
    ),
    Format(
        "object", ".o", "the machine code as an object file, with a C header that launches it",
        "a C compiler and the CUDA driver", made_by="c_object:c_object", machine_code=True,
    ),
    Format(
        "kernelbench", ".py", "the kernel as KernelBench's ModelNew", "torch, nvidia-cutlass-dsl, a GPU",
        made_by="model_new:model_new",
    ),
    Format(
        "flashinfer-bench", ".json", "the kernel as a solution of flashinfer-bench",
        "flashinfer-bench and a definition of the problem's name", made_by="solutions:flashinfer_bench",
    ),
    Format(
        "sol-execbench", ".json", "the kernel as a solution of SOL-ExecBench",
        "SOL-ExecBench and a definition of the problem's name", made_by="solutions:sol_execbench",
    ),
    Format(
        "tritonparse", ".ndjson", "PTX beside the lines of the kernel, as a trace of tritonparse", "tritonparse",
        made_by="tritonparse:trace",
    ),
    Format("page", ".html", "a page of the run", "a browser", of="run"),
    Format("view", ".cutegen-run.json", "the run, for JupyterLab", "JupyterLab with cutegen-lab", of="run"),
    Format("run", ".cutegen", "the whole run, to send", "cutegen-lab", of="run"),
)  # fmt: skip
FORMATS: Mapping[str, Format] = {each.name: each for each in _ALL}
"""By name, in the order they are listed."""


def format_of(name: str, file_name: str) -> Format:
    """The format called ``name`` or, if that is empty, the first whose suffix ``file_name`` has. Raises InputError if
    there is none, and if the file's name has another suffix."""
    if name and name not in FORMATS:
        raise InputError(f"no format {name!r}", did_you_mean(name, FORMATS) or f"Formats: {', '.join(FORMATS)}.")
    if name:
        found = FORMATS[name]
        if not file_name.endswith(found.suffix):
            raise InputError(f"{file_name!r} is no name for the format {name}", f"Let it end in {found.suffix}.")
        return found
    by_suffix = dict[str, Format]()
    for each in _ALL:
        if each.suffix != ".json":  # which two formats have
            by_suffix.setdefault(each.suffix, each)
    # The longest suffix decides: .cutegen-run.json is not .json.
    for suffix in sorted(by_suffix, key=len, reverse=True):
        if file_name.endswith(suffix):
            return by_suffix[suffix]
    *some, last = (f"{s} ({f.help})" for s, f in by_suffix.items())
    raise InputError(
        f"cannot tell from the name {file_name!r} what to write",
        f"Name a file {', '.join(some)} or {last}, or a format too: {', '.join(FORMATS)}.",
    )
