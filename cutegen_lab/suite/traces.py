"""Problems in the formats of FlashInfer-Bench (flashinfer-trace) and SOL-ExecBench, as a problem's text.

Both have a definition (JSON: axes, inputs, outputs, and PyTorch code with a function ``run``) and workloads (JSON
lines, each with the sizes of the variable axes). flashinfer-trace keeps them in ``definitions/OP_TYPE/NAME.json`` and
``workloads/OP_TYPE/NAME.jsonl``; SOL-ExecBench in ``definition.json`` and ``workload.jsonl`` of one folder.

The judge draws inputs by itself, from shapes and types. A problem is refused whose inputs need more than that:
integers that were recorded, and inputs from a function of the definition.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError, model_validator

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.syntax import parse_problem
from cutegen_lab.session.kernels import read_text_file
from cutegen_lab.suite.axis_sizes import axis_size

MOST_WORKLOADS = 3
"""Maximum number of workloads of a problem: each is compiled and checked by itself."""
_WRITE_IT = "Write it as a problem of your own, whose inputs() gives such values."
_Parsed = TypeVar("_Parsed", bound=BaseModel)


class _Constant(BaseModel):
    type: Literal["const"]
    value: int


class _Variable(BaseModel):
    type: Literal["var"]


class _Expression(BaseModel):
    type: Literal["expr"]
    expression: str


class _Tensor(BaseModel):
    """``shape``: names of axes; None for a number."""

    shape: tuple[str, ...] | None
    dtype: str


class Definition(BaseModel):
    """What a problem computes. ``reference``: Python with a function ``run`` of the inputs."""

    name: str
    axes: dict[str, Annotated[_Constant | _Variable | _Expression, Field(discriminator="type")]]
    inputs: dict[str, _Tensor]
    outputs: dict[str, _Tensor]
    reference: str
    custom_inputs_entrypoint: str | None = None


class _Source(BaseModel):
    """Where an input comes from; ``value`` is that of a number."""

    type: str
    value: JsonValue = None


class _Workload(BaseModel):
    axes: dict[str, int]
    inputs: dict[str, _Source]


class _Line(BaseModel):
    """A line of a file of workloads: a workload (SOL-ExecBench), or a trace that contains one (flashinfer-trace)."""

    workload: _Workload

    @model_validator(mode="before")
    @classmethod
    def _wrapped(cls, data: Any) -> Any:
        return {"workload": data} if isinstance(data, dict) and "workload" not in data else data


def is_definition(path: Path) -> bool:
    """Whether a file of a folder is a definition, by its place."""
    return path.suffix == ".json" and (path.name == "definition.json" or "definitions" in path.parts)


def problem_name(path: Path) -> str:
    """The name under which a definition's problem is listed, as a path."""
    if path.name != "definition.json":
        return path.with_suffix("").as_posix()
    return path.parent.as_posix() if path.parent.name else path.resolve().parent.name


def problem_text(path: Path) -> tuple[str, str]:
    """Name and text of the problem that the definition ``path`` describes, at the largest of its workloads and at most
    two smaller ones. Raises ProblemError that says what is wrong or not supported, InputError for a file that
    cannot be read."""
    definition = _parsed(Definition, read_text_file(path), str(path))
    if entry := definition.custom_inputs_entrypoint:
        raise ProblemError(f"{definition.name} takes its inputs from its function {entry}()", _WRITE_IT)
    if number := next((name for name, spec in definition.outputs.items() if spec.shape is None), None):
        raise ProblemError(f"output {number!r} of {definition.name} is a number", "Its outputs must be tensors.")
    workloads = _workloads(path, definition)
    numbers = [_numbers(definition, workload) for workload in workloads]
    alike = [workload for workload, its in zip(workloads, numbers, strict=True) if its == numbers[0]]
    return definition.name, _text(definition, _chosen(definition, alike), numbers[0])


def _parsed(model: type[_Parsed], text: str, where: str) -> _Parsed:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the text"
        raise ProblemError(f"{where}: {place}: {first['msg']}", "Compare it with the benchmark's schema.") from None


def _workloads(path: Path, definition: Definition) -> list[_Workload]:
    """The workloads of the definition at ``path``. One without variable axes needs none."""
    place = _place_of_workloads(path)
    if not place.is_file():
        if any(isinstance(axis, _Variable) for axis in definition.axes.values()) or _scalars(definition):
            raise ProblemError(f"no workloads of {definition.name}: {place} does not exist", "Add the file.")
        return [_Workload(axes={}, inputs={})]
    lines = [(number, line) for number, line in enumerate(read_text_file(place).splitlines(), 1) if line.strip()]
    found = [_parsed(_Line, line, f"{place}, line {number}").workload for number, line in lines]
    if not found:
        raise ProblemError(f"{place} has no workload", "Add one.")
    return found


def _place_of_workloads(path: Path) -> Path:
    if path.name == "definition.json":
        return path.with_name("workload.jsonl")
    parts = list(path.parts)
    for at, part in reversed([*enumerate(parts)]):
        if part == "definitions":
            parts[at] = "workloads"
            break
    return Path(*parts).with_suffix(".jsonl")


def _scalars(definition: Definition) -> list[str]:
    """Inputs that are numbers."""
    return [name for name, spec in definition.inputs.items() if spec.shape is None]


def _numbers(definition: Definition, workload: _Workload) -> dict[str, JsonValue]:
    """Values of the inputs that are numbers. Raises ProblemError for one without a value, and for a tensor of integers
    that were recorded."""
    for name, spec in definition.inputs.items():
        source = workload.inputs.get(name)
        if spec.shape is None and (source is None or source.type != "scalar"):
            raise _lacks(definition, f"value for {name!r}")
        if spec.shape is not None and source is not None and source.type not in ("random", "safetensors"):
            raise ProblemError(f"input {name!r} of {definition.name} is of type {source.type!r}", _WRITE_IT)
        if source is not None and source.type == "safetensors" and not _dtype(definition, name, spec).is_float:
            raise ProblemError(f"input {name!r} of {definition.name} has recorded integers", _WRITE_IT)
    return {name: workload.inputs[name].value for name in _scalars(definition)}


def _chosen(definition: Definition, workloads: Iterable[_Workload]) -> list[str]:
    """Inputs of the largest workload, of the smallest and of the one in the middle, as declarations."""
    found = {
        _declared(definition, sizes): _bytes(definition, sizes) for sizes in (_sizes(definition, w) for w in workloads)
    }
    largest_first = sorted(found, key=lambda text: -found[text])
    count = len(largest_first)
    places = range(count) if count <= MOST_WORKLOADS else (0, count // 2, count - 1)
    return [largest_first[place] for place in places]


def _sizes(definition: Definition, workload: _Workload) -> dict[str, int]:
    """Size of each axis. Raises ProblemError for an axis without a value."""
    sizes: dict[str, int] = {}
    for name, axis in definition.axes.items():
        if isinstance(axis, _Constant):
            sizes[name] = axis.value
        elif isinstance(axis, _Variable):
            if name not in workload.axes:
                raise _lacks(definition, f"size of axis {name!r}")
            sizes[name] = workload.axes[name]
    for name, axis in definition.axes.items():  # in their order: an expression may use an earlier one
        if isinstance(axis, _Expression):
            sizes[name] = axis_size(axis.expression, sizes)
    return sizes


def _lacks(definition: Definition, what: str) -> ProblemError:
    return ProblemError(f"a workload of {definition.name} has no {what}", "Add it to the workload.")


def _shapes(definition: Definition, sizes: Mapping[str, int]) -> Iterator[tuple[str, DType, list[int]]]:
    for name, spec in definition.inputs.items():
        if spec.shape is None:
            continue
        if unknown := [axis for axis in spec.shape if axis not in sizes]:
            raise ProblemError(
                f"input {name!r} of {definition.name} has an unknown axis {unknown[0]!r}", "Add it to axes."
            )
        yield name, _dtype(definition, name, spec), [sizes[axis] for axis in spec.shape]


def _dtype(definition: Definition, name: str, spec: _Tensor) -> DType:
    try:
        return DType.parse(spec.dtype)
    except ValueError as error:
        raise ProblemError(f"input {name!r} of {definition.name}: {error}") from None


def _bytes(definition: Definition, sizes: Mapping[str, int]) -> int:
    return sum(math.prod(shape) * dtype.itemsize for _, dtype, shape in _shapes(definition, sizes))


def _declared(definition: Definition, sizes: Mapping[str, int]) -> str:
    """``x: bf16[8,4096], weight: bf16[4096]``."""
    found = _shapes(definition, sizes)
    return ", ".join(f"{name}: {dtype.value}[{','.join(map(str, shape))}]" for name, dtype, shape in found)


def _text(definition: Definition, declarations: Sequence[str], numbers: Mapping[str, JsonValue]) -> str:
    """The definition's code, and ``reference``, which calls its ``run`` with the tensors and ``numbers``."""
    tensors = [name for name, spec in definition.inputs.items() if spec.shape is not None]
    given = {name: repr(value) for name, value in numbers.items()}
    call = f"run({', '.join(given.get(name, name) for name in definition.inputs if name in given or name in tensors)})"
    if _returns_dict(definition):
        call = f"[*map({call}.get, {[*definition.outputs]})]"
    declared = "; ".join(declarations)
    return (
        f"{definition.reference.rstrip()}\n\n\ndef reference({', '.join(tensors)}):  # {declared}\n    return {call}\n"
    )


def _returns_dict(definition: Definition) -> bool:
    """Whether ``run`` returns its outputs by name. Raises ProblemError for code without ``run``."""
    tree = parse_problem(definition.reference)
    run = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"), None)
    if run is None:
        raise ProblemError(f"the reference of {definition.name} has no function run()", "Add it.")
    return any(isinstance(node, ast.Return) and isinstance(node.value, ast.Dict) for node in ast.walk(run))
