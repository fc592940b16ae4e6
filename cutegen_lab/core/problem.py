"""What is to be computed: a reference, its workloads and how exact an answer must be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.hashing import canonical_json, sha256

_NUMBERS = r"\s*(?:\d[\d_]*\s*(?:,\s*\d[\d_]*\s*)*,?\s*)?"
_RULE = r"(below|sorted\s+to|distinct\s+below)\s+(\d[\d_]*|([A-Za-z_]\w*)\s*\[\s*(\d+)\s*\])\s*"
_SPEC = re.compile(
    rf"^\s*([A-Za-z_]\w*)\s*:\s*([\w.]+)\s*\[({_NUMBERS})\]\s*(?::\s*\(({_NUMBERS})\)\s*)?(?:\s+{_RULE})?$"
)
_HOW = "write it as 'x: bf16[4096,8192]'; rules are 'i: i32[8] below 64', '… sorted to x[0]', '… distinct below kv[0]'"


Rule = Literal["", "range", "sorted", "distinct"]
_RULES: dict[str, Rule] = {"below": "range", "sorted": "sorted", "distinct": "distinct"}


@dataclass(frozen=True)
class TensorSpec:
    """One tensor: name, element type, shape and strides in elements. ``strides`` is () where it is row-major and dense.

    Integers that index something are drawn from 0 up to ``below``, or are one of ``beside`` (a loss's ignore_index);
    ``below`` is 0 where nothing is known of them. ``rule`` says more: "sorted" are non-decreasing along the last
    dimension, from 0 to ``below`` itself (cumulative lengths); "distinct" are all different (a page table); "range" is
    any of them. ``below`` is then the size of dimension ``bound[1]`` of the input ``bound[0]``, if that is given.

    Raises ValueError for strides under which elements overlap, or not one a dimension, and for a rule of other numbers
    than integers.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] = ()
    below: int = 0
    beside: tuple[int, ...] = ()
    rule: Rule = ""
    bound: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        if self.rule and (self.dtype.is_float or self.dtype is DType.BOOL):
            raise ValueError(f"{self.name}: a rule is for integers, not {self.dtype.value}")
        if not self.strides:
            return
        if len(self.strides) != len(self.shape):
            raise ValueError(f"{self.name}: {len(self.strides)} strides for {len(self.shape)} dimensions")
        walked = sorted((step, size) for step, size in zip(self.strides, self.shape, strict=True) if size > 1)
        reached = 0
        for step, size in walked if self.numel else []:
            if step <= reached:
                raise ValueError(f"{self.name}: elements overlap under the strides {self.strides}")
            reached += step * (size - 1)
        rows = zip(self.strides, _row_major(self.shape), self.shape, strict=True)
        if self.numel == 0 or all(mine == dense for mine, dense, size in rows if size > 1):
            object.__setattr__(self, "strides", ())

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Of its elements."""
        return self.numel * self.dtype.itemsize

    @property
    def cosize(self) -> int:
        """Elements of memory from its first to its last (CuTe's word), gaps between them included."""
        reached = sum(step * (size - 1) for step, size in zip(self.stride, self.shape, strict=True))
        return 1 + reached if self.numel else 0

    @property
    def storage_bytes(self) -> int:
        """Of the memory it lies in."""
        return self.cosize * self.dtype.itemsize

    @property
    def stride(self) -> tuple[int, ...]:
        """Strides in elements, one a dimension."""
        return self.strides or _row_major(self.shape)

    def __str__(self) -> str:
        layout = f":({','.join(map(str, self.strides))})" if self.strides else ""
        return f"{self.name}: {self.dtype.value}[{','.join(map(str, self.shape))}]{layout}"

    @classmethod
    def parse(cls, text: str) -> TensorSpec:
        """Reads ``x: bf16[4096,8192]``, with strides ``x: bf16[4096,8192]:(1,4096)``; of integers also a rule:
        ``n: i32[8] below 64``, ``cu: i32[9] sorted to x[0]``, ``pages: i32[8] distinct below kv[0]``. Raises
        ValueError with the form expected."""
        match = _SPEC.match(text)
        if not match:
            raise ValueError(f"cannot read input {text.strip()!r}; {_HOW}")
        shape, strides = _numbers(match[3]), _numbers(match[4] or "")
        if not match[5]:
            return cls(match[1], DType.parse(match[2]), shape, strides)
        below, bound = (0, (match[7], int(match[8]))) if match[7] else (int(match[6].replace("_", "")), None)
        rule = _RULES[match[5].split()[0]]
        return cls(match[1], DType.parse(match[2]), shape, strides, below, rule=rule, bound=bound)

    def to_dict(self) -> dict[str, Any]:
        plain = {"name": self.name, "dtype": self.dtype.value, "shape": list(self.shape)}
        given = {"strides": list(self.strides), "below": self.below, "beside": list(self.beside), "rule": self.rule,
                 "bound": list(self.bound or ())}  # fmt: skip
        return {**plain, **{key: value for key, value in given.items() if value}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TensorSpec:
        """Raises KeyError and ValueError."""
        return cls(
            data["name"], DType(data["dtype"]), tuple(data["shape"]), tuple(data.get("strides", ())),
            data.get("below", 0), tuple(data.get("beside", ())), data.get("rule", ""),
            (str(data["bound"][0]), int(data["bound"][1])) if data.get("bound") else None,
        )  # fmt: skip


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part.replace("_", "")) for part in text.split(",") if part.strip())


@dataclass(frozen=True)
class Workload:
    """One set of shapes and dtypes of a problem.

    ``inputs`` are the tensors a kernel is given, in order: the reference's own arguments, then (for a
    ``torch.nn.Module``) its parameters and buffers. ``outputs`` are what it must write, row-major whatever the inputs.
    ``why`` says what a derived workload probes.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    why: str = ""

    @property
    def derived(self) -> bool:
        """Made to check with, not asked for: a candidate's ``constraints`` may leave it out."""
        return bool(self.why)

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        return self.inputs + self.outputs

    @property
    def compulsory_bytes(self) -> int:
        """Bytes that must cross DRAM: each input read once, each output written once."""
        return sum(t.nbytes for t in self.tensors)

    @property
    def signature(self) -> str:
        """What a compiled kernel depends on: dtypes and layouts, by position (names do not matter)."""
        return ";".join(str(t).removeprefix(f"{t.name}: ") for t in self.tensors)

    def describe(self) -> str:
        return f"({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))})"


@dataclass(frozen=True)
class Tolerances:
    """How far a kernel may be from the float64 reference.

    The budget is set by what PyTorch itself loses at the problem's own precision. An output passes when its norm-wise
    relative error is at most ``budget`` times PyTorch's, and its worst element, relative to max(|ref|, rms(ref)), at
    most ``budget`` times PyTorch's worst. Neither limit falls below its floor: ``floor_eps`` and ``element_eps``
    machine epsilons of the output's dtype, ``floor_norm`` and ``floor_element`` (what contracting a multiply and an
    add costs in float32) for dtypes narrower than float64.
    """

    budget: float = 3.0
    floor_eps: float = 0.5
    element_eps: float = 2.0
    floor_norm: float = 2e-6
    floor_element: float = 2e-5


@dataclass(frozen=True)
class Problem:
    """A reference and everything needed to judge a kernel against it.

    ``workloads[0]`` is the one being optimised; the rest of ``workloads`` were given by the analyst.
    ``check_workloads`` are small ones derived for the emulator (tile tails, one row, whole tiles). ``kind`` says how
    ``source`` is to be called. ``flops`` are those of matrix products in ``workloads[0]`` (0 where there are none).
    ``tf32``: matrix products may round fp32 operands to TF32 (10 bits of mantissa), which ``source`` asks PyTorch for.
    ``tf32_convolutions``: it has convolutions of fp32, and they may, as PyTorch's do unless ``source`` forbids it.
    ``images``: it has convolutions of four dimensions, for which layouts matter to PyTorch. ``insensitive``: inputs on
    which its answer hardly depends (none of its outputs' dtypes shows it): its times are left out of means.
    """

    name: str
    source: str
    kind: Literal["reference", "kernelbench"]
    workloads: tuple[Workload, ...]
    check_workloads: tuple[Workload, ...] = ()
    tolerances: Tolerances = Tolerances()
    deterministic: bool = True
    flops: int = 0
    inputs_text: str = ""  # the --inputs option, where the source has no inputs() of its own
    tf32: bool = False
    tf32_convolutions: bool = False
    images: bool = False
    insensitive: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What is said of a problem whose times tell nothing; nothing of others."""
        if not self.insensitive:
            return ""
        return f"the answer hardly depends on {', '.join(self.insensitive)}: left out of means"

    @property
    def any_tf32(self) -> bool:
        return self.tf32 or self.tf32_convolutions

    @property
    def workload(self) -> Workload:
        return self.workloads[0]

    @property
    def source_sha256(self) -> str:
        return sha256(self.source)

    @property
    def key(self) -> str:
        """Hash of all that defines the problem."""
        shapes = [w.signature for w in self.workloads + self.check_workloads]
        precision = ["tf32"] * self.tf32 + ["tf32 convolutions"] * self.tf32_convolutions
        rules = [[t.name, t.rule, t.below] for t in self.workload.inputs if t.rule]
        parts = [self.source, self.kind, shapes, vars(self.tolerances), self.deterministic, *precision, *rules]
        return sha256(canonical_json(parts))

    def built_for(self, judged: Sequence[Workload]) -> tuple[Workload, ...]:
        """What a candidate is compiled for: all of the analyst's workloads, and those of ``judged`` besides."""
        return self.workloads + tuple(w for w in judged if w.name not in {own.name for own in self.workloads})

    def workload_named(self, name: str) -> Workload:
        for workload in self.workloads + self.check_workloads:
            if workload.name == name:
                return workload
        raise KeyError(name)

    def with_workloads(self, workloads: tuple[Workload, ...]) -> Problem:
        return replace(self, workloads=workloads)
