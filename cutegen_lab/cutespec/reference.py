"""A spec as a problem: its PyTorch reference and its workloads."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.cutespec.form import Apply, Dim, Expr, Input, Name, Number, Place, Spec, Value
from cutegen_lab.cutespec.functions import call, folded
from cutegen_lab.problems import read_text

_TORCH = {DType.BF16: "torch.bfloat16", DType.F16: "torch.float16", DType.F32: "torch.float32",
          DType.F64: "torch.float64", DType.I32: "torch.int32", DType.I64: "torch.int64", DType.I8: "torch.int8",
          DType.BOOL: "torch.bool"}  # fmt: skip
_IN_TF32 = ['torch.set_float32_matmul_precision("high")', ""]
_TAKEN = {"torch", "F", "math", "reference", "inputs"}
_AT_LINE = re.compile(r" at line (\d+)")


def problem_of(spec: Spec) -> Problem:
    """The problem that ``spec`` describes. Raises SpecError."""
    problem = _read(spec)
    _check_results(spec, problem, spec.outputs)
    if any(value.dims is not None for value in spec.tmps):
        _check_results(spec, _read(spec, tmps=True), (*spec.tmps, *spec.outputs))
    return problem


def _read(spec: Spec, tmps: bool = False) -> Problem:
    """The problem that PyTorch makes of the reference's text. Raises SpecError."""
    source, places = reference(spec, tmps)
    inputs = "; ".join(", ".join(_declared(i, sizes) for i in spec.inputs) for sizes in spec.sizes)
    try:
        return read_text(source, name=spec.name, inputs_text=inputs)
    except ProblemError as error:
        found = _AT_LINE.search(error.message)
        place = places.get(int(found[1]), spec.inputs[0].place) if found else spec.inputs[0].place
        what = _AT_LINE.sub("", error.message).removeprefix("the reference ")
        said = f"PyTorch {what}" if what.startswith("raises ") else what
        raise place.error(
            said, "Correct the line, or the tensors it takes." if said != what else error.action
        ) from error


def reference(spec: Spec, tmps: bool = False) -> tuple[str, dict[int, Place]]:
    """(text of the PyTorch reference, line of the text → place in the spec). ``tmps``: the reference also returns the
    values stored between steps, before its results. Raises SpecError."""
    names = _Names(spec)
    arguments = ", ".join(i.name for i in spec.inputs)
    lines = [*_IN_TF32] * spec.tf32 + [f"def reference({arguments}):"]
    places = dict.fromkeys(range(1, len(lines) + 1), spec.inputs[0].place)
    for step, value in ((s, v) for s in spec.steps for v in s.values):
        names.step = step.name
        text = names.text(value.expr)
        if value.dtype is not None and value.dtype.is_float8:
            raise value.place.error(
                f"{value.name} is {value.dtype.value}, which only inputs may be", "Write bf16, say."
            )
        if value.dtype is not None:
            text = (
                f"({text}).to({_TORCH[value.dtype]})" if not text.endswith(")") else f"{text}.to({_TORCH[value.dtype]})"
            )
        names.define(value)
        lines.append(f"    {value.name} = {text}")
        places[len(lines)] = value.place
    results = [*(spec.tmps if tmps else ()), *spec.outputs]
    lines.append(f"    return {', '.join(v.name for v in results)}")
    return "\n".join(lines) + "\n", places


class _Names:
    """Names defined so far in ``step``; ``let`` names are local to their step."""

    step = ""

    def __init__(self, spec: Spec) -> None:
        if not spec.inputs:
            raise Place(1, 1).error("the kernel has no inputs", "Write a line such as: in x: bf16[4096, 1024].")
        if not spec.outputs:
            raise spec.inputs[-1].place.error("the kernel has no result", "Write a line such as: out y: bf16 = exp(x).")
        self._known: dict[str, Place] = {}
        self._lets: dict[str, str] = {}  # step of each name
        self._numbers: dict[str, float] = {}  # names of numbers
        # Names of fp8 inputs, which torch cannot add: they are converted to fp32.
        self._widened = {given.name for given in spec.inputs if given.dtype.is_float8}
        for given in spec.inputs:
            self._add(given.name, given.place)

    def define(self, value: Value) -> None:
        self._add(value.name, value.place)
        number = self.number(value.expr)
        if value.kind == "let":
            self._lets[value.name] = self.step
            if number is not None:
                self._numbers[value.name] = number
        elif number is not None:
            raise value.expr.place.error(f"{value.name} is a number, not a tensor", "Compute it from an input.")

    def _add(self, name: str, place: Place) -> None:
        if keyword.iskeyword(name) or name in _TAKEN or name.startswith("__"):
            raise place.error(f"{name!r} cannot be a name", "Choose another.")
        if before := self._known.get(name):
            raise place.error(f"{name} is defined twice", f"It is defined first at line {before.line}.")
        self._known[name] = place

    def text(self, expr: Expr) -> str:
        """PyTorch text of ``expr``. Raises SpecError."""
        if isinstance(expr, Number):
            return repr(expr.value)
        if isinstance(expr, Apply):
            texts = [self.text(argument) for argument in expr.arguments]
            return call(expr, texts, [self.number(argument) for argument in expr.arguments])
        assert isinstance(expr, Name)
        if expr.name not in self._known:
            hints = (did_you_mean(expr.name, self._known), f"So far there are: {', '.join(self._known)}.")
            raise expr.place.error(f"{expr.name} is not defined here", " ".join(filter(None, hints)))
        if (owner := self._lets.get(expr.name, self.step)) != self.step:
            raise expr.place.error(
                f"{expr.name} is a value inside the step {owner}",
                f"Write `tmp {expr.name}: DTYPE = …` there, so that it goes through memory.",
            )
        return f"{expr.name}.float()" if expr.name in self._widened else expr.name

    def number(self, expr: Expr) -> float | None:
        """Value of ``expr`` if it contains no tensor. Raises SpecError if fp64 cannot represent it."""
        if isinstance(expr, Number):
            return float(expr.value)
        if isinstance(expr, Name):
            return self._numbers.get(expr.name)
        return folded(expr, [self.number(argument) for argument in expr.arguments])


def _declared(given: Input, sizes: Mapping[str, int]) -> str:
    shape = tuple(_size(dim, sizes, given.place) for dim in given.dims)
    if given.strides and len(given.strides) != len(given.dims):
        raise given.place.error(f"{given.name} has {len(given.dims)} dimensions and {len(given.strides)} strides")
    try:
        TensorSpec(given.name, given.dtype, shape, given.strides)
    except ValueError as error:
        raise given.place.error(str(error), "Leave out the strides of a row-major tensor.") from None
    strides = f":({','.join(map(str, given.strides))})" if given.strides else ""
    return f"{given.name}: {given.dtype.value}[{','.join(map(str, shape))}]{strides}"


def _size(dim: Dim, sizes: Mapping[str, int], place: Place) -> int:
    if isinstance(dim, int):
        if not 0 < dim < 1 << 31:
            raise place.error(f"a size of {dim}", "Sizes are 1 to 2147483647.")
        return dim
    if dim not in sizes:
        raise place.error(f"the size of {dim} is not given", f"Add a line such as: size {dim}=4096.")
    return sizes[dim]


def check_tensors(spec: Spec, mine: Workload, asked: Workload) -> None:
    """Checks that the tensors of ``mine``, a workload of a spec, equal those of ``asked`` except for their names.
    Raises SpecError."""
    kinds: list[tuple[str, Sequence[TensorSpec], Sequence[TensorSpec], Sequence[Input | Value]]] = [
        ("in", mine.inputs, asked.inputs, spec.inputs),
        ("out", mine.outputs, asked.outputs, spec.outputs),
    ]
    for kind, given, wanted, written in kinds:
        if len(given) != len(wanted):
            raise written[-1].place.error(
                f"the spec has {len(given)} `{kind}`, but the problem has {len(wanted)}: {', '.join(map(str, wanted))}",
                "Declare the problem's tensors, in the same order.",
            )
        for number, (ours, theirs, line) in enumerate(zip(given, wanted, written, strict=True), 1):
            if (ours.dtype, ours.shape, ours.stride) != (theirs.dtype, theirs.shape, theirs.stride):
                raise line.place.error(
                    f"`{kind}` {number} is {ours}, but the problem has {theirs}", "Declare the same."
                )


def _check_results(spec: Spec, problem: Problem, written: Sequence[Value]) -> None:
    """Checks the shape of every result of ``problem`` against its declaration in ``written``."""
    for workload, sizes in zip(problem.workloads, spec.sizes, strict=True):
        for value, found in zip(written, workload.outputs, strict=True):
            if value.dims is None:
                continue
            wanted = tuple(_size(dim, sizes, value.place) for dim in value.dims)
            if wanted != found.shape:
                raise value.place.error(
                    f"{value.name} is declared as {_shape(wanted)}, but its expression gives {_shape(found.shape)}"
                )


def _shape(sizes: Sequence[int]) -> str:
    return f"[{', '.join(map(str, sizes))}]"
