"""Declarations of a problem's inputs: ``--inputs`` text, ``inputs()``, or a comment at the end of the ``def`` line."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems.dtypes import from_torch
from cutegen_lab.problems.source import LoadedSource, describe

MAX_INPUT_BYTES = 16 << 30
_MAKERS = ("inputs", "get_inputs")
_LIKE = "bf16[4096,8192]"  # an example in messages
HOW = Hint(Advice.DECLARE_INPUTS)


@dataclass(frozen=True)
class Arguments:
    """One workload's positional arguments."""

    slots: tuple[Any, ...]
    """Tensor specs; for an argument that is not a tensor, its value."""

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        return tuple(s for s in self.slots if isinstance(s, TensorSpec))

    def filled(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """Arguments of a call, with ``tensors`` in the tensor slots."""
        rest = iter(tensors)
        return [next(rest) if isinstance(slot, TensorSpec) else slot for slot in self.slots]


def declared(loaded: LoadedSource, source: str, inputs_text: str) -> list[Arguments]:
    """Every workload's arguments, the main one first. Raises ProblemError."""
    if loaded.kind == "kernelbench":
        if inputs_text:
            raise ProblemError("this KernelBench file has its own get_inputs()", Hint(Advice.DROP_INPUTS))
        workloads = [_from_values(_call(loaded, "get_inputs"), loaded.parameter_names)]
    else:
        maker = next((name for name in _MAKERS if callable(loaded.namespace.get(name))), "")
        if inputs_text:
            workloads = _from_text(inputs_text, loaded.parameter_names)
        elif maker:
            value = _call(loaded, maker)
            several = isinstance(value, list) and value and all(isinstance(v, list | tuple | dict) for v in value)
            workloads = [_from_values(v, loaded.parameter_names) for v in (value if several else [value])]
        else:
            workloads = _from_comment(_comment(source), loaded.parameter_names)
    for arguments in workloads:
        total = sum(t.storage_bytes for t in arguments.tensors)
        if total > MAX_INPUT_BYTES:
            limit = f"{MAX_INPUT_BYTES >> 30} GiB"
            raise ProblemError(f"the inputs take {total / 2**30:.1f} GiB; the limit is {limit}", "Use smaller shapes.")
        if not arguments.tensors:
            raise ProblemError("the reference takes no tensor", HOW)
    return workloads


def _comment(source: str) -> str:
    """The comment on the line that ends the signature of ``def reference``; empty if there is none."""
    words: list[str] = []
    depth, body = 0, False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.string == "def" and token.start[1] == 0:
            words, depth, body = [], 0, False
        words = [*words, token.string][:2]
        if words != ["def", "reference"][: len(words)]:
            continue
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        body = body or (token.string == ":" and depth == 0)
        if body and token.type == tokenize.COMMENT:
            return token.string.lstrip("# ")
        if body and token.type == tokenize.NEWLINE:
            return ""
    return ""


def _from_comment(comment: str, names: list[str]) -> list[Arguments]:
    signature = f"reference({', '.join(names)})"
    missing = f"the inputs of {signature} are not declared"
    if "[" not in comment:
        declared = ", ".join(f"{name}: {_LIKE if at == 0 else '…'}" for at, name in enumerate(names))
        raise ProblemError(missing, Hint(Advice.DECLARE_ON_LINE, (f"def {signature}:  # {declared}",)))
    try:
        return _from_text(comment, names)
    except ProblemError as error:
        raise ProblemError(f"{missing}: in the comment on its line, {error.message}", HOW) from None


def _from_text(text: str, names: list[str]) -> list[Arguments]:
    """``;`` separates workloads, or, if no argument is declared twice, declarations of one workload. Raises
    ProblemError."""
    parts = [_declarations(part) for part in text.split(";") if part.strip()]
    every = [spec.name for part in parts for spec in part]
    if len(parts) > 1 and len({*every}) == len(every):
        parts = [[spec for part in parts for spec in part]]
    return [_one_workload(part, names, len(parts)) for part in parts]


def _declarations(text: str) -> list[TensorSpec]:
    try:
        return [TensorSpec.parse(part) for part in re.split(r",(?![^\[]*\]|[^(]*\))", text.strip().rstrip(","))]
    except ValueError as error:
        raise ProblemError(str(error), HOW) from None


def _one_workload(given: list[TensorSpec], names: list[str], workloads: int) -> Arguments:
    specs = {spec.name: spec for spec in given}
    if len(specs) < len(given):
        twice = next(s.name for n, s in enumerate(given) if s.name in (earlier.name for earlier in given[:n]))
        raise ProblemError(f"input {twice!r} is declared twice", "Separate workloads with ';'.")
    if unknown := [n for n in specs if n not in names]:
        raise ProblemError(
            f"input {unknown[0]!r} is not an argument of reference({', '.join(names)})",
            "Use the names of its arguments.",
        )
    if missing := [n for n in names if n not in specs]:
        where = " in each of the workloads, which ';' separates" if workloads > 1 else ""
        raise ProblemError(
            f"no input is declared for argument {missing[0]!r}{where}", f"Add it, as ', {missing[0]}: f32[128]'."
        )
    return Arguments(tuple(specs[n] for n in names))


def _from_values(value: Any, names: list[str]) -> Arguments:
    if isinstance(value, torch.Tensor):
        value = (value,)
    if isinstance(value, dict):
        if missing := [n for n in names if n not in value]:
            raise ProblemError(f"inputs() gives nothing for argument {missing[0]!r}", "Return one entry per argument.")
        value = [value[n] for n in names]
    if not isinstance(value, list | tuple):
        raise ProblemError(f"inputs() returned a {type(value).__name__}", "Return a tuple of tensors.")
    if len(value) > len(names):
        raise ProblemError(
            f"{len(value)} inputs for the {len(names)} arguments of the reference", "Return one per argument."
        )
    slots: list[Any] = []
    for name, item in zip(names, value, strict=False):
        if isinstance(item, torch.Tensor):
            slots.append(_spec(name, item))
        elif isinstance(item, str) and "[" in item:  # text that declares a tensor, with a rule for its integers
            slots.append(_described(name, item))
        else:
            slots.append(item)
    return Arguments(tuple(slots))


def _spec(name: str, item: torch.Tensor) -> TensorSpec:
    dtype = from_torch(item.dtype, f"input {name!r}")
    try:
        return TensorSpec(name, dtype, tuple(item.shape), tuple(item.stride()))
    except ValueError:
        what = f"input {name!r} has several elements at one address (strides {tuple(item.stride())})"
        raise ProblemError(what, "Do not expand it, or call .contiguous() on it.") from None


def _described(name: str, text: str) -> TensorSpec:
    try:
        return TensorSpec.parse(f"{name}: {text}")
    except ValueError as error:
        raise ProblemError(str(error), f"Give {name} as 'i32[9] sorted to q[0]', or as a tensor.") from None


def _call(loaded: LoadedSource, name: str) -> Any:
    """Calls the function ``name`` that makes inputs, with fake tensors, so that nothing is allocated."""
    try:
        with FakeTensorMode():
            return loaded.namespace[name]()
    except (Exception, SystemExit) as error:
        raise ProblemError(f"{name}() raises {describe(error, loaded.filename)}", "Fix it and run again.") from error
