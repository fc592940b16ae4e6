"""Executes an analyst's source (trusted, unlike a candidate's) and explains its errors."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import linecache
import math
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal

import torch

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.syntax import parse_problem

_MODULE = "cutegen_problem_"
KERNELBENCH = ("Model", "get_inputs", "get_init_inputs")


@dataclass(frozen=True)
class LoadedSource:
    """Definitions in a problem's text."""

    kind: Literal["reference", "kernelbench"]
    """Function or KernelBench Model."""
    namespace: dict[str, Any]
    """The executed module's names."""
    filename: str
    """Name of the text in tracebacks."""
    reference: Callable[..., Any]
    """The reference function, or the Model's forward."""
    tf32: bool = False
    """Whether the text allows TF32 for matrix products at its top, as with
    ``torch.set_float32_matmul_precision("high")``."""
    tf32_convolutions: bool = True
    """Whether the text keeps PyTorch's default, which allows TF32 for convolutions."""

    @property
    def parameter_names(self) -> list[str]:
        names = list(inspect.signature(self.reference).parameters)
        return names[1:] if self.kind == "kernelbench" else names

    @property
    def deterministic(self) -> bool:
        """Whether a kernel must return the same bits each time; ``deterministic = False`` in the text says no
        (floating-point atomics). Raises ProblemError for any other value than True or False."""
        value = self.namespace.get("deterministic", True)
        if not isinstance(value, bool):
            raise ProblemError(f"deterministic is {value!r}", "Write `deterministic = False`, or leave it out.")
        return value


def load(source: str) -> LoadedSource:
    """Raises ProblemError for an empty cell, a syntax error, code that raises, or a missing reference."""
    filename = f"<problem {hashlib.sha256(source.encode()).hexdigest()[:8]}>"
    tree = parse_problem(source, filename)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    module = ModuleType(_MODULE + filename[len("<problem ") : -1])
    sys.modules[module.__name__] = module  # torch.compile looks a function's globals up through its module
    namespace = module.__dict__
    namespace.update(torch=torch, nn=torch.nn, F=torch.nn.functional, math=math)
    with default_precision():
        try:
            exec(compile(tree, filename, "exec"), namespace)  # noqa: S102 - the analyst's own code, in the analyst's own process
        except (Exception, SystemExit) as error:  # the source may call sys.exit()
            raise ProblemError(f"the source raises {describe(error, filename)}", "Fix it and run again.") from error
        return replace(
            _classify(namespace, filename),
            tf32=tf32_allowed(),
            tf32_convolutions=torch.backends.cudnn.conv.fp32_precision == "tf32",
        )


@contextlib.contextmanager
def default_precision() -> Iterator[None]:
    """PyTorch's default precision inside the block (fp32 products exact, TF32 convolutions), restored afterwards."""
    gpu, cpu, cudnn = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul, torch.backends.cudnn
    before = gpu.fp32_precision, cpu.fp32_precision
    convolutions = cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32 = True
    try:
        yield
    finally:  # also by the older name: PyTorch does not return settings made by one name alone
        torch.set_float32_matmul_precision("high" if before[0] == "tf32" else "highest")
        gpu.fp32_precision, cpu.fp32_precision = before
        cudnn.allow_tf32 = "tf32" in convolutions
        cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision = convolutions


def tf32_allowed() -> bool:
    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def is_source(filename: str) -> bool:
    """Whether ``filename`` is the name of a problem's text in tracebacks."""
    return filename.startswith("<problem ")


def describe(error: BaseException, filename: str) -> str:
    """``ValueError at line 3: message`` with the innermost line of the problem's own source."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == filename]
    place = f" at line {lines[-1]}" if lines else ""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}{place}" + (f": {first}" if first else "")


def _classify(namespace: dict[str, Any], filename: str) -> LoadedSource:
    reference = namespace.get("reference")
    if callable(reference):
        return LoadedSource("reference", namespace, filename, reference)
    if all(callable(namespace.get(name)) for name in KERNELBENCH):
        return LoadedSource("kernelbench", namespace, filename, namespace["Model"].forward)
    mine = [n for n, v in namespace.items() if callable(v) and getattr(v, "__module__", "").startswith(_MODULE)]
    seen = f"it defines {', '.join(mine)}" if mine else "it defines no function"
    action = "Name the function `reference`, or give a KernelBench file (Model, get_inputs, get_init_inputs)."
    raise ProblemError(f"no reference found: {seen}", action)
