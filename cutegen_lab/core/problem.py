"""Definition of a problem: a reference, its workloads, and the tolerance for an answer."""

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
    """Name, element type, shape and layout of one tensor, with the rule that its integers obey.

    Raises ValueError for strides under which elements overlap, for a number of strides that is not the rank, and for a
    rule on a dtype that is not an integer.
    """

    name: str
    """Name of the input or output; an identifier."""
    dtype: DType
    """Element type."""
    shape: tuple[int, ...]
    """Size of each dimension in elements; () is a scalar."""
    strides: tuple[int, ...] = ()
    """Stride of each dimension in elements; () if dense and row-major."""
    below: int = 0
    """Exclusive upper limit of integers, which are drawn from 0 on (inclusive for the rule "sorted"); 0 if no limit is
    known."""
    beside: tuple[int, ...] = ()
    """Further values that integers may take, such as a loss's ignore_index."""
    rule: Rule = ""
    """Rule for integers: "range" (any of 0 to ``below``), "sorted" (non-decreasing along the last dimension, as
    cumulative lengths), "distinct" (all different, as a page table) or "" (none)."""
    bound: tuple[str, int] | None = None
    """(input, dimension) whose size is ``below``; None if it is a constant."""
    least_bytes: int | None = None
    """Bytes of an input that every kernel must read in a timed call, where that is less than all of them: of a slice,
    of the rows that indices choose (problems/drawn.py), 0 for an input that is not read. None for all bytes."""

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
        """Number of elements, without gaps."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements, without gaps."""
        return self.numel * self.dtype.itemsize

    @property
    def compulsory_bytes(self) -> int:
        """Bytes of it that must cross DRAM in a timed call, each once."""
        return self.nbytes if self.least_bytes is None else self.least_bytes

    @property
    def cosize(self) -> int:
        """Elements of memory from the first to the last, gaps included (CuTe's cosize)."""
        reached = sum(step * (size - 1) for step, size in zip(self.stride, self.shape, strict=True))
        return 1 + reached if self.numel else 0

    @property
    def storage_bytes(self) -> int:
        """Bytes of memory from the first element to the end of the last, gaps included."""
        return self.cosize * self.dtype.itemsize

    @property
    def stride(self) -> tuple[int, ...]:
        """Stride of each dimension in elements, never empty for rank 1 or more."""
        return self.strides or _row_major(self.shape)

    def __str__(self) -> str:
        layout = f":({','.join(map(str, self.strides))})" if self.strides else ""
        return f"{self.name}: {self.dtype.value}[{','.join(map(str, self.shape))}]{layout}"

    @classmethod
    def parse(cls, text: str) -> TensorSpec:
        """Reads ``x: bf16[4096,8192]``, with strides ``x: bf16[4096,8192]:(1,4096)``; integers may have a rule: ``n:
        i32[8] below 64``, ``cu: i32[9] sorted to x[0]``, ``pages: i32[8] distinct below kv[0]``.

        Raises ValueError with the form expected.
        """
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
        least = {} if self.least_bytes is None else {"least_bytes": self.least_bytes}
        return {**plain, **{key: value for key, value in given.items() if value}, **least}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TensorSpec:
        """Raises KeyError and ValueError."""
        return cls(
            data["name"], DType(data["dtype"]), tuple(data["shape"]), tuple(data.get("strides", ())),
            data.get("below", 0), tuple(data.get("beside", ())), data.get("rule", ""),
            (str(data["bound"][0]), int(data["bound"][1])) if data.get("bound") else None, data.get("least_bytes"),
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
    """One set of shapes and dtypes of a problem."""

    name: str
    """Name, unique within the problem."""
    inputs: tuple[TensorSpec, ...]
    """Tensors a kernel is given, in order: the reference's arguments, then the parameters and buffers of a
    ``torch.nn.Module``."""
    outputs: tuple[TensorSpec, ...]
    """Tensors that a kernel must write, in order; always dense and row-major."""
    why: str = ""
    """What a derived workload probes; empty for a workload that the analyst gave."""

    @property
    def derived(self) -> bool:
        """Whether it was derived for checks: a candidate's ``constraints`` may refuse it."""
        return bool(self.why)

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors, without gaps."""
        return sum(t.nbytes for t in self.tensors)

    @property
    def compulsory_bytes(self) -> int:
        """Bytes that must cross DRAM: each input, or the part of it that is needed, read once, each output written
        once."""
        return sum(t.compulsory_bytes for t in self.tensors)

    @property
    def signature(self) -> str:
        """Dtypes and layouts by position: everything a compiled kernel depends on."""
        return ";".join(str(t).removeprefix(f"{t.name}: ") for t in self.tensors)

    def describe(self) -> str:
        """``(x: bf16[8,64]) -> (out: bf16[8,64])``."""
        return f"({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))})"


SIZES_OF_THE_JUDGE = "whose sizes the judge chose (constraints() may leave out what is not served)"
"""Remark on a derived workload for which a kernel fails to build or goes out of bounds."""


@dataclass(frozen=True)
class Tolerances:
    """Allowed distance of a kernel from the float64 reference, as a multiple of PyTorch's own error at the problem's
    precision.

    An output passes if its norm-wise relative error is at most ``budget`` times PyTorch's, and its worst element's
    error, relative to max(|ref|, rms(ref)), at most ``budget`` times PyTorch's worst. Neither limit falls below its
    floors.
    """

    budget: float = 3.0
    """Allowed multiple of PyTorch's error."""
    floor_eps: float = 0.5
    """Minimum norm-wise limit, in machine epsilons of the output's dtype."""
    element_eps: float = 2.0
    """Minimum limit for the worst element, in machine epsilons of the output's dtype."""
    floor_norm: float = 2e-6
    """Minimum norm-wise limit for dtypes narrower than float64: the effect of contracting a multiply and an add in
    float32."""
    floor_element: float = 2e-5
    """Minimum limit for the worst element, for dtypes narrower than float64."""


@dataclass(frozen=True)
class Problem:
    """A reference and everything needed to judge a kernel against it."""

    name: str
    """Name shown in reports and used in file names."""
    source: str
    """Python text of the reference."""
    kind: Literal["reference", "kernelbench"]
    """How ``source`` is called: "reference" (a function) or "kernelbench" (a ``Model`` class)."""
    workloads: tuple[Workload, ...]
    """Workloads that the analyst gave; the first is the one being optimised."""
    check_workloads: tuple[Workload, ...] = ()
    """Small workloads derived for the emulator: tile tails, one row, whole tiles."""
    tolerances: Tolerances = Tolerances()
    """Allowed errors of the outputs."""
    deterministic: bool = True
    """Whether a kernel must return the same bytes each time."""
    flops: int = 0
    """Floating-point operations of the matrix products in ``workloads[0]``; 0 if there are none."""
    inputs_text: str = ""
    """Value of the option --inputs, if the source defines no inputs()."""
    tf32: bool = False
    """Whether matrix products may round fp32 operands to TF32 (10 bits of mantissa), because ``source`` sets PyTorch's
    flag."""
    tf32_convolutions: bool = False
    """Whether fp32 convolutions exist and may use TF32 (PyTorch's default unless ``source`` forbids it)."""
    images: bool = False
    """Whether there are convolutions of 4-d tensors, for which memory format matters to PyTorch."""
    insensitive: tuple[str, ...] = ()
    """Inputs whose effect on the answer is too small for the outputs' dtypes to show; such a problem's times are left
    out of means."""

    @property
    def label(self) -> str:
        """Remark that the problem's times are left out of means; empty for others."""
        if not self.insensitive:
            return ""
        return f"the answer hardly depends on {', '.join(self.insensitive)}: left out of means"

    @property
    def any_tf32(self) -> bool:
        """Whether any operation may use TF32."""
        return self.tf32 or self.tf32_convolutions

    @property
    def workload(self) -> Workload:
        """The main workload: the one being optimised."""
        return self.workloads[0]

    @property
    def source_sha256(self) -> str:
        return sha256(self.source)

    @property
    def key(self) -> str:
        """Hash of everything that defines the problem."""
        shapes = [w.signature for w in self.workloads + self.check_workloads]
        precision = ["tf32"] * self.tf32 + ["tf32 convolutions"] * self.tf32_convolutions
        rules = [[t.name, t.rule, t.below] for t in self.workload.inputs if t.rule]
        parts = [self.source, self.kind, shapes, vars(self.tolerances), self.deterministic, *precision, *rules]
        return sha256(canonical_json(parts))

    def built_for(self, judged: Sequence[Workload]) -> tuple[Workload, ...]:
        """Workloads a candidate is compiled for: the analyst's, then those of ``judged`` that are not among these."""
        return self.workloads + tuple(w for w in judged if w.name not in {own.name for own in self.workloads})

    def workload_named(self, name: str) -> Workload:
        """The analyst's or derived workload of that name. Raises KeyError."""
        for workload in self.workloads + self.check_workloads:
            if workload.name == name:
                return workload
        raise KeyError(name)

    def with_workloads(self, workloads: tuple[Workload, ...]) -> Problem:
        """A copy in which ``workloads`` replace the analyst's."""
        return replace(self, workloads=workloads)
