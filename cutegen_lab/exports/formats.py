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
"""File contents by suffix (with its dot; the caller chooses the stem), or by whole file name (no leading dot)."""


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
    """What its user needs."""
    of: Literal["kernel", "run"] = "kernel"
    """Whether it holds one kernel or the whole run."""
    made_by: str = ""
    """``module:function`` in this package that makes its files from a :class:`Subject`; empty if the session makes
    them."""
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
"""All formats by name, in the order in which they are listed."""


def format_of(name: str, file_name: str) -> Format:
    """The format called ``name`` or, if that is empty, the first whose suffix ``file_name`` has. Raises InputError if
    there is none, or if ``file_name`` does not have the suffix of the format called ``name``."""
    if name and name not in FORMATS:
        raise InputError(f"no format {name!r}", did_you_mean(name, FORMATS) or f"Formats: {', '.join(FORMATS)}.")
    if name:
        found = FORMATS[name]
        if not file_name.endswith(found.suffix):
            raise InputError(f"{file_name!r} is not a file name of the format {name}", f"Let it end in {found.suffix}.")
        return found
    by_suffix = dict[str, Format]()
    for each in _ALL:
        if each.suffix != ".json":  # two formats have this suffix
            by_suffix.setdefault(each.suffix, each)
    # The longest suffix decides: .cutegen-run.json is not .json.
    for suffix in sorted(by_suffix, key=len, reverse=True):
        if file_name.endswith(suffix):
            return by_suffix[suffix]
    *some, last = (f"{s} ({f.help})" for s, f in by_suffix.items())
    raise InputError(
        f"cannot tell from the name {file_name!r} what to write",
        f"Let the file name end in {', '.join(some)} or {last}, or give a format too: {', '.join(FORMATS)}.",
    )
